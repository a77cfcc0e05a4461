"""Values of users' types in a program, which holds them as it does those of `generic`.

Only users' Ops compute such values. A graph that has any becomes one on `generic` when a function is made,
and so do the graphs of its Ops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.generic import generic
from engine.graph.op import Op
from engine.graph.traversal import io_toposort
from engine.graph.types import Type
from engine.graph.user_ops import find_user_ops
from engine.graph.variables import Constant, Variable
from engine.inner.base import HasInnerGraph
from engine.tensor.conversion import is_foreign


def held_type(type: Type) -> Any:
    """Return the type that programs have in the place of `type`: `generic` for one of a user's."""
    return generic if is_foreign(type) else type


def with_held_objects(graph: FrozenFunctionGraph) -> FrozenFunctionGraph:
    """Return `graph` with `generic` in the place of users' types: itself if it has none."""
    if not _has_foreign((*graph.inputs, *graph.outputs)) and not (
        find_user_ops(graph)
        and any(_has_foreign((*node.inputs, *node.outputs)) or _holds(node.op) for node in graph.nodes)
    ):
        return graph
    held = _HeldObjects(graph)
    return FrozenFunctionGraph.from_io(held.inputs, held.outputs)


def _has_foreign(variables: Iterable[Variable]) -> bool:
    return any(is_foreign(variable.type) for variable in variables)


def _holds(op: Op) -> bool:
    """Return True if the graph of `op` has values of users' types."""
    return isinstance(op, HasInnerGraph) and with_held_objects(op.fgraph) is not op.fgraph


class _HeldObjects:
    """The variables of type `generic` that stand for those of users' types in `graph`."""

    def __init__(self, graph: FrozenFunctionGraph) -> None:
        self._known: dict[Variable, Variable] = {
            variable: held_type(variable.type).make_variable() for variable in graph.inputs
        }
        self.inputs = list(self._known.values())
        for node in io_toposort(graph.inputs, graph.outputs):
            self._translate(node)
        self.outputs = [self._held(variable) for variable in graph.outputs]

    def _held(self, variable: Variable) -> Variable:
        if variable in self._known:
            return self._known[variable]
        if isinstance(variable, Constant) and is_foreign(variable.type):
            self._known[variable] = generic.make_constant(variable.data)
        return self._known.get(variable, variable)

    def _translate(self, node: Apply) -> None:
        op: Any = node.op
        if isinstance(op, HasInnerGraph):
            op = op.with_inner_graph(with_held_objects(op.fgraph))
        outputs = [held_type(variable.type).make_variable() for variable in node.outputs]
        copy = Apply(op, [self._held(variable) for variable in node.inputs], outputs)
        self._known.update(zip(node.outputs, copy.outputs, strict=True))
