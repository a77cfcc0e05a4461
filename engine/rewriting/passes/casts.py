"""Casts without effect, and casts of casts."""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import Cast
from engine.scalar.promotion import DTYPES
from engine.tensor.elemwise import Elemwise, cast, elemwise
from engine.tensor.matching import dtype_of

CASTS = [elemwise(Cast(dtype)) for dtype in DTYPES]

HOLDS_EXACTLY = {
    "bool": frozenset(DTYPES),
    "int32": frozenset(("int32", "int64", "float64")),
    "int64": frozenset(("int64",)),
    "float32": frozenset(("float32", "float64")),
    "float64": frozenset(("float64",)),
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
