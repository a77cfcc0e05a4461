"""Sums and products of products with what is equal along their axes in front, the form that PyTensor's set
`specialize` gives them, for those who ask by name.

Functions are not rewritten so: a product and its sum are one loop. What is in front may be infinite where
there is nothing to add, or overflow as a power.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.canonical_signs import factors_of
from engine.rewriting.elementwise_pattern import apply_scalar, folded
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor import Sum, cast, dimshuffle, prod, stack
from engine.tensor.matching import dtype_of, operands_of, tensor_type_of
from engine.tensor.reduction import Prod, Reduction
from engine.tensor.shape import shape


@node_rewriter([Sum, Prod])
def local_sum_prod_of_mul_or_div(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(a * x) -> a * sum(x), prod(a * x) -> a**n * prod(x), and the same of x / a, for an a of length 1
    along the axes. Of floats of one dtype.
    """
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Reduction)
    dtype, quotient = dtype_of(node.outputs[0]), operands_of(x, scalar.true_div)
    operands = factors_of(x) if quotient is None else quotient
    if not op.axis or dtype not in COMPILED_FLOATS or any(dtype_of(v) != dtype for v in (x, *operands)):
        return None
    front = [v for v in operands if all(tensor_type_of(v).broadcastable[axis] for axis in op.axis)]
    rest = [v for v in operands if not any(v is other for other in front)]
    if not front or not rest or (quotient is not None and rest != [quotient[0]]):
        return None
    inner = folded(scalar.mul, rest)
    reordered = [dimshuffle(v, [a for a in range(v.type.ndim) if a not in op.axis]) for v in front]
    factor = folded(scalar.mul, reordered)
    if isinstance(op, Prod):
        factor = apply_scalar(scalar.pow, factor, _number_of_elements(inner, op.axis))
    reduced = op.make_node(inner).outputs[0]
    if quotient is not None:
        return typed(node, apply_scalar(scalar.true_div, reduced, factor))
    return typed(node, apply_scalar(scalar.mul, factor, reduced))


def _number_of_elements(x: Any, axes: Sequence[int]) -> Any:
    """Return the product of the lengths of `x` along `axes`, in the dtype of `x`."""
    return prod(stack([cast(shape(x)[axis], dtype_of(x)) for axis in axes]))
