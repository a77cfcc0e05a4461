"""Softmaxes that are written out: digits that x - logsumexp(x) loses for large x, and exponentials twice."""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.special import LogSoftmax, LogSumExp, Softmax
from engine.rewriting.passes.exponentials import is_read_as_exponential
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import DimShuffle, Elemwise
from engine.tensor.matching import operands_of, tensor_type_of


@node_rewriter([Elemwise])
def local_log_softmax_from_logsumexp(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x - logsumexp(x, axis, keepdims=True) -> log_softmax(x, axis), if nothing else needs the sum.

    Infinite elements, and those beside them, have the same results in both.
    """
    operands = operands_of(node.outputs[0], scalar.sub)
    if operands is None:
        return None
    x, total = operands
    axes = _axes_summed(fgraph, x, total)
    return None if axes is None else typed(node, LogSoftmax(axes).make_node(x).outputs[0])


def _axes_summed(fgraph: FunctionGraph, x: Variable, total: Variable) -> tuple[int, ...] | None:
    """Return the axes of `x` that `total`, its logsumexp and nothing else's, sums over and keeps."""
    source: Variable = total
    order: tuple[int | str, ...] = ()
    if total.owner is not None and isinstance(total.owner.op, DimShuffle):
        source, order = total.owner.inputs[0], tuple(total.owner.op.new_order)
    found = source.owner
    if found is None or not isinstance(found.op, LogSumExp) or found.inputs[0] is not x:
        return None
    if len(fgraph.clients[source]) != 1 or len(fgraph.clients[total]) != 1:
        return None
    axes: tuple[int, ...] = found.op.axis
    kept = iter(range(tensor_type_of(source).ndim))
    due = tuple(["x" if axis in axes else next(kept) for axis in range(tensor_type_of(x).ndim)])
    return axes if order == due else None


@node_rewriter([Elemwise])
def local_exp_log_softmax(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """exp(log_softmax(x)) -> softmax(x), if nothing else needs the logarithm.

    It stays while log(exp(log_softmax(x)) + exp(y)) and its like have a form: exp(y) overflows without one.
    """
    operands = operands_of(node.outputs[0], scalar.exp)
    source = None if operands is None else operands[0].owner
    if operands is None or source is None or not isinstance(source.op, LogSoftmax):
        return None
    if len(fgraph.clients[operands[0]]) != 1 or is_read_as_exponential(fgraph, node):
        return None
    return typed(node, Softmax(source.op.axis).make_node(*source.inputs).outputs[0])
