"""The form of these rewrites: one of an Op of matrices, of a single one or at each place of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from engine.assumptions import (
    LOWER_TRIANGULAR,
    POSITIVE_DEFINITE,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    check_assumption,
)
from engine.graph import Apply, FunctionGraph, Op, Variable
from engine.inner.diagonals import AllocDiag, alloc_diag, diagonal
from engine.rewriting.batches import as_typed
from engine.rewriting.rewriters import FromFunctionNodeRewriter, node_rewriter
from engine.tensor.blockwise import Blockwise
from engine.tensor.diagonals import Eye
from engine.tensor.elemwise import DimShuffle, cast, dimshuffle
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.signature import parsed

CoreRewrite = Callable[[FunctionGraph, Apply], Any]


def core_rewriter(*classes: type[Op]) -> Callable[[CoreRewrite], FromFunctionNodeRewriter]:
    """Return a decorator for rewrites of nodes whose Op, or the Op of whose batch, is of these classes.

    The function may return one variable for one output. Results are cast to the types of the outputs.
    """

    def decorated(function: CoreRewrite) -> FromFunctionNodeRewriter:
        @wraps(function)
        def transform(fgraph: FunctionGraph, node: Apply) -> Sequence[Variable] | None:
            found = function(fgraph, node) if isinstance(core_of(node), classes) else None
            if found is None:
                return None
            several = [found] if isinstance(found, Variable) else found
            return [as_like(new, old) for new, old in zip(several, node.outputs, strict=True)]

        return node_rewriter([*classes, Blockwise])(transform)

    return decorated


def core_of(node: Apply) -> Any:
    """Return the Op of `node`, or that of one place of its batch."""
    return node.op.core_op if isinstance(node.op, Blockwise) else node.op


def core_ndims(node: Apply) -> list[int]:
    """Return the number of axes of each input at one place of the batch."""
    if isinstance(node.op, Blockwise):
        return [len(axes) for axes in parsed(node.op.signature).inputs]
    return [tensor_type_of(v).ndim for v in node.inputs]


def as_like(new: Any, old: Variable) -> Any:
    """Return `new` in the dtype of `old` and with its static lengths."""
    return as_typed(cast(new, dtype_of(old)), old)


def node_by(variable: Variable, *classes: type[Op]) -> Any:
    """Return the node that computes `variable`, if its Op, or that of its batch, is of these classes."""
    node = variable.owner
    return node if node is not None and isinstance(core_of(node), classes) else None


def turned(x: Any) -> Any:
    """Return the transposed matrices."""
    ndim = x.type.ndim
    return dimshuffle(x, [*range(ndim - 2), ndim - 1, ndim - 2])


def main_diagonal(x: Any) -> Any:
    """Return the main diagonals of the matrices in the last two axes."""
    node = node_by(x, AllocDiag)
    if node is not None and is_main(node):
        return node.inputs[0]
    return diagonal(x, 0, -2, -1)


def is_main(node: Apply) -> bool:
    """Return True if an AllocDiag or ExtractDiag has the main diagonals of matrices in the last two axes."""
    op, matrices = core_of(node), node.outputs[0] if isinstance(core_of(node), AllocDiag) else node.inputs[0]
    ndim = tensor_type_of(matrices).ndim
    return op.offset == 0 and sorted([op.axis1 % ndim, op.axis2 % ndim]) == [ndim - 2, ndim - 1]


def diagonal_matrix(values: Any) -> Any:
    """Return the matrices with `values` on their main diagonals."""
    return alloc_diag(values, 0, -2, -1)


def is_number(x: Variable) -> bool:
    """Return True for matrices of one element."""
    return all(tensor_type_of(x).broadcastable[-2:])


def is_identity(x: Variable) -> bool:
    """Return True for a unit matrix, made by `eye`."""
    node = node_by(x, Eye)
    if node is None:
        return False
    n, m, k = node.inputs
    shape = tensor_type_of(x).shape
    is_square = n is m or (shape[0] is not None and shape[0] == shape[1])
    return is_square and getattr(k, "data", None) == 0


def unbatched(v: Any) -> Any:
    """Return a matrix that was given axes of length 1 in front, or itself."""
    node = v.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return v
    *added, row, column = node.op.new_order if len(node.op.new_order) > 2 else (None, 0, 0)
    if set(added) != {"x"} or {row, column} != {0, 1}:
        return v
    return node.inputs[0] if row == 0 else turned(node.inputs[0])


def structure_of(fgraph: FunctionGraph, A: Variable) -> str:
    """Return the narrowest `assume_a` of `solve` for what is known of `A`."""
    for key, name in _STRUCTURES.items():
        if check_assumption(fgraph, A, key):
            return name
    return "gen"


_STRUCTURES = {
    LOWER_TRIANGULAR: "lower triangular",
    UPPER_TRIANGULAR: "upper triangular",
    POSITIVE_DEFINITE: "pos",
    SYMMETRIC: "sym",
}
