"""Rules for products, factorizations and equations, of one matrix and of batches."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError
from pytensor.tensor.blas.gemm import Dot22, Dot22Scalar, Gemm
from pytensor.tensor.blas.gemv import Gemv
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
from pytensor.tensor.linalg.inverse import MatrixInverse
from pytensor.tensor.linalg.solvers.general import Solve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det, SLogDet
from pytensor.tensor.math import Dot

import engine.tensor as pt
from engine.pytensor.representation import Untranslatable
from engine.pytensor.scope import Rule, Scope
from engine.tensor import linalg


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
    # LAPACK's solver for general matrices gives what those for symmetric ones do, to rounding; these read
    # one triangle only.
    if op.assume_a not in ("gen", "pos"):
        raise Untranslatable(f"the engine has no solver for assume_a={op.assume_a!r}")
    lower = bool(op.lower) and op.assume_a == "pos"
    return linalg.solve(_float(node, a), _float(node, b), assume_a=op.assume_a, lower=lower, b_ndim=op.b_ndim)


def _solve_triangular(scope: Scope, node: Any, a: Any, b: Any) -> Any:
    op = node.op
    return linalg.solve_triangular(
        _float(node, a), _float(node, b), lower=op.lower, unit_diagonal=op.unit_diagonal, b_ndim=op.b_ndim
    )


def _cho_solve(scope: Scope, node: Any, factor: Any, b: Any) -> Any:
    return linalg.cho_solve((_float(node, factor), node.op.lower), _float(node, b), b_ndim=node.op.b_ndim)


def _inverse(scope: Scope, node: Any, x: Any) -> Any:
    given = _float(node, x)
    found = linalg.inv(given)
    # The engine's inverse of a singular matrix is NaN.
    is_regular = pt.or_(pt.invert(pt.any(pt.isnan(found))), pt.any(pt.isnan(given)))
    scope.require(is_regular, LinAlgError, "Singular matrix")
    return found


def _det(scope: Scope, node: Any, x: Any) -> Any:
    return linalg.det(_float(node, x))


def _slogdet(scope: Scope, node: Any, x: Any) -> list[Any]:
    return list(linalg.slogdet(_float(node, x)))


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
    MatrixInverse: _inverse,
    Det: _det,
    SLogDet: _slogdet,
}
