"""Rewrites of decompositions: of diagonal matrices, of `L @ L.T`, and those computed twice."""

from __future__ import annotations

from math import nan
from typing import Any

from engine.assumptions import DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, check_assumption
from engine.assumptions.rules.products import factors_of, transposed
from engine.graph import Apply, FunctionGraph
from engine.rewriting.linear_algebra.core_rewriter import (
    core_of,
    core_rewriter,
    diagonal_matrix,
    is_number,
    main_diagonal,
    node_by,
    turned,
)
from engine.tensor.creation import arange, zeros_like
from engine.tensor.diagonals import eye
from engine.tensor.elemwise import cast
from engine.tensor.linalg.eigen import Eigh, Eigvalsh
from engine.tensor.linalg.elimination import LU, LUFactor
from engine.tensor.linalg.factorizations import Cholesky
from engine.tensor.linalg.orthogonal import QR
from engine.tensor.linalg.schur_forms import QZ, Schur
from engine.tensor.linalg.singular_values import SVD, svd
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.math import abs as absolute
from engine.tensor.math import and_, ge, gt, le, lt, mul, neg, neq, or_, sign, sqrt, switch, true_div
from engine.tensor.ordering import argsort, sort
from engine.tensor.quantifiers import all as all_of
from engine.tensor.shape import expand_dims, folded_shape_i


@core_rewriter(Cholesky)
def cholesky_ldotlt(fgraph: FunctionGraph, node: Apply) -> Any:
    """cholesky(L @ L.T) -> L, with the signs that make its diagonal positive, for a triangular L.

    The same of `U.T @ U`. It is NaN if L is singular.
    """
    factors = factors_of(node.inputs[0])
    if factors is None:
        return None
    left, right = factors
    if transposed(right) is left and check_assumption(fgraph, left, LOWER_TRIANGULAR):
        lower = left
    elif transposed(left) is right and check_assumption(fgraph, right, UPPER_TRIANGULAR):
        lower = turned(right)
    else:
        return None
    if node_by(lower, Cholesky) is None:
        if core_of(node).on_error == "raise":
            return None
        values = main_diagonal(lower)
        signs = switch(all_of(neq(values, 0), -1, keepdims=True), sign(values), nan)
        lower = mul(lower, expand_dims(signs, -2))
    return lower if core_of(node).lower else turned(lower)


@core_rewriter(Cholesky)
def cholesky_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """cholesky(diag(d)) -> diag(sqrt(d))."""
    (x,) = node.inputs
    if core_of(node).on_error == "raise":
        return None
    if is_number(x):
        return sqrt(x)
    return diagonal_matrix(sqrt(main_diagonal(x))) if check_assumption(fgraph, x, DIAGONAL) else None


@core_rewriter(SVD)
def svd_uv_merge(fgraph: FunctionGraph, node: Apply) -> Any:
    """Singular values alone are those of a decomposition with vectors, if there is one; vectors that
    nothing needs are not computed.
    """
    op, (x,) = core_of(node), node.inputs
    if op.compute_uv:
        left, values, right = node.outputs
        if fgraph.clients[left] or fgraph.clients[right]:
            return None
        return left, svd(x, op.full_matrices, compute_uv=False), right
    for client, _ in fgraph.clients[x]:
        if isinstance(core_of(client), SVD) and core_of(client).compute_uv:
            left, values, right = client.outputs
            if fgraph.clients[left] or fgraph.clients[right]:
                return values
    return None


@core_rewriter(SVD)
def svd_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """svd(diag(d)) -> the sizes of d in descending order, and unit vectors in that order."""
    if not _is_one_diagonal(fgraph, node):
        return None
    values = main_diagonal(node.inputs[0])
    order = argsort(neg(absolute(values)))
    sizes = absolute(values)[order]
    if not core_of(node).compute_uv:
        return sizes
    vectors = _unit_vectors(values, order)
    signs = switch(lt(values[order], 0), -1, 1)
    return vectors, sizes, mul(turned(vectors), expand_dims(signs, -1))


def _is_one_diagonal(fgraph: FunctionGraph, node: Apply) -> bool:
    """Return True if the inputs are diagonal matrices, not batches of them."""
    return all(tensor_type_of(x).ndim == 2 and check_assumption(fgraph, x, DIAGONAL) for x in node.inputs)


def _unit_vectors(values: Any, order: Any) -> Any:
    """Return unit vectors as columns in this order."""
    return eye(folded_shape_i(values, 0), dtype=dtype_of(values))[:, order]


