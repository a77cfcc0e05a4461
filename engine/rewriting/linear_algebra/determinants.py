"""Rewrites of determinants: of structured matrices, and by a decomposition that is computed anyway.

A block or factor that is not square is refused when the function runs. Without the rewrite the determinant
would be 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from engine.assumptions import (
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    POSITIVE_DEFINITE,
    UPPER_TRIANGULAR,
    check_assumption,
)
from engine.assumptions.rules.rule import has_square_matrices
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.linear_algebra.core_rewriter import (
    as_like,
    core_of,
    core_rewriter,
    main_diagonal,
    node_by,
)
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import abs as scalar_abs
from engine.scalar import log as scalar_log
from engine.scalar import sign as scalar_sign
from engine.scalar import sqr as scalar_sqr
from engine.tensor.blockwise import Blockwise
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import alloc, arange
from engine.tensor.elemwise import Elemwise, cast
from engine.tensor.linalg.elimination import LU, LUFactor
from engine.tensor.linalg.equations import MatrixInverse
from engine.tensor.linalg.factorizations import Cholesky, Det, SLogDet, det, slogdet
from engine.tensor.linalg.matrices import BlockDiagonal, KroneckerProduct
from engine.tensor.linalg.orthogonal import QR
from engine.tensor.linalg.singular_values import SVD
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, eq, ge, log, mul, neg, sign, sqr, switch, true_div
from engine.tensor.math import pow as power
from engine.tensor.reduction import prod
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import folded_shape_i


@node_rewriter([Det, Blockwise])
def slogdet_specialization(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """sign(det(A)), log(det(A)) and log(abs(det(A))) -> the sign and the logarithm of slogdet(A): a product
    of the diagonal may overflow.
    """
    if not isinstance(core_of(node), Det):
        return None
    signs = _clients(fgraph, node.outputs[0], scalar_sign)
    logarithms = _clients(fgraph, node.outputs[0], scalar_log)
    sizes = [
        v for a in _clients(fgraph, node.outputs[0], scalar_abs) for v in _clients(fgraph, a, scalar_log)
    ]
    if not (signs or logarithms or sizes):
        return None
    found, logarithm = slogdet(node.inputs[0])
    natural = switch(ge(found, 0), logarithm, float("nan"))
    replaced = [(v, found) for v in signs] + [(v, natural) for v in logarithms]
    return {old: as_like(new, old) for old, new in [*replaced, *((v, logarithm) for v in sizes)]}


def _clients(fgraph: FunctionGraph, x: Variable, op: Any) -> list[Variable]:
    """Return what the graph computes of `x` by the elementwise `op`."""
    return [
        client.outputs[0]
        for client, _ in fgraph.clients[x]
        if isinstance(client.op, Elemwise) and client.op.scalar_op == op
    ]


@core_rewriter(Det)
def det_of_blockdiag(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(block_diag(A, B)) -> det(A) * det(B)."""
    blocks = node_by(node.inputs[0], BlockDiagonal)
    return None if blocks is None else reduce(mul, map(det, blocks.inputs))


@core_rewriter(SLogDet)
def slogdet_of_blockdiag(fgraph: FunctionGraph, node: Apply) -> Any:
    """slogdet(block_diag(A, B)) -> the product of the signs, the sum of the logarithms."""
    blocks = node_by(node.inputs[0], BlockDiagonal)
    if blocks is None:
        return None
    signs, logarithms = zip(*map(slogdet, blocks.inputs), strict=True)
    return reduce(mul, signs), reduce(add, logarithms)


