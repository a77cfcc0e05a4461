"""Products of tensors over an axis of length 1, which are elementwise products."""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.products import Dot


@node_rewriter([Dot])
def local_dot_to_mul(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(x, y) -> x * y, of floats, if the axes that are multiplied have length 1."""
    x, y = node.inputs
    output = node.outputs[0]
    if tensor_type_of(x).shape[-1] != 1 or tensor_type_of(y).shape[0] != 1 or dtype_of(output) not in FLOATS:
        return None
    rows, columns = tensor_type_of(x).ndim == 2, tensor_type_of(y).ndim == 2
    left = dimshuffle(x, ((0, "x") if columns else (0,)) if rows else (("x",) if columns else ()))
    right = dimshuffle(y, (("x", 1) if rows else (1,)) if columns else (("x",) if rows else ()))
    dtype = dtype_of(output)
    result = apply_scalar(scalar.mul, cast(left, dtype), cast(right, dtype))
    return [result] if output.type.is_super(result.type) else None