@core_rewriter(Eigh)
def eigh_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """eigh(diag(d)) -> d in ascending order, and unit vectors in that order.

    eigh(diag(a), diag(b)) -> the same of a / b, with vectors divided by sqrt(b).
    """
    if not _is_one_diagonal(fgraph, node):
        return None
    values = main_diagonal(node.inputs[0])
    others = [main_diagonal(x) for x in node.inputs[1:]]
    for other in others:
        values = true_div(values, other)
    order = argsort(values)
    vectors = _unit_vectors(values, order)
    for other in others:
        vectors = true_div(vectors, expand_dims(sqrt(other[order]), 0))
    return values[order], vectors


@core_rewriter(Eigvalsh)
def eigvalsh_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """eigvalsh(diag(d)) -> d in ascending order; eigvalsh(diag(a), diag(b)) -> a / b in ascending order."""
    if not all(check_assumption(fgraph, x, DIAGONAL) for x in node.inputs):
        return None
    values, *others = [main_diagonal(x) for x in node.inputs]
    for other in others:
        values = true_div(values, other)
    return sort(values, -1)


@core_rewriter(LU)
def lu_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """lu(D) -> the unit matrices I and I, and D."""
    if not _is_one_diagonal(fgraph, node):
        return None
    (x,) = node.inputs
    one, op = eye(folded_shape_i(x, 0), dtype=dtype_of(x)), core_of(node)
    if op.permute_l:
        return one, x
    return arange(folded_shape_i(x, 0)) if op.p_indices else one, one, x


@core_rewriter(LUFactor)
def lu_factor_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """lu_factor(D) -> D, without exchanges of rows."""
    if not _is_one_diagonal(fgraph, node):
        return None
    (x,) = node.inputs
    return x, arange(folded_shape_i(x, 0))


@core_rewriter(QR)
def qr_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """qr(D) -> the unit matrix, and D: what LAPACK computes."""
    op = core_of(node)
    if op.pivoting or not _is_one_diagonal(fgraph, node):
        return None
    (x,) = node.inputs
    if op.mode == "r":
        return x
    if op.mode == "raw":
        return x, zeros_like(main_diagonal(x)), x
    return eye(folded_shape_i(x, 0), dtype=dtype_of(x)), x


@core_rewriter(Schur)
def schur_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """schur(D) -> D and the unit matrix, both in the order that is asked for."""
    if not _is_one_diagonal(fgraph, node):
        return None
    (x,), wanted = node.inputs, core_of(node).sort
    values = main_diagonal(x)
    if wanted is None:
        return x, eye(folded_shape_i(x, 0), dtype=dtype_of(x))
    is_first = {
        "lhp": lambda: lt(values, 0),
        "rhp": lambda: ge(values, 0),
        "iuc": lambda: le(absolute(values), 1),
        "ouc": lambda: gt(absolute(values), 1),
    }[wanted]()
    order = _in_front(is_first)
    return diagonal_matrix(values[order]), _unit_vectors(values, order)


def _in_front(is_first: Any) -> Any:
    """Return the order in which the positions that are true come first, and others stay in theirs."""
    return argsort(switch(is_first, 0, 1), kind="stable")


@core_rewriter(QZ)
def qz_of_diag(fgraph: FunctionGraph, node: Apply) -> Any:
    """qz(A, B) -> A, B and unit matrices, all in the order that is asked for, for diagonal A and B."""
    if not _is_one_diagonal(fgraph, node):
        return None
    op, (first, second) = core_of(node), node.inputs
    a, b = main_diagonal(first), main_diagonal(second)
    vectors = eye(folded_shape_i(a, 0), dtype=dtype_of(a))
    if op.sort is not None:
        order = _in_front(_comes_first(a, b, op.sort))
        a, b = a[order], b[order]
        first, second, vectors = diagonal_matrix(a), diagonal_matrix(b), vectors[:, order]
    values = [cast(a, dtype_of(node.outputs[2])), b] if op.return_eigenvalues else []
    return [first, second, *values, vectors, vectors]


def _comes_first(a: Any, b: Any, wanted: str) -> Any:
    """Return which of the quotients a / b are wanted first."""
    exists = neq(b, 0)
    if wanted == "lhp":
        return and_(exists, lt(mul(a, b), 0))
    if wanted == "rhp":
        return and_(exists, ge(mul(a, b), 0))
    if wanted == "iuc":
        return and_(exists, le(absolute(a), absolute(b)))
    return or_(gt(absolute(a), absolute(b)), and_(neq(a, 0), switch(exists, False, True)))


DECOMPOSITIONS = (
    cholesky_of_diag,
    cholesky_ldotlt,
    svd_of_diag,
    svd_uv_merge,
    eigh_of_diag,
    eigvalsh_of_diag,
    lu_of_diag,
    lu_factor_of_diag,
    qr_of_diag,
    schur_of_diag,
    qz_of_diag,
)
