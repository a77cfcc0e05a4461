"""Rules for products, factorizations and equations, of one matrix and of batches."""

from __future__ import annotations

from functools import reduce
from typing import Any

from numpy.linalg import LinAlgError
from pytensor.tensor.blas.gemm import Dot22, Dot22Scalar, Gemm
from pytensor.tensor.blas.gemv import Gemv
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.decomposition.eigen import Eigh
from pytensor.tensor.linalg.decomposition.lu import LUFactor, PivotToPermutations
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.linear_control import SolveSylvester
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.math import Dot

import engine.tensor as pt
from engine.pytensor.representation import Untranslatable
from engine.pytensor.scope import Rule, Scope
from engine.tensor import linalg
from engine.tensor.conversion import number
from engine.tensor.shape import folded_shape_i


def _dot(scope: Scope, node: Any, x: Any, y: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    return pt.dot(pt.cast(x, dtype), pt.cast(y, dtype))


def _dot_scaled(scope: Scope, node: Any, x: Any, y: Any, factor: Any) -> Any:
    return pt.mul(factor, pt.dot(x, y))


def _product_added(scope: Scope, node: Any, z: Any, factor: Any, x: Any, y: Any, weight: Any) -> Any:
    return pt.add(pt.mul(weight, z), pt.mul(factor, pt.dot(x, y)))


def _cholesky(scope: Scope, node: Any, x: Any) -> Any:
    return linalg.cholesky(_float(node, x), lower=node.op.lower)


def _solve(scope: Scope, node: Any, a: Any, b: Any) -> Any:
    op = node.op
    symmetric = op.assume_a in ("sym", "her")
    if op.assume_a not in ("gen", "pos") and not symmetric:
        raise Untranslatable(f"the engine has no solver for assume_a={op.assume_a!r}")
    if symmetric:
        a = _mirrored(a, op.lower)
    kind = "pos" if op.assume_a == "pos" else "gen"
    lower = bool(op.lower) and kind == "pos"
    return linalg.solve(_float(node, a), _float(node, b), assume_a=kind, lower=lower, b_ndim=op.b_ndim)


def _mirrored(a: Any, lower: bool) -> Any:
    """Return the symmetric matrix of which `a` has one triangle: LAPACK's solvers for them read no other.

    LAPACK's solver for general matrices gives what those for symmetric ones do, to rounding.
    """
    strict = pt.tril(a, -1) if lower else pt.triu(a, 1)
    whole = pt.tril(a) if lower else pt.triu(a)
    return pt.add(whole, pt.dimshuffle(strict, (1, 0)))


def _solve_triangular(scope: Scope, node: Any, a: Any, b: Any) -> Any:
    op = node.op
    return linalg.solve_triangular(
        _float(node, a), _float(node, b), lower=op.lower, unit_diagonal=op.unit_diagonal, b_ndim=op.b_ndim
    )


def _cho_solve(scope: Scope, node: Any, factor: Any, b: Any) -> Any:
    return linalg.cho_solve((_float(node, factor), node.op.lower), _float(node, b), b_ndim=node.op.b_ndim)


def _solve_sylvester(scope: Scope, node: Any, a: Any, b: Any, c: Any) -> Any:
    return linalg.solve_sylvester(*(_float(node, x) for x in (a, b, c)))


def _inverse(scope: Scope, node: Any, x: Any) -> Any:
    given = _float(node, x)
    found = linalg.inv(given)
    # The engine's inverse of a singular matrix is NaN.
    is_regular = pt.or_(pt.invert(pt.any(pt.isnan(found))), pt.any(pt.isnan(given)))
    scope.require(is_regular, LinAlgError, "Singular matrix")
    return found


def _eigh(scope: Scope, node: Any, a: Any, b: Any = None) -> list[Any]:
    if b is not None:
        raise Untranslatable("the engine has no kernel for eigenvalues of two matrices")
    given = _float(node, a)
    message = "array must not contain infs or NaNs"
    scope.require(pt.all(pt.isfinite(given)), ValueError, message)
    values, vectors = linalg.Eigh(node.op.lower, node.op.driver)(given)
    scope.require(pt.invert(pt.any(pt.isnan(values))), LinAlgError, "no eigenvalues were found")
    return [values, vectors]


def _lu_factor(scope: Scope, node: Any, x: Any) -> list[Any]:
    return list(linalg.lu_factor(_float(node, x)))


def _permutation(scope: Scope, node: Any, pivots: Any) -> Any:
    return linalg.pivot_to_permutation(pivots, node.op.inverse)


def _det(scope: Scope, node: Any, x: Any) -> Any:
    return linalg.det(_float(node, x))


def _slogdet(scope: Scope, node: Any, x: Any) -> list[Any]:
    return list(linalg.slogdet(_float(node, x)))


def _block_diagonal(scope: Scope, node: Any, *blocks: Any) -> Any:
    lengths = [[folded_shape_i(block, axis) for block in blocks] for axis in range(2)]
    whole = pt.zeros([reduce(pt.add, along) for along in lengths], node.outputs[0].type.dtype)
    row, column = number(0, "int64"), number(0, "int64")
    for block, rows, columns in zip(blocks, *lengths, strict=True):
        below, right = pt.add(row, rows), pt.add(column, columns)
        whole = pt.set_subtensor(whole[row:below, column:right], pt.cast(block, whole.type.dtype))
        row, column = below, right
    return whole


def _float(node: Any, x: Any) -> Any:
    """Return an input in the dtype of the result."""
    return pt.cast(x, node.outputs[0].type.dtype)


RULES: dict[type, Rule] = {
    Dot: _dot,
    Dot22: _dot,
    Dot22Scalar: _dot_scaled,
    Gemm: _product_added,
    Gemv: _product_added,
    Cholesky: _cholesky,
    Solve: _solve,
    SolveTriangular: _solve_triangular,
    CholeskySolve: _cho_solve,
    SolveSylvester: _solve_sylvester,
    MatrixInverse: _inverse,
    Eigh: _eigh,
    LUFactor: _lu_factor,
    PivotToPermutations: _permutation,
    Det: _det,
    SLogDet: _slogdet,
    BlockDiagonal: _block_diagonal,
}
