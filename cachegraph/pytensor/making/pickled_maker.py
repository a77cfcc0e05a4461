"""The content of a pickled maker: all that running its function elsewhere needs."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from pytensor.graph.utils import Scratchpad

from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.making.copies import unmark
from cachegraph.pytensor.stored.externals import Context
from cachegraph.pytensor.stored.stored_graph import StoredGraph


class PickledMaker(NamedTuple):
    """A maker whose function came from the cache, or was stored there.

    It holds the graph in stored form (`content`, with its `context`) and the digests of its key. `attributes`
    are the maker's own, `inputs` and `outputs` its specifications without what they are computed from,
    `results` variables like those that the graph computes.
    """

    attributes: Mapping[str, Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    results: Sequence[Any]
    key: CacheKey
    content: bytes
    context: Context
    basis: Basis

    @classmethod
    def of(
        cls,
        attributes: Mapping[str, Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        results: Sequence[Any],
        graph: StoredGraph,
    ) -> PickledMaker:
        """Return the content for a maker with these attributes and the stored graph `graph`."""
        short = CacheKey(graph.key.level, (), graph.key.digest, graph.key.confirmation)
        return cls(
            attributes,
            [_input(spec) for spec in inputs],
            [_output(spec) for spec in outputs],
            [_like(variable) for variable in results],
            short,
            graph.content,
            graph.context(),
            graph.basis,
        )

    def graph(self) -> StoredGraph:
        """Return the graph, on the variables of `inputs`."""
        variables = [spec.variable for spec in self.inputs]
        return StoredGraph(self.key, self.content, variables, lambda: self.context, self.basis)


def _input(spec: Any) -> Any:
    """Return a copy of an input without the graph of its update."""
    copied = copy.copy(spec)
    unmark([copied])
    copied.variable = _bare(spec.variable)
    if spec.update is not None:
        copied.update = _like(spec.update)
    return copied


def _bare(variable: Any) -> Any:
    """Return `variable`, or a bare copy if it is computed or its tags cannot be pickled.

    Whoever pickles the variable too finds its value by its identity.
    """
    held = variable.tag if getattr(variable, "default_update", None) is None else variable
    if variable.owner is None and _is_picklable(held):
        return variable
    bare = variable.clone()
    bare.tag = Scratchpad()
    return bare


def _is_picklable(held: Any) -> bool:
    """Return True if a variable's tags, or its default update, can be pickled."""
    try:
        pickle.dumps(held)
    except Exception:  # the objects' own reducers may raise anything
        return False
    return True


def _output(spec: Any) -> Any:
    copied = copy.copy(spec)
    copied.variable = _like(spec.variable)
    return copied


def _like(variable: Any) -> Any:
    return variable.type(name=variable.name)
