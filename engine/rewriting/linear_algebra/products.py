"""Rewrites of products, diagonals, blocks and exponentials of matrices with a known structure."""

from __future__ import annotations

from typing import Any

from engine.assumptions import DIAGONAL, ORTHOGONAL, SYMMETRIC, check_assumption
from engine.assumptions.rules.products import are_transposed, factors_of, transposed
from engine.assumptions.rules.rule import has_square_matrices, is_whole_matrix
from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.diagonals import AllocDiag, ExtractDiag
from engine.rewriting.linear_algebra.core_rewriter import (
    as_like,
    core_rewriter,
    diagonal_matrix,
    is_identity,
    is_main,
    is_number,
    main_diagonal,
    node_by,
    unbatched,
)
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import mul as scalar_mul
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import number
from engine.tensor.creation import alloc
from engine.tensor.diagonals import Eye, eye
from engine.tensor.elemwise import DimShuffle, Elemwise, dimshuffle, elemwise
from engine.tensor.joining import concatenate
from engine.tensor.linalg.exponential import Expm
from engine.tensor.linalg.matrices import BlockDiagonal, KroneckerProduct
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.math import exp, mul
from engine.tensor.products import Dot
from engine.tensor.shape import expand_dims, folded_shape_i, reshape


@node_rewriter([BlockDiagonal])
def fuse_blockdiagonal(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """block_diag(block_diag(A, B), C) -> block_diag(A, B, C)."""
    inner = [
        v.owner.inputs if v.owner and isinstance(v.owner.op, BlockDiagonal) else [v] for v in node.inputs
    ]
    blocks = [block for several in inner for block in several]
    if len(blocks) == len(node.inputs):
        return None
    return [BlockDiagonal(len(blocks))(*blocks)]


@core_rewriter(ExtractDiag)
def diag_of_elementwise(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(f(A, B)) -> f(diagonal(A), diagonal(B)), for square matrices; eye(n) * A -> that of A."""
    x = node.inputs[0]
    if x.owner is None or not isinstance(x.owner.op, Elemwise) or not is_main(node):
        return None
    if not (has_square_matrices(x) or check_assumption(fgraph, x, SYMMETRIC)) or len(fgraph.clients[x]) > 1:
        return None
    op, inputs = x.owner.op, x.owner.inputs
    if op.scalar_op == scalar_mul:
        inputs = [v for v in inputs if not is_identity(unbatched(v))]
    if not any(is_whole_matrix(v) or not is_number(v) for v in inputs):
        return None
    parts = [_diagonal_of(v) for v in inputs]
    return parts[0] if len(parts) == 1 else elemwise(op.scalar_op)(*parts)


def _diagonal_of(v: Any) -> Any:
    """Return the main diagonals of matrices that may broadcast along one axis."""
    if is_whole_matrix(v):
        return main_diagonal(v)
    ndim = tensor_type_of(v).ndim
    dropped = ndim - 1 if tensor_type_of(v).broadcastable[-1] else ndim - 2
    return dimshuffle(v, [axis for axis in range(ndim) if axis != dropped])


@core_rewriter(ExtractDiag)
def diag_of_blockdiag(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(block_diag(A, B)) -> the diagonals of A and B, one after the other, for square matrices."""
    blocks = node_by(node.inputs[0], BlockDiagonal)
    if blocks is None or not is_main(node) or not all(map(has_square_matrices, blocks.inputs)):
        return None
    return concatenate([main_diagonal(block) for block in blocks.inputs], -1)


@core_rewriter(ExtractDiag)
def diag_of_kronecker(fgraph: FunctionGraph, node: Apply) -> Any:
    """diagonal(kron(A, B)) -> the products of the elements of both diagonals, for square matrices."""
    pair = node_by(node.inputs[0], KroneckerProduct)
    if pair is None or not is_main(node) or not all(map(has_square_matrices, pair.inputs)):
        return None
    return _outer_product(*map(main_diagonal, pair.inputs)) if pair.inputs[0].type.ndim == 2 else None


def _outer_product(a: Any, b: Any) -> Any:
    """Return the products of all elements of two vectors, as a vector."""
    products = mul(expand_dims(a, 1), expand_dims(b, 0))
    return reshape(products, (mul(folded_shape_i(a, 0), folded_shape_i(b, 0)),))


@core_rewriter(KroneckerProduct)
def kron_of_diagonal_to_diagonal(fgraph: FunctionGraph, node: Apply) -> Any:
    """kron(diag(a), diag(b)) -> the diagonal matrix of the products of their elements."""
    if tensor_type_of(node.inputs[0]).ndim != 2:
        return None
    if not all(check_assumption(fgraph, x, DIAGONAL) for x in node.inputs):
        return None
    return diagonal_matrix(_outer_product(*map(main_diagonal, node.inputs)))


@core_rewriter(Expm)
def expm_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """expm(diag(d)) -> diag(exp(d))."""
    (x,) = node.inputs
    if is_number(x):
        return exp(x)
    return diagonal_matrix(exp(main_diagonal(x))) if check_assumption(fgraph, x, DIAGONAL) else None


@core_rewriter(Dot)
def orthogonal_dot_transpose_to_eye(fgraph: FunctionGraph, node: Apply) -> Any:
    """Q @ Q.T -> a unit matrix, for an orthogonal Q."""
    factors = factors_of(node.outputs[0])
    if factors is None or not are_transposed(*factors):
        return None
    x = factors[0]
    if not check_assumption(fgraph, x, ORTHOGONAL):
        return None
    count = tensor_type_of(x).ndim - 2
    one = eye(folded_shape_i(x, -1), dtype=dtype_of(x))
    return alloc(one, *[folded_shape_i(x, axis) for axis in range(count + 2)]) if count else one


@core_rewriter(Dot)
def dot_of_diagonal(fgraph: FunctionGraph, node: Apply) -> Any:
    """diag(d) @ A -> the rows of A, multiplied by the elements of d; A @ diag(d) -> the columns.

    Of vectors: diag(d) @ x -> d * x, and x @ diag(d). diag(a) @ diag(b) -> diag(a * b). The lengths that the
    product compares are compared still: an axis of length 1 does not broadcast.
    """
    factors = factors_of(node.outputs[0]) or (node.inputs if isinstance(node.op, Dot) else None)
    if factors is None:
        return None
    left, right = map(unbatched, factors)
    is_left, is_right = (_is_made_diagonal(fgraph, x) for x in (left, right))
    if is_left and is_right and tensor_type_of(node.outputs[0]).ndim == 2:
        return diagonal_matrix(_scaled(main_diagonal(right), -1, left, is_first=True))
    if is_left:
        return _scaled(factors[1], max(-2, -tensor_type_of(factors[1]).ndim), left, is_first=True)
    return _scaled(factors[0], -1, right, is_first=False) if is_right else None


def _is_made_diagonal(fgraph: FunctionGraph, x: Any) -> bool:
    """Return True for a diagonal matrix that is made of its diagonal."""
    return bool(node_by(x, AllocDiag, Eye)) and check_assumption(fgraph, x, DIAGONAL)


def _scaled(x: Any, axis: int, diagonal: Any, is_first: bool) -> Any:
    """Return `x` multiplied along `axis` by the elements of the matrix `diagonal`, the factor that
    `is_first` or not.
    """
    known = tensor_type_of(diagonal).shape[-1], tensor_type_of(x).shape[axis]
    if is_identity(diagonal):
        return _of_length(x, axis, node_by(diagonal, Eye).inputs[0])
    factor = main_diagonal(diagonal)
    if known[0] != 1 and known[1] == 1:
        factor = _of_length(factor, -1, number(1, "int64"))
    if known[0] == 1 and known[1] != 1:
        x = _of_length(x, axis, number(1, "int64"))
    if tensor_type_of(x).ndim > 1:
        factor = expand_dims(factor, -3 - axis)
    return mul(factor, x) if is_first else mul(x, factor)


def _of_length(x: Any, axis: int, length: Any) -> Any:
    return specify_shape(x, [*[None] * (x.type.ndim + axis), length, *[None] * (-1 - axis)])


@node_rewriter([DimShuffle])
def useless_symmetric_transpose(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """A.T -> A, for a symmetric A."""
    x = transposed(node.outputs[0])
    if x is None or not check_assumption(fgraph, x, SYMMETRIC):
        return None
    return [as_like(x, node.outputs[0])]


PRODUCTS = (
    fuse_blockdiagonal,
    diag_of_elementwise,
    diag_of_blockdiag,
    diag_of_kronecker,
    kron_of_diagonal_to_diagonal,
    expm_of_diag,
    orthogonal_dot_transpose_to_eye,
    dot_of_diagonal,
    useless_symmetric_transpose,
)
