"""Rewrites of equations: those of structured matrices, and many with one matrix."""

from __future__ import annotations

from typing import Any

from engine.assumptions import DIAGONAL, ORTHOGONAL, POSITIVE_DEFINITE, check_assumption
from engine.assumptions.rules.products import transposed
from engine.assumptions.rules.rule import has_square_matrices
from engine.graph import Apply, FunctionGraph
from engine.inner.tridiagonal import SolveLUFactorTridiagonal
from engine.rewriting.linear_algebra.core_rewriter import (
    core_of,
    core_rewriter,
    is_number,
    main_diagonal,
    node_by,
    structure_of,
    turned,
)
from engine.scalar import second
from engine.tensor.blockwise import batched
from engine.tensor.elemwise import apply_elemwise, dimshuffle
from engine.tensor.joining import concatenate
from engine.tensor.linalg.control import SolveSylvester
from engine.tensor.linalg.equations import (
    CholeskySolve,
    MatrixInverse,
    Solve,
    SolveBase,
    SolveTriangular,
    cho_solve,
    solve,
)
from engine.tensor.linalg.factorizations import Cholesky, cholesky
from engine.tensor.linalg.matrices import BlockDiagonal, block_diag
from engine.tensor.matching import tensor_type_of
from engine.tensor.math import add, sqr, true_div
from engine.tensor.products import matmul
from engine.tensor.shape import expand_dims, folded_shape_i, reshape


