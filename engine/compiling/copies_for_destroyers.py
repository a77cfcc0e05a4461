"""Ops of the users' graphs that overwrite their inputs: while a graph is frozen, user Ops are wrapped in an
Op that gives them copies, and draws of random numbers leave their generators.

An Op that overwrites inputs constrains the order of nodes, merging and every rewrite, and some rewrites
would leave no valid order. The wrapper has no destroy_map, so nothing after it has to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import find_user_ops, is_user_op
from engine.inner.base import HasInnerGraph

_DELEGATED = ("infer_shape", "numba_function")


class OnCopies(Op):
    """An Op that computes `op` on copies of its inputs; it delegates `infer_shape` and `numba_function`."""

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
        if name in _DELEGATED and "op" in self.__dict__:
            return getattr(self.op, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __str__(self) -> str:
        return str(self.op)

    __repr__ = __str__


def with_copies(op: Op) -> Op:
    """Return `op`, or, if it overwrites inputs or holds a user Op that does, the same computation on
    copies."""
    if is_user_op(op):
        return OnCopies(op) if op.destroy_map else op
    if hasattr(op, "without_inplace"):
        return cast(Op, op.without_inplace())
    if not isinstance(op, HasInnerGraph):
        return op
    graph = op.fgraph
    if not any(inner.destroy_map for inner in find_user_ops(graph)):
        return op
    copying = FrozenFunctionGraph.from_io(graph.inputs, graph.outputs, replace_op=with_copies)
    changed: Op = op.with_inner_graph(copying)
    return changed
