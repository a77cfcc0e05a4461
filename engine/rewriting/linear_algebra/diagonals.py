"""Rewrites of diagonals that are taken of made, filled, turned and multiplied matrices.

The diagonal of a product needs a row and a column for each of its elements, and not the product:
`diagonal(A @ B)` is `sum(A * B.T, 1)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.assumptions.rules.products import factors_of, transposed
from engine.assumptions.rules.rule import is_whole_matrix
from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.diagonals import AllocDiag, ExtractDiag, diagonal
from engine.inner.folding import folded
from engine.rewriting.linear_algebra.core_rewriter import (
    core_rewriter,
    is_identity,
    is_number,
    node_by,
    turned,
    unbatched,
)
from engine.rewriting.passes.dots import sums_alike
from engine.rewriting.passes.shapes import equal_axes
from engine.rewriting.walking import out2in
from engine.scalar import mul as scalar_mul
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import Alloc, alloc
from engine.tensor.diagonals import Eye
from engine.tensor.elemwise import Elemwise, cast, dimshuffle, elemwise
from engine.tensor.matching import dtype_of, scalar_value, tensor_type_of
from engine.tensor.math import add, maximum, minimum, mul, sub
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import folded_shape_i
from engine.tensor.signs import is_non_negative


def offset_in(node: Apply, matrices: Variable) -> int | None:
    """Return how far above the main one the diagonals of an AllocDiag or ExtractDiag are, in the last two
    axes of its `matrices`; None for other axes.
    """
    op: Any = node.op
    ndim = tensor_type_of(matrices).ndim
    axes = op.axis1 % ndim, op.axis2 % ndim
    if axes == (ndim - 2, ndim - 1):
        return int(op.offset)
    return -int(op.offset) if axes == (ndim - 1, ndim - 2) else None


def length_of_diagonal(matrices: Any, offset: int) -> Any:
    """Return the number of elements on a diagonal: an int if the types tell it."""
    cuts = -offset, offset
    rows, columns = (_less(length, cut) for length, cut in zip(_lengths(matrices), cuts, strict=True))
    known = [scalar_value(length) for length in (rows, columns)]
    if None not in known:
        return min(known)
    return rows if rows is columns else minimum(rows, columns)


def _lengths(matrices: Any) -> list[Any]:
    """Return the numbers of rows and columns, without a computation of values: of an Eye those that are
    given, which may be negative. Filling so many elements is refused, as the Eye is.
    """
    made = node_by(matrices, Eye)
    if made is None or None not in tensor_type_of(matrices).shape:
        return [folded_shape_i(matrices, axis) for axis in (-2, -1)]
    return made.inputs[:2]


def _less(length: Any, cut: int) -> Any:
    known = scalar_value(as_tensor_variable(length))
    if known is not None:
        return as_tensor_variable(max(known - max(cut, 0), 0))
    return length if cut <= 0 else maximum(sub(length, cut), 0)


@core_rewriter(ExtractDiag)
def extract_diag_of_transpose(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(A.T, k) -> diagonal(A, -k)."""
    base, offset = transposed(node.inputs[0]), offset_in(node, node.inputs[0])
    return None if base is None or offset is None else diagonal(base, -offset, -2, -1)


@core_rewriter(ExtractDiag)
def local_extract_diag_of_alloc_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(diag(d, k), k) -> d, and zeros for another diagonal."""
    made, offset = node_by(node.inputs[0], AllocDiag), offset_in(node, node.inputs[0])
    if made is None or offset is None or offset_in(made, made.outputs[0]) is None:
        return None
    if offset_in(made, made.outputs[0]) == offset:
        return made.inputs[0]
    return _filled_with(0, node, offset)


@core_rewriter(ExtractDiag)
def local_extract_diag_of_eye(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(eye(n, m, k), k) -> ones, and zeros for another diagonal."""
    made, offset = node_by(node.inputs[0], Eye), offset_in(node, node.inputs[0])
    k = None if made is None else scalar_value(made.inputs[2])
    if k is None or offset is None:
        return None
    found: Any = _filled_with(int(k == offset), node, offset)
    return (folded(found.owner) or [found])[0]


def _filled_with(number: int, node: Apply, offset: int) -> Any:
    (matrices,) = node.inputs
    batch = [folded_shape_i(matrices, axis) for axis in range(tensor_type_of(matrices).ndim - 2)]
    filled = as_tensor_variable(number, dtype=dtype_of(matrices))
    return alloc(filled, *batch, length_of_diagonal(matrices, offset))


