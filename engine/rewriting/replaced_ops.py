"""The replacement of Ops by the graphs that compute them, alone or in a batch.

All are replaced after the rewrites that look for them. One that a loop gives to the graph around is
replaced there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.batch_loop import batch_lengths, looped
from engine.rewriting.batches import as_typed
from engine.rewriting.equilibrium import replace_outputs
from engine.rewriting.rewriters import GraphRewriter, RewriteReport, node_rewriter
from engine.tensor.blockwise import Blockwise, vectorize_graph
from engine.tensor.replaced_op import ReplacedOp


class ReplaceOps(GraphRewriter):
    """The replacement of all nodes of ReplacedOps by their graphs."""

    name = "replace_ops"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        waiting = [node for node in fgraph.toposort() if _is_replaced(node)]
        while waiting:
            for node in waiting:
                replace_outputs(fgraph, node, _replacement_of(node), self.name)
                report.count(self.name)
            waiting = [node for node in fgraph.toposort() if _is_replaced(node)]


@node_rewriter([ReplacedOp, Blockwise])
def local_replace_op(fgraph: FunctionGraph, node: Apply) -> Sequence[Variable] | None:
    """f(x) -> the graph that computes it."""
    return _replacement_of(node) if _is_replaced(node) else None


def _is_replaced(node: Apply) -> bool:
    if isinstance(node.op, ReplacedOp):
        return node.op.is_replaced(node.inputs)
    if not isinstance(node.op, Blockwise) or not isinstance(node.op.core_op, ReplacedOp):
        return False
    return node.op.core_op.is_replaced(node.op.core_node(node.inputs).inputs)


def _replacement_of(node: Apply) -> Sequence[Variable]:
    op: Any = node.op
    if isinstance(op, ReplacedOp):
        found = op.replacement(*node.inputs)
    else:
        found = _of_each_place(op.core_node(node.inputs), node.inputs, op.batch_ndim(node))
    return [as_typed(new, old) for new, old in zip(found, node.outputs, strict=True)]


def _of_each_place(core: Apply, inputs: Sequence[Any], count: int) -> Sequence[Any]:
    """Return what the graph of a core node computes at each place of a batch.

    A loop computes it where a batch gives the lengths: whether they are equal shows when it runs.
    """
    op: Any = core.op
    try:
        return vectorize_graph(op.replacement(*core.inputs), dict(zip(core.inputs, inputs, strict=True)))
    except NotImplementedError:
        return looped(inputs, batch_lengths(inputs, count), lambda parts: op.replacement(*parts))
