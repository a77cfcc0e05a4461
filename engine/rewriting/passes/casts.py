"""Casts without effect, of casts, and of sums with truth values."""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar, scalar_op_of
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import Cast
from engine.scalar.promotion import COMPLEX, DTYPES, FLOATS, INEXACT, INTEGERS, integer_range, part_of
from engine.tensor.elemwise import Elemwise, cast, elemwise
from engine.tensor.matching import dtype_of, scalar_value

CASTS = [elemwise(Cast(dtype)) for dtype in DTYPES]

_EXACT_TO = {"float16": 2**11, "float32": 2**24, "float64": 2**53}
"""The number to which a float has all integers."""


def _holds_exactly(dtype: str, values: str) -> bool:
    if dtype == values or values == "bool":
        return True
    if dtype in COMPLEX:
        return _holds_exactly(part_of(dtype), part_of(values))
    if values in INEXACT or dtype == "bool":
        return dtype in FLOATS and values in FLOATS[: FLOATS.index(dtype)]
    numbers = integer_range(values)
    if dtype in FLOATS:
        return numbers[-1] <= _EXACT_TO[dtype]
    return numbers[0] in integer_range(dtype) and numbers[-1] in integer_range(dtype)


HOLDS_EXACTLY = {
    values: frozenset([dtype for dtype in DTYPES if _holds_exactly(dtype, values)]) for values in DTYPES
}
"""For each dtype, the dtypes that hold all of its values."""


@node_rewriter([elemwise(scalar.identity), *CASTS], for_all_dtypes=True)
def local_useless_cast(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """identity(x) -> x; cast(x) -> x, if x has that dtype."""
    return typed(node, node.inputs[0])


@node_rewriter(CASTS, for_all_dtypes=True)
def local_cast_of_cast(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """cast(cast(x)) -> cast(x), if the inner cast loses nothing."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, Cast):
        return None
    (x,) = inner.inputs
    if dtype_of(node.inputs[0]) not in HOLDS_EXACTLY[dtype_of(x)]:
        return None
    return [cast(x, dtype_of(node.outputs[0]))]


_SMALL = 1024
"""Every float dtype has the whole numbers next to those up to here."""


@node_rewriter(CASTS)
def local_cast_of_truth_sum(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """cast(1 - p) -> 1.0 - cast(p), and such sums and differences with small whole numbers, for floats and
    truth values p.

    So a mask and its complement are one conversion, and one from a byte: that of eight bytes is no vector
    instruction. Of sums that nothing else reads, and which do not wrap.
    """
    total, dtype = node.inputs[0], dtype_of(node.outputs[0])
    inner = total.owner
    if dtype not in FLOATS or inner is None or inner.op not in _SUMS or len(fgraph.clients[total]) > 1:
        return None
    for number, truth in (inner.inputs, inner.inputs[::-1]):
        if dtype_of(truth) == "bool" and _is_small(number, dtype_of(total)):
            operands = [cast(v, dtype) for v in inner.inputs]
            return typed(node, apply_scalar(scalar_op_of(inner), *operands))
    return None


_SUMS = (elemwise(scalar.add), elemwise(scalar.sub))


def _is_small(number: Variable, dtype: str) -> bool:
    """Return True for a constant of which sums and differences with 1 are small, and are held by `dtype`, a
    dtype of whole numbers: a sum of truth values is one.
    """
    value = scalar_value(number)
    if value is None or dtype not in INTEGERS or abs(value) > _SMALL:
        return False
    return all(near in integer_range(dtype) for near in (int(value) - 1, int(value) + 1))