@core_rewriter(ExtractDiag)
def diag_of_alloc(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(alloc(a, n, m)) -> alloc(a, min(n, m)) of a number; of a matrix, a row or a column, copies of
    what it has on the diagonal. The lengths that alloc compares are compared.
    """
    made, offset = node_by(node.inputs[0], Alloc), offset_in(node, node.inputs[0])
    if made is None or offset is None:
        return None
    value, *lengths = made.inputs
    kept = [*lengths[:-2], length_of_diagonal(made.outputs[0], offset)]
    if is_number(value):
        batch = list(range(tensor_type_of(value).ndim - 2))
        return alloc(dimshuffle(value, [*batch, "x"]), *kept)
    part = _repeated_part(value, lengths[-2:], offset)
    return part if part is None or len(kept) == 1 else alloc(part, *kept)


def _repeated_part(value: Any, lengths: Sequence[Any], offset: int) -> Any:
    """Return what a matrix, a row or a column that is repeated to `lengths` has on a diagonal; None for
    rows or columns of a number that may be negative.
    """
    if is_whole_matrix(value):
        return diagonal(specify_shape(unbatched(value), (..., *lengths)), offset, -2, -1)
    values, first, cut = _along(value, offset)
    own, count = lengths[::-1] if tensor_type_of(value).broadcastable[-2] else lengths
    if not is_non_negative(count):
        return None
    return specify_shape(values, (..., own))[..., first : add(first, _less(count, cut))]


def _along(v: Any, offset: int) -> tuple[Any, int, int]:
    """Return the elements of rows or columns, the first of them on the diagonal, and how many elements it
    has less because the rows or columns are below or beside it.
    """
    ndim = tensor_type_of(v).ndim
    is_row = tensor_type_of(v).broadcastable[-2]
    values = dimshuffle(v, [*range(ndim - 2), ndim - 1 if is_row else ndim - 2])
    above, below = max(offset, 0), max(-offset, 0)
    return (values, above, below) if is_row else (values, below, above)


@core_rewriter(ExtractDiag)
def diag_of_elementwise_matrices(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(f(A, B, c), k) -> f(diagonal(A, k), diagonal(B, k), c); eye(n) * c -> copies of c.

    Rows and columns of known lengths have a part for each diagonal.
    """
    (x,) = node.inputs
    offset = offset_in(node, x)
    if (
        offset is None
        or x.owner is None
        or not isinstance(x.owner.op, Elemwise)
        or len(fgraph.clients[x]) > 1
    ):
        return None
    if len(x.owner.outputs) != 1 or not _have_diagonals(x.owner.inputs):
        return None
    op, inputs = x.owner.op, x.owner.inputs
    if op.scalar_op == scalar_mul and offset == 0:
        inputs = [v for v in inputs if not is_identity(unbatched(v))] or inputs
    parts = [_part(v, offset, x) for v in inputs]
    found = parts[0] if len(parts) < op.nin else elemwise(op.scalar_op)(*parts)
    if not all(map(is_number, inputs)):
        return found
    return None if len(inputs) == len(x.owner.inputs) else _copies(found, x)


def _have_diagonals(inputs: Sequence[Variable]) -> bool:
    """Return True for numbers and matrices of equal lengths; with rows or columns, if all lengths are known.

    Diagonals of matrices that do not fit may be equally long: the error would be lost.
    """
    if all(is_whole_matrix(v) or is_number(v) for v in inputs):
        first, *others = [v for v in inputs if is_whole_matrix(v)] or inputs
        return all(_have_equal_lengths(first, v) for v in others if is_whole_matrix(v))
    return not any(None in tensor_type_of(v).shape[-2:] for v in inputs)


def _have_equal_lengths(a: Variable, b: Variable) -> bool:
    for axis in (-2, -1):
        lengths = {tensor_type_of(v).shape[axis] for v in (a, b)}
        places = [set(equal_axes(v, tensor_type_of(v).ndim + axis)) for v in (a, b)]
        if (len(lengths) > 1 or None in lengths) and places[0].isdisjoint(places[1]):
            return False
    return True


def _part(v: Any, offset: int, matrices: Variable) -> Any:
    """Return what is on the diagonals of `matrices` of the operand `v`, with one axis less."""
    if is_whole_matrix(v):
        return diagonal(v, offset, -2, -1)
    ndim = tensor_type_of(v).ndim
    if is_number(v):
        return dimshuffle(v, list(range(ndim - 1)))
    kept, first, _ = _along(v, offset)
    length = length_of_diagonal(matrices, offset)
    return kept if (first, length) == (0, kept.type.shape[-1]) else kept[..., first : first + length]


def _copies(number: Any, matrices: Variable) -> Any:
    batch = [folded_shape_i(matrices, axis) for axis in range(tensor_type_of(matrices).ndim - 2)]
    return alloc(number, *batch, length_of_diagonal(matrices, 0))


@core_rewriter(ExtractDiag)
def diag_of_dot(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(A @ B) -> sum(A * B.T, 1), of the rows and columns that meet on the diagonal."""
    (x,) = node.inputs
    factors, offset = factors_of(x), offset_in(node, x)
    if factors is None or offset is None or len(fgraph.clients[x]) > 1 or dtype_of(x) == "bool":
        return None
    if not sums_alike(*factors):
        return None
    length = length_of_diagonal(x, offset)
    rows = _some(factors[0], max(-offset, 0), length)
    columns = _some(turned(factors[1]), max(offset, 0), length)
    return cast(sum_over(mul(rows, columns), -1), dtype_of(x))


def _some(x: Any, first: int, length: Any) -> Any:
    """Return `length` rows of matrices, from the row `first` on."""
    if isinstance(length, int) and tensor_type_of(x).shape[-2] == length and not first:
        return x
    return x[..., first : first + length, :]


DIAGONALS = (
    extract_diag_of_transpose,
    local_extract_diag_of_alloc_diag,
    local_extract_diag_of_eye,
    diag_of_alloc,
    diag_of_dot,
    diag_of_elementwise_matrices,
)

extract_diag_lift_pass = out2in(*DIAGONALS, name="extract_diag_lift_pass")
"""The rewrites of diagonals alone, on one walk through a graph. Their tag in the database is this name."""