@core_rewriter(SolveBase)
def scalar_solve_to_division(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(A, b) -> b / A, for a matrix of one element."""
    A: Any
    A, b = node.inputs
    return _quotient(node, A[..., 0] if core_of(node).b_ndim == 1 else A, b) if is_number(A) else None


@core_rewriter(SolveBase)
def diagonal_solve_to_division(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(diag(d), b) -> b / d."""
    A, b = node.inputs
    if is_number(A) or not check_assumption(fgraph, A, DIAGONAL):
        return None
    values = main_diagonal(A)
    return _quotient(node, values if core_of(node).b_ndim == 1 else expand_dims(values, -1), b)


def _quotient(node: Apply, values: Any, b: Any) -> Any:
    """Return `b` divided by the diagonal `values` as the Op of `node` reads them; None for another Op."""
    op = core_of(node)
    if isinstance(op, SolveTriangular) and op.unit_diagonal:
        return apply_elemwise(second, values, b)
    if isinstance(op, CholeskySolve):
        return true_div(b, sqr(values))
    return true_div(b, values) if isinstance(op, Solve | SolveTriangular) else None


@core_rewriter(SolveBase)
def solve_of_inv_to_matmul(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(inv(A), b) -> A @ b."""
    inverse = node_by(node.inputs[0], MatrixInverse) if isinstance(core_of(node), Solve) else None
    return None if inverse is None else _product(inverse.inputs[0], node.inputs[1], core_of(node).b_ndim)


def _product(A: Any, b: Any, b_ndim: int) -> Any:
    """Return the products of the matrices `A` with the vectors or matrices `b`."""
    if b_ndim == 2 or (A.type.ndim, b.type.ndim) == (2, 1):
        return matmul(A, b)
    return matmul(A, expand_dims(b, -1))[..., 0]


@core_rewriter(SolveBase)
def orthogonal_solve_to_transpose_matmul(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(Q, b) -> Q.T @ b, for an orthogonal Q."""
    A, b = node.inputs
    if not isinstance(core_of(node), Solve) or not check_assumption(fgraph, A, ORTHOGONAL):
        return None
    return _product(turned(A), b, core_of(node).b_ndim)


@core_rewriter(Solve)
def generic_solve_to_solve_triangular(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(A, b) -> the solver for what A is known to be: triangular, such as a Cholesky factor, or
    positive definite.
    """
    op, (A, b) = core_of(node), node.inputs
    if op.assume_a != "gen":
        return None
    structure = structure_of(fgraph, A)
    if structure in ("gen", "sym"):
        return None
    return solve(A, b, assume_a=structure, lower=structure == "pos", b_ndim=op.b_ndim)


@core_rewriter(Solve)
def psd_solve_to_chol_solve(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(A, b, assume_a="pos") -> the solution by the Cholesky factor of A, which others may need too."""
    op, (A, b) = core_of(node), node.inputs
    if op.assume_a != "pos":
        return None
    lower = op.lower or check_assumption(fgraph, A, POSITIVE_DEFINITE)
    return cho_solve((cholesky(A, lower=lower), lower), b, b_ndim=op.b_ndim)


@core_rewriter(SolveTriangular)
def paired_triangular_solves_to_cho_solve(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve_triangular(L.T, solve_triangular(L, b)) -> cho_solve(L, b), for a Cholesky factor L."""
    op, (A, halfway) = core_of(node), node.inputs
    factor, inner = transposed(A), node_by(halfway, SolveTriangular)
    if factor is None or inner is None or inner.inputs[0] is not factor or node_by(factor, Cholesky) is None:
        return None
    first = core_of(inner)
    if op.unit_diagonal or first.unit_diagonal or op.lower or not first.lower or op.b_ndim != first.b_ndim:
        return None
    return cho_solve((factor, True), inner.inputs[1], b_ndim=op.b_ndim)


@core_rewriter(SolveBase)
def block_diag_solve_to_block_diag_solves(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(block_diag(A, B), b) -> the solutions for the parts of b, for square blocks of known lengths."""
    b: Any
    op, (A, b) = core_of(node), node.inputs
    blocks = node_by(A, BlockDiagonal)
    if blocks is None or not all(map(has_square_matrices, blocks.inputs)):
        return None
    others = node_by(b, BlockDiagonal)
    if op.b_ndim == 2 and others is not None and _have_lengths(others.inputs, blocks.inputs):
        pairs = zip(blocks.inputs, others.inputs, strict=True)
        return block_diag(*(batched(op, matrix, right) for matrix, right in pairs))
    found, start = [], 0
    for matrix in blocks.inputs:
        stop = start + matrix.type.shape[-1]
        part = b[..., start:stop] if op.b_ndim == 1 else b[..., start:stop, :]
        found.append(batched(op, matrix, part))
        start = stop
    return concatenate(found, -op.b_ndim)


def _have_lengths(matrices: Any, others: Any) -> bool:
    """Return True if the matrices have the lengths of the others."""
    return [m.type.shape[-2:] for m in matrices] == [other.type.shape[-2:] for other in others]


@core_rewriter(SolveBase, SolveLUFactorTridiagonal)
def batched_vector_b_solve_to_matrix_b_solve(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(A, vectors) -> solve(A, the matrix whose columns they are), for one A or its factors."""
    op, b = core_of(node), node.inputs[-1]
    if op.b_ndim != 1 or not _has_one_matrix(node):
        return None
    lengths = [folded_shape_i(b, axis) for axis in range(tensor_type_of(b).ndim)]
    rows = reshape(b, (-1, lengths[-1]))
    return reshape(turned(_of_columns(op)(*_without_batch(node), turned(rows))), lengths)


@core_rewriter(SolveBase, SolveLUFactorTridiagonal)
def batched_matrix_b_solve_to_one_solve(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(A, matrices) -> solve(A, one matrix with the columns of all), for one A or its factors."""
    op, b = core_of(node), node.inputs[-1]
    if op.b_ndim != 2 or not _has_one_matrix(node):
        return None
    ndim = tensor_type_of(b).ndim
    beside = dimshuffle(b, [ndim - 2, *range(ndim - 2), ndim - 1])
    lengths = [folded_shape_i(beside, axis) for axis in range(ndim)]
    columns = reshape(beside, (lengths[0], -1))
    found = reshape(_of_columns(op)(*_without_batch(node), columns), lengths)
    return dimshuffle(found, [*range(1, ndim - 1), 0, ndim - 1])


def _has_one_matrix(node: Apply) -> bool:
    """Return True for the equations of one matrix with a batch of right-hand sides."""
    *matrix, b = node.inputs
    count = tensor_type_of(b).ndim - core_of(node).b_ndim
    return count > 0 and all(all(tensor_type_of(v).broadcastable[:count]) for v in matrix)


def _without_batch(node: Apply) -> list[Any]:
    """Return the matrix of these equations, or its factors, without the axes of the batch."""
    *matrix, b = node.inputs
    count = tensor_type_of(b).ndim - core_of(node).b_ndim
    return [dimshuffle(v, range(count, tensor_type_of(v).ndim)) for v in matrix]


def _of_columns(op: Any) -> Any:
    """Return the Op that solves as `op` does, for a matrix of right-hand sides."""
    return type(op)(**{**op.props_dict(), "b_ndim": 2})


@core_rewriter(SolveSylvester)
def solve_sylvester_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve_sylvester(diag(a), diag(b), C) -> the elements of C divided by the sums of those of a and b."""
    A, B, C = node.inputs
    if not (check_assumption(fgraph, A, DIAGONAL) and check_assumption(fgraph, B, DIAGONAL)):
        return None
    sums = add(expand_dims(main_diagonal(A), -1), expand_dims(main_diagonal(B), -2))
    return true_div(C, sums)


SOLVERS = (
    scalar_solve_to_division,
    diagonal_solve_to_division,
    solve_of_inv_to_matmul,
    orthogonal_solve_to_transpose_matmul,
    generic_solve_to_solve_triangular,
    block_diag_solve_to_block_diag_solves,
    psd_solve_to_chol_solve,
    paired_triangular_solves_to_cho_solve,
    solve_sylvester_of_diag,
)
SOLVERS_OF_BATCHES = (batched_vector_b_solve_to_matrix_b_solve, batched_matrix_b_solve_to_one_solve)
