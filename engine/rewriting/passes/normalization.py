"""Softmax and its kin recognised where they are written out: the Ops do not overflow, what is written out may.

What is written out with the largest element subtracted does not overflow either, and is left as it is. So the graphs
that these Ops hold, which are written so, are not recognised as the Ops themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine import scalar
from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.inner.special import LogSoftmax, LogSumExp, Softmax
from engine.rewriting.pattern import dtype_of, operands_of, tensor_type_of
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.elemwise import DimShuffle, Elemwise, dimshuffle, elemwise
from engine.tensor.reduction import Max, Sum

_FURTHEST = 4
"""How many operations may lie between the largest element and what is subtracted."""


@node_rewriter([elemwise(scalar.true_div)])
def local_softmax(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """exp(x) / sum(exp(x), axis, keepdims=True) -> softmax(x, axis)."""
    powers, total = node.inputs
    axis = _axis_kept(total, tensor_type_of(powers).ndim)
    if axis is None or _operand(total.owner).owner.inputs[0] is not powers:
        return None
    x = _exponent(powers, axis)
    return None if x is None else _typed(node, Softmax(axis)(x))


@node_rewriter([elemwise(scalar.log)])
def local_log_softmax(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """log(softmax(x)) -> log_softmax(x)."""
    found = node.inputs[0].owner
    if found is None or not isinstance(found.op, Softmax):
        return None
    return _typed(node, LogSoftmax(found.op.axis)(found.inputs[0]))


@node_rewriter([elemwise(scalar.log)])
def local_logsumexp(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """log(sum(exp(x), axis)) -> logsumexp(x, axis), with or without the axes kept."""
    total: Any = node.inputs[0]
    order = None
    if total.owner is not None and isinstance(total.owner.op, DimShuffle):
        order, total = total.owner.op.new_order, _operand(total.owner)
    if total.owner is None or not isinstance(total.owner.op, Sum):
        return None
    axis = total.owner.op.axis
    x = _exponent(total.owner.inputs[0], axis)
    if x is None or dtype_of(total) != dtype_of(x):
        return None
    found = LogSumExp(axis)(x)
    return _typed(node, found if order is None else dimshuffle(found, order))


def _operand(node: Any) -> Any:
    return node.inputs[0]


def _axis_kept(total: Variable, ndim: int) -> tuple[int, ...] | None:
    """The axes over which `total` is a sum, if these are kept with length 1."""
    node = total.owner
    if node is None or not isinstance(node.op, DimShuffle) or node.inputs[0].owner is None:
        return None
    summed = node.inputs[0].owner.op
    if not isinstance(summed, Sum) or tensor_type_of(total).ndim != ndim:
        return None
    kept = iter(range(ndim))
    order = tuple(["x" if axis in summed.axis else next(kept) for axis in range(ndim)])
    return summed.axis if node.op.new_order == order else None


def _exponent(powers: Variable, axis: Sequence[int]) -> Any:
    """The x of which `powers` is exp(x), unless nothing overflows as its largest elements over `axis` are subtracted."""
    operands = operands_of(powers, scalar.exp)
    if operands is None or dtype_of(operands[0]) != dtype_of(powers):
        return None
    difference = operands_of(operands[0], scalar.sub)
    if difference is not None and _comes_from_largest(difference[1], difference[0], tuple(axis), _FURTHEST):
        return None
    return operands[0]


def _comes_from_largest(variable: Variable, x: Variable, axis: tuple[int, ...], steps: int) -> bool:
    """Whether `variable` is made of the largest elements of `x`, by operations that keep their number."""
    node = variable.owner
    if node is None or steps == 0:
        return False
    if isinstance(node.op, Max):
        return node.inputs[0] is x and node.op.axis == axis
    if not isinstance(node.op, DimShuffle | Elemwise):
        return False
    return any(_comes_from_largest(v, x, axis, steps - 1) for v in node.inputs)


def _typed(node: Apply, found: Any) -> list[Variable] | None:
    """`found` in place of the output of `node`, if it has its type."""
    return [cast(Variable, found)] if node.outputs[0].type.is_super(found.type) else None


NORMALIZE = (local_softmax, local_log_softmax, local_logsumexp)
