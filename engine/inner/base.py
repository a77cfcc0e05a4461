"""`HasInnerGraph`: what Ops that hold a graph have in common."""

from __future__ import annotations

from typing import Any

from engine.graph.frozen import FrozenFunctionGraph, NominalVariable
from engine.graph.variables import Variable


class HasInnerGraph:
    """An Op that holds exactly one graph, `fgraph`, frozen: the Op cannot change, and neither can its graph."""

    fgraph: FrozenFunctionGraph

    @property
    def inner_inputs(self) -> tuple[NominalVariable, ...]:
        """The inputs of the graph."""
        return self.fgraph.inputs

    @property
    def inner_outputs(self) -> tuple[Variable, ...]:
        """The outputs of the graph."""
        return self.fgraph.outputs

    def clone(self) -> Any:
        """This Op itself: nothing in it can change."""
        return self

    def with_inner_graph(self, fgraph: FrozenFunctionGraph) -> Any:
        """A new Op that holds `fgraph` and is like this one in all else.

        Refuses (TypeError) a graph of other inputs or outputs than this Op may have been applied to.
        """
        for kind, own, given in (
            ("inputs", self.inner_inputs, fgraph.inputs),
            ("outputs", self.inner_outputs, fgraph.outputs),
        ):
            if len(own) != len(given):
                raise TypeError(
                    f"Giving {self} another graph: it has {len(own)} {kind}, the graph {len(given)}"
                )
        new = object.__new__(type(self))
        new.__setstate__(self.__getstate__())  # type: ignore[attr-defined]
        new.fgraph = fgraph
        return new
