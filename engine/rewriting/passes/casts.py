"""Casts without effect, and casts of casts."""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import Cast
from engine.scalar.promotion import COMPLEX, DTYPES, FLOATS, INEXACT, integer_range, part_of
from engine.tensor.elemwise import Elemwise, cast, elemwise
from engine.tensor.matching import dtype_of

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


@node_rewriter([elemwise(scalar.identity), *CASTS])
def local_useless_cast(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """identity(x) -> x; cast(x) -> x, if x has that dtype."""
    (x,) = node.inputs
    output = node.outputs[0]
    return [x] if output.type.is_super(x.type) else None


@node_rewriter(CASTS)
def local_cast_of_cast(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """cast(cast(x)) -> cast(x), if the inner cast loses nothing."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, Cast):
        return None
    (x,) = inner.inputs
    if dtype_of(node.inputs[0]) not in HOLDS_EXACTLY[dtype_of(x)]:
        return None
    return [cast(x, dtype_of(node.outputs[0]))]