@core_rewriter(Det)
def det_of_kronecker(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(kron(A, B)) -> det(A) ** m * det(B) ** n, for n rows of A and m rows of B."""
    pair = _kronecker(node)
    if pair is None:
        return None
    A, B = pair
    return mul(power(det(A), folded_shape_i(B, 0)), power(det(B), folded_shape_i(A, 0)))


@core_rewriter(SLogDet)
def slogdet_of_kronecker(fgraph: FunctionGraph, node: Apply) -> Any:
    """slogdet(kron(A, B)) -> the powers of the signs, the multiples of the logarithms."""
    pair = _kronecker(node)
    if pair is None:
        return None
    (sign_a, log_a), (sign_b, log_b) = map(slogdet, pair)
    rows_a, rows_b = (folded_shape_i(x, 0) for x in pair)
    signs = mul(power(sign_a, rows_b), power(sign_b, rows_a))
    return signs, add(mul(log_a, rows_b), mul(log_b, rows_a))


def _kronecker(node: Apply) -> Sequence[Any] | None:
    """Return the two matrices of whose product `node` takes the determinant."""
    product = node_by(node.inputs[0], KroneckerProduct)
    return product.inputs if product is not None and product.inputs[0].type.ndim == 2 else None


@core_rewriter(Det)
def det_of_triangular(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(T) -> the product of the diagonal, for a triangular T."""
    (x,) = node.inputs
    return prod(main_diagonal(x), -1) if _is_triangular(fgraph, x) else None


@core_rewriter(SLogDet)
def slogdet_of_triangular(fgraph: FunctionGraph, node: Apply) -> Any:
    """slogdet(T) -> the signs of the diagonal, and its logarithms."""
    (x,) = node.inputs
    if not _is_triangular(fgraph, x):
        return None
    values = main_diagonal(x)
    return prod(sign(values), -1), sum_over(log(absolute(values)), -1)


def _is_triangular(fgraph: FunctionGraph, x: Variable) -> bool:
    return any(check_assumption(fgraph, x, key) for key in (LOWER_TRIANGULAR, UPPER_TRIANGULAR))


@core_rewriter(Det)
def det_of_inv(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(inv(A)) -> 1 / det(A)."""
    inverse = node_by(node.inputs[0], MatrixInverse)
    return None if inverse is None else true_div(1.0, det(inverse.inputs[0]))


@core_rewriter(SLogDet)
def slogdet_of_inv(fgraph: FunctionGraph, node: Apply) -> Any:
    """slogdet(inv(A)) -> the sign of det(A), and minus its logarithm."""
    inverse = node_by(node.inputs[0], MatrixInverse)
    if inverse is None:
        return None
    found, logarithm = slogdet(inverse.inputs[0])
    return found, neg(logarithm)


@core_rewriter(Det)
def det_of_factorized_matrix(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(Q) -> 1 if only its size counts, for an orthogonal Q; det(L) -> 1, for L of an LU factorization."""
    (x,) = node.inputs
    factors = node_by(x, LU)
    if factors is not None and not core_of(factors).permute_l and x.index == 1 and has_square_matrices(x):
        return _ones(x)
    is_orthogonal = _only_size_counts(fgraph, node) and check_assumption(fgraph, x, ORTHOGONAL)
    return _ones(x) if is_orthogonal else None


def _ones(x: Any) -> Any:
    """Return a 1 for each matrix."""
    one = cast(as_tensor_variable(1.0), x.type.dtype)
    return (
        alloc(one, *[folded_shape_i(x, axis) for axis in range(x.type.ndim - 2)]) if x.type.ndim > 2 else one
    )


@core_rewriter(Det)
def det_of_matrix_factorized_elsewhere(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(A) -> a product of what a decomposition of A, which is computed anyway, has on its diagonal.

    Decompositions that do not show the sign are used if only the size counts. A Cholesky factor is used if A
    is known to be positive definite: it would be NaN for another matrix.
    """
    (x,) = node.inputs
    needs_sign = not _only_size_counts(fgraph, node)
    for client, _ in fgraph.clients[x]:
        found = _by_decomposition(fgraph, client, needs_sign)
        if found is not None:
            return found
    return None


def _by_decomposition(fgraph: FunctionGraph, client: Apply, needs_sign: bool) -> Any:
    op, outputs = core_of(client), client.outputs
    if isinstance(op, Cholesky) and check_assumption(fgraph, client.inputs[0], POSITIVE_DEFINITE):
        return sqr(prod(main_diagonal(outputs[0]), -1))
    if isinstance(op, LUFactor):
        factors, pivots = outputs
        signs = switch(eq(pivots, arange(folded_shape_i(pivots, -1))), 1.0, -1.0)
        return mul(prod(main_diagonal(factors), -1), prod(signs, -1))
    if needs_sign or not (isinstance(op, LU | SVD | QR) and has_square_matrices(client.inputs[0])):
        return None
    if isinstance(op, SVD):
        return prod(outputs[1 if op.compute_uv else 0], -1)
    return None if isinstance(op, QR) and op.pivoting else prod(main_diagonal(outputs[-1]), -1)


def _only_size_counts(fgraph: FunctionGraph, node: Apply) -> bool:
    """Return True if nothing but absolute values and squares of the output are needed."""
    return all(
        isinstance(client.op, Elemwise) and client.op.scalar_op in (scalar_abs, scalar_sqr)
        for client, _ in fgraph.clients[node.outputs[0]]
    )


DETERMINANTS = (
    slogdet_specialization,
    det_of_inv,
    slogdet_of_inv,
    det_of_blockdiag,
    slogdet_of_blockdiag,
    det_of_kronecker,
    slogdet_of_kronecker,
    det_of_factorized_matrix,
    det_of_triangular,
    slogdet_of_triangular,
    det_of_matrix_factorized_elsewhere,
)
