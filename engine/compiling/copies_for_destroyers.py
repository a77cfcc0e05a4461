"""Users' Ops that overwrite their inputs, made harmless: they are shown copies, so nothing else need know of it.

To a graph an Op that overwrites is a constraint on the order of nodes, on merging and on every rewrite, some of which
would leave no order at all. Before a function is made, such an Op of a user's is put into one that has no such map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.graph.frozen import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import is_users, users_ops
from engine.graph.variables import Variable
from engine.inner.base import HasInnerGraph

_TAKEN = ("infer_shape", "numba_function")


class OnCopies(Op):
    """Computes what `op` does, on copies of the inputs; it has what `op` says of shapes, and for numba."""

    __props__ = ("op",)
    holds_code = True

    def __init__(self, op: Op) -> None:
        self.op = op

    def make_node(self, *inputs: Any) -> Apply:
        node = self.op.make_node(*inputs)
        return Apply(self, node.inputs, [output.type.make_variable() for output in node.outputs])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        outputs = [output.type.make_variable() for output in node.outputs]
        self.op.perform(Apply(self.op, node.inputs, outputs), inputs, output_storage)

    def __getattr__(self, name: str) -> Any:
        if name in _TAKEN and "op" in self.__dict__:
            return getattr(self.op, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __str__(self) -> str:
        return str(self.op)

    __repr__ = __str__


def made_harmless(graph: FrozenFunctionGraph) -> FrozenFunctionGraph:
    """`graph` with users' Ops that overwrite put into harmless ones, also in the graphs within its Ops; itself if it has none."""
    if not any(op.destroy_map for op in users_ops(graph)):
        return graph
    inputs = [variable.type.make_variable() for variable in graph.inputs]
    made: dict[Variable, Variable] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        arguments = [made.get(variable, variable) for variable in node.inputs]
        outputs = [output.type.make_variable() for output in node.outputs]
        made.update(zip(node.outputs, Apply(_harmless(node.op), arguments, outputs).outputs, strict=True))
    return FrozenFunctionGraph.from_io(inputs, [made.get(variable, variable) for variable in graph.outputs])


def _harmless(op: Op) -> Op:
    if is_users(op):
        return OnCopies(op) if op.destroy_map else op
    if not isinstance(op, HasInnerGraph):
        return op
    graph = made_harmless(op.fgraph)
    changed: Op = op if graph is op.fgraph else op.with_inner_graph(graph)
    return changed
