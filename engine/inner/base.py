"""`HasInnerGraph`: the common base of Ops that hold a graph."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.frozen_nodes import NominalVariable
from engine.graph.reference import run_node
from engine.graph.variables import Constant, Variable


class HasInnerGraph:
    """Mixin of an Op that holds one frozen graph, `fgraph`. Neither the Op nor its graph can change."""

    fgraph: FrozenFunctionGraph

    @property
    def destroyable(self) -> tuple[int, ...]:
        """The positions of the inner inputs that the computation may overwrite; none by default."""
        return ()

    def for_compilation(self) -> Any:
        """Return the Op without names and overrides, which do not affect compilation. By default this Op."""
        return self

    @property
    def inner_inputs(self) -> tuple[NominalVariable, ...]:
        """The inputs of the graph."""
        return self.fgraph.inputs

    @property
    def inner_outputs(self) -> tuple[Variable, ...]:
        """The outputs of the graph."""
        return self.fgraph.outputs

    @property
    def fn(self) -> Any:
        """The inner graph as a function, which is compiled when it is first asked for."""
        return self.fgraph.computed("function", _function_of)

    def clone(self) -> Any:
        """Return this Op itself, which is immutable."""
        return self

    def with_inner_graph(self, fgraph: FrozenFunctionGraph) -> Any:
        """Return a copy of this Op that holds `fgraph` instead.

        Raises TypeError if the number of inputs or outputs differs.
        """
        for kind, own, given in (
            ("inputs", self.inner_inputs, fgraph.inputs),
            ("outputs", self.inner_outputs, fgraph.outputs),
        ):
            if len(own) != len(given):
                raise TypeError(
                    f"Giving {self} another graph: it has {len(own)} {kind}, the graph {len(given)}"
                )
        return self.holding(fgraph)

    def holding(self, fgraph: FrozenFunctionGraph) -> Any:
        """Return a copy of this Op that holds `fgraph`, whose inputs may be others."""
        new = object.__new__(type(self))
        new.__setstate__(self.__getstate__())  # type: ignore[attr-defined]
        new.fgraph = fgraph
        return new


def _function_of(fgraph: FrozenFunctionGraph) -> Any:
    inputs = [nominal.type.make_variable() for nominal in fgraph.inputs]
    function = import_module("engine.functions").function  # functions are above graphs
    return function(inputs, fgraph.bind(inputs), on_unused_input="ignore")


def computed_outputs(fgraph: FrozenFunctionGraph, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of `fgraph` on the values `inputs`, by each Op's reference implementation.

    They may be inputs or views of inputs.
    """
    values: dict[Variable, Any] = dict(zip(fgraph.inputs, inputs, strict=True))
    for node in fgraph.nodes:
        arguments = [value_of(variable, values) for variable in node.inputs]
        for output, value in zip(node.outputs, run_node(node, arguments), strict=True):
            values.setdefault(output, value)
    return [value_of(output, values) for output in fgraph.outputs]


def value_of(variable: Variable, values: dict[Variable, Any]) -> Any:
    """Return the value of a constant, or the one in `values`."""
    return variable.data if isinstance(variable, Constant) else values[variable]
