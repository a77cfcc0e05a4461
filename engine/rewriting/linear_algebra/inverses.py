"""Rewrites of inverses: of known matrices, and products with them, which are solutions of equations."""

from __future__ import annotations

from typing import Any

from engine.assumptions import DIAGONAL, ORTHOGONAL, check_assumption
from engine.assumptions.rules.products import transposed
from engine.graph import Apply, FunctionGraph, Output, Variable
from engine.rewriting.linear_algebra.core_rewriter import (
    core_ndims,
    core_of,
    core_rewriter,
    diagonal_matrix,
    main_diagonal,
    node_by,
    structure_of,
    turned,
    unbatched,
)
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.elemwise import DimShuffle
from engine.tensor.linalg.equations import MatrixInverse, inv, solve
from engine.tensor.linalg.factorizations import Cholesky
from engine.tensor.linalg.matrices import BlockDiagonal, KroneckerProduct, block_diag, kron
from engine.tensor.linalg.singular_values import MatrixPinv
from engine.tensor.matching import tensor_type_of
from engine.tensor.math import abs as absolute
from engine.tensor.math import le, mul, reciprocal, switch
from engine.tensor.products import Dot
from engine.tensor.reduction import max as largest
from engine.tensor.shape import expand_dims

_LEAST_SHARE = 1e-15
"""A singular value below this share of the largest counts as 0, as in numpy.linalg.pinv."""


@node_rewriter([DimShuffle])
def transpose_of_inv(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """inv(A).T -> inv(A.T)."""
    inverse = transposed(node.outputs[0])
    found = None if inverse is None else node_by(inverse, MatrixInverse)
    return None if found is None else [inv(turned(found.inputs[0]))]


@core_rewriter(MatrixInverse, MatrixPinv)
def inv_of_inv(fgraph: FunctionGraph, node: Apply) -> Variable | None:
    """inv(inv(A)) -> A."""
    inner = node_by(node.inputs[0], MatrixInverse, MatrixPinv)
    return None if inner is None else inner.inputs[0]


@core_rewriter(MatrixInverse, MatrixPinv)
def inv_of_orthogonal_to_transpose(fgraph: FunctionGraph, node: Apply) -> Any:
    """inv(Q) -> Q.T, for an orthogonal Q."""
    (x,) = node.inputs
    return turned(x) if check_assumption(fgraph, x, ORTHOGONAL) else None


@core_rewriter(MatrixInverse, MatrixPinv)
def inv_of_diag_to_diag_reciprocal(fgraph: FunctionGraph, node: Apply) -> Any:
    """inv(diag(d)) -> diag(1 / d); 0 instead of what is infinite in a pseudoinverse."""
    (x,) = node.inputs
    if not check_assumption(fgraph, x, DIAGONAL):
        return None
    values = main_diagonal(x)
    inverses = reciprocal(values)
    if isinstance(core_of(node), MatrixPinv):
        least = mul(largest(absolute(values), -1, keepdims=True), _LEAST_SHARE)
        inverses = switch(le(absolute(values), least), 0.0, inverses)
    return diagonal_matrix(inverses)


@core_rewriter(MatrixInverse, MatrixPinv, Cholesky)
def lift_linalg_of_expanded_matrices(fgraph: FunctionGraph, node: Apply) -> Any:
    """f(block_diag(A, B)) -> block_diag(f(A), f(B)), and of kron, for inverses and Cholesky factors."""
    blocks = node_by(node.inputs[0], BlockDiagonal)
    if blocks is not None:
        return block_diag(*(_applied(node, matrix) for matrix in blocks.inputs))
    product = node_by(node.inputs[0], KroneckerProduct)
    return None if product is None else kron(*(_applied(node, matrix) for matrix in product.inputs))


@core_rewriter(MatrixInverse, MatrixPinv, Cholesky)
def lift_linalg_of_single_matrix(fgraph: FunctionGraph, node: Apply) -> Any:
    """f(A[None]) -> f(A)[None], for inverses and Cholesky factors: a product hides behind the axis."""
    (x,) = node.inputs
    matrix = unbatched(x)
    if matrix is x:
        return None
    return expand_dims(core_of(node)(matrix), list(range(tensor_type_of(x).ndim - 2)))


def _applied(node: Apply, matrix: Any) -> Any:
    op = core_of(node) if matrix.type.ndim == 2 else node.op
    return op(matrix)


@core_rewriter(Dot)
def inv_to_solve(fgraph: FunctionGraph, node: Apply) -> Any:
    """inv(A) @ b -> solve(A, b) and b @ inv(A) -> solve(A.T, b.T).T, if only products need the inverse."""
    (left, right), (left_ndim, right_ndim) = node.inputs, core_ndims(node)
    inverse = _only_multiplied(fgraph, left)
    if inverse is not None:
        A = inverse.inputs[0]
        return solve(A, right, assume_a=structure_of(fgraph, A), b_ndim=right_ndim)
    inverse = _only_multiplied(fgraph, right)
    if inverse is None:
        return None
    A = inverse.inputs[0]
    structure = structure_of(fgraph, A)
    if left_ndim == 1:
        return solve(A, left, assume_a=structure, transposed=True, b_ndim=1)
    return turned(solve(A, turned(left), assume_a=structure, transposed=True, b_ndim=2))


def _only_multiplied(fgraph: FunctionGraph, variable: Variable) -> Any:
    """Return the node of an inverse that nothing but products of matrices needs."""
    node = node_by(variable, MatrixInverse)
    if node is None:
        return None
    clients = [client for client, _ in fgraph.clients[variable]]
    is_needed = any(
        isinstance(client.op, Output) or not isinstance(core_of(client), Dot) for client in clients
    )
    return None if is_needed else node


INVERSES = (
    inv_of_inv,
    inv_of_orthogonal_to_transpose,
    inv_of_diag_to_diag_reciprocal,
    transpose_of_inv,
    inv_to_solve,
    lift_linalg_of_expanded_matrices,
    lift_linalg_of_single_matrix,
)
