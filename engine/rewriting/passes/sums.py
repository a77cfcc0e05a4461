"""Sums: of sums, of one element, and of a constant multiple.

`sum(c * x)` becomes `c * sum(x)` for a finite constant c: rounding differs, and the result overflows if
sum(x) does. A sum of zeros may get another sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.passes.casts import HOLDS_EXACTLY
from engine.rewriting.replacing import typed, typed_alike
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor import Sum, cast, dimshuffle
from engine.tensor.axes import with_axis
from engine.tensor.elemwise import Elemwise
from engine.tensor.matching import dtype_of, operands_of, scalar_value, tensor_type_of
from engine.tensor.quantifiers import All, Any
from engine.tensor.reduction import Max, Min, Prod, Reduction
from engine.tensor.shape import size_over

_CHAINED = (Sum, Prod, Max, Min, All, Any)
"""The reductions that may be done axis by axis."""


@node_rewriter(_CHAINED)
def local_useless_reduce(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Reductions over no axis -> x, in the dtype of the result."""
    assert isinstance(node.op, Reduction)
    return None if node.op.axis else _without_axes(node, node.inputs[0])


@node_rewriter(_CHAINED)
def local_reduce_broadcastable(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Reductions over axes of length 1 -> x without these axes, and a reduction over the others."""
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Reduction)
    lengths = tensor_type_of(x).shape
    ones = [axis for axis in op.axis if lengths[axis] == 1]
    if not ones:
        return None
    kept = [axis for axis in range(len(lengths)) if axis not in ones]
    if len(ones) < len(op.axis):
        axes = tuple([kept.index(axis) for axis in op.axis if axis not in ones])
        return [with_axis(op, axes).make_node(dimshuffle(x, kept)).outputs[0]]
    is_read_once = len(fgraph.clients[x]) == 1
    return _without_axes(node, _of_axes(x, kept) if is_read_once else dimshuffle(x, kept))


def _of_axes(x: Variable, kept: Sequence[int]) -> Variable:
    """Return the axes `kept` of `x`, whose others have length 1; if one loop computes it, as a loop over
    these axes of its operands, with which the loop that reads it is fused.
    """
    node, gone = x.owner, [axis for axis in range(tensor_type_of(x).ndim) if axis not in kept]
    is_one_loop = node is not None and isinstance(node.op, Elemwise) and len(node.outputs) == 1
    if node is None or not is_one_loop or not all(_is_read_from_memory(v, gone) for v in node.inputs):
        return dimshuffle(x, kept)
    return node.op.make_node(*[dimshuffle(v, kept) for v in node.inputs]).outputs[0]


def _is_read_from_memory(operand: Variable, gone: Sequence[int]) -> bool:
    """Return True if no loop computes `operand`, and its axes `gone` have length 1."""
    is_computed = operand.owner is not None and isinstance(operand.owner.op, Elemwise)
    return not is_computed and all(tensor_type_of(operand).shape[axis] == 1 for axis in gone)


def _without_axes(node: Apply, x: Variable) -> list[Variable]:
    """Return the reduction `node` of single elements, those of `x`: these in the dtype of the result."""
    op = node.op
    if isinstance(op, Sum | Prod) and op.acc_dtype not in HOLDS_EXACTLY[dtype_of(x)]:
        x = cast(x, op.acc_dtype)
    return [cast(x, dtype_of(node.outputs[0]))]


@node_rewriter(_CHAINED)
def local_reduce_chain(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(sum(x)) -> sum(x) over the axes of both, if both accumulate in one dtype; so for others."""
    outer = node.op
    inner = node.inputs[0].owner
    if inner is None or type(inner.op) is not type(outer):
        return None
    assert isinstance(outer, Reduction)
    assert isinstance(inner.op, Reduction)
    if len({getattr(inner.op, "dtype", ""), *(getattr(op, "acc_dtype", "") for op in (inner.op, outer))}) > 1:
        return None
    kept = [a for a in range(tensor_type_of(inner.inputs[0]).ndim) if a not in inner.op.axis]
    axes = (*inner.op.axis, *(kept[axis] for axis in outer.axis))
    return [with_axis(outer, tuple(sorted(axes))).make_node(inner.inputs[0]).outputs[0]]


@node_rewriter([Sum])
def local_sum_of_multiple(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(-x) -> -sum(x); sum(c * x) -> c * sum(x) for a finite constant c, of floats of one dtype."""
    op, (x,) = node.op, node.inputs
    dtype = dtype_of(node.outputs[0])
    if dtype not in FLOATS or dtype_of(x) != dtype:
        return None
    negated = operands_of(x, scalar.neg)
    if negated is not None:
        return [apply_scalar(scalar.neg, op.make_node(negated[0]).outputs[0])]
    operands = operands_of(x, scalar.mul) or ()
    for factor, other in (operands, operands[::-1]) if operands else ():
        value = scalar_value(factor)
        if value is not None and math.isfinite(value) and dtype_of(other) == dtype_of(factor) == dtype:
            total = op.make_node(other).outputs[0]
            return [apply_scalar(scalar.mul, float(value), total)]
    return None


@node_rewriter([Sum])
def local_sum_of_fill(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(second(a, b)) -> b * (number of elements), of floats.

    b must have length 1 along the summed axes. If that number may be 0, b must be a finite constant.
    """
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Sum)
    output = node.outputs[0]
    value = (operands_of(x, scalar.second) or (None, None))[1]
    if value is None or dtype_of(output) not in FLOATS or dtype_of(x) != dtype_of(output):
        return None
    lengths = [tensor_type_of(x).shape[axis] for axis in op.axis]
    number = scalar_value(value)
    if not all(lengths) and (number is None or not math.isfinite(number)):
        return None
    if not all(tensor_type_of(value).broadcastable[axis] for axis in op.axis):
        return None
    kept = [axis for axis in range(tensor_type_of(x).ndim) if axis not in op.axis]
    count = cast(size_over(x, op.axis), dtype_of(output))
    return typed_alike(node, apply_scalar(scalar.mul, count, dimshuffle(value, kept)))


@node_rewriter([Max, Min])
def local_extremum_of_fill(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """max(second(a, b)), min(second(a, b)) -> b, if b has length 1 along the axes.

    The types must say that there are elements.
    """
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Reduction)
    value = (operands_of(x, scalar.second) or (None, None))[1]
    if value is None or not all(tensor_type_of(x).shape[axis] for axis in op.axis):
        return None
    if not all(tensor_type_of(value).broadcastable[axis] for axis in op.axis):
        return None
    kept = [axis for axis in range(tensor_type_of(x).ndim) if axis not in op.axis]
    result = dimshuffle(value, kept)
    return typed(node, result)
