"""`HasInnerGraph`: what Ops that hold a graph have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.frozen_nodes import NominalVariable
from engine.graph.reference import computed
from engine.graph.variables import Constant, Variable


class HasInnerGraph:
    """An Op that holds exactly one graph, `fgraph`, frozen: the Op cannot change, and neither can its graph."""

    fgraph: FrozenFunctionGraph

    @property
    def destroyable(self) -> tuple[int, ...]:
        """The places of the inner inputs that what computes the graph may overwrite. Here: none."""
        return ()

    def for_compilation(self) -> Any:
        """Return the Op of the same graph that has nothing that only gradients and readers see. Here: this one."""
        return self

    @property
    def inner_inputs(self) -> tuple[NominalVariable, ...]:
        """The inputs of the graph."""
        return self.fgraph.inputs

    @property
    def inner_outputs(self) -> tuple[Variable, ...]:
        """The outputs of the graph."""
        return self.fgraph.outputs

    def clone(self) -> Any:
        """Return this Op itself: nothing in it can change."""
        return self

    def with_inner_graph(self, fgraph: FrozenFunctionGraph) -> Any:
        """Return a new Op that holds `fgraph` and is like this one in all else.

        Raises TypeError for a graph of other inputs or outputs than this Op may have been applied to.
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


def computed_outputs(fgraph: FrozenFunctionGraph, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of `fgraph` on the values `inputs`, by the reference of each Op. They may be inputs, or views of them."""
    values: dict[Variable, Any] = dict(zip(fgraph.inputs, inputs, strict=True))
    for node in fgraph.nodes:
        arguments = [_value(variable, values) for variable in node.inputs]
        for output, value in zip(node.outputs, computed(node, arguments), strict=True):
            values.setdefault(output, value)
    return [_value(output, values) for output in fgraph.outputs]


def _value(variable: Variable, values: dict[Variable, Any]) -> Any:
    return variable.data if isinstance(variable, Constant) else values[variable]
