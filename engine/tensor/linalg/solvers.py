"""Systems of linear equations, and the inverse of a matrix.

Gradients follow Giles, "An extended collection of matrix derivative results for forward and reverse
mode algorithmic differentiation", 2008, section 2.3.1. If an Op reads only a triangle of a matrix,
the gradient has only that triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import FLOATS, common
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.diagonal import eye, only_triangle
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.math import add, mul, neg
from engine.tensor.products import dot
from engine.tensor.shape import shape_i, transpose
from engine.tensor.type import tensor_type


class _SolveBase(Op):
    """Base class of the Ops that solve `A x = b` for a square matrix A and a vector or matrix b."""

    __props__: tuple[str, ...] = ("lower", "b_ndim")

    def __init__(self, lower: bool, b_ndim: int) -> None:
        self.lower, self.b_ndim = bool(lower), int(b_ndim)
        if self.b_ndim not in (1, 2):
            raise ValueError(f"Making a {type(self).__name__} with b_ndim={b_ndim}: it must be 1 or 2")

    def make_node(self, A: Any, b: Any) -> Apply:
        A, b = as_floats(A, b)
        A = as_square(str(self), A)
        if b.type.ndim != self.b_ndim:
            raise TypeError(
                f"Applying {self} to a right-hand side {b.type}: it takes {self.b_ndim} dimensions"
            )
        known = {length for length in (*A.type.shape, b.type.shape[0]) if length is not None}
        if len(known) > 1:
            raise ValueError(
                f"Applying {self} to {A.type} and {b.type}: the right-hand side must have a row for each "
                "of the matrix"
            )
        rows = known.pop() if known else None
        return Apply(self, [A, b], [tensor_type(A.type.dtype, (rows, *b.type.shape[1:])).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        A, b = inputs
        check_square(str(self), A)
        if len(A) != len(b):
            raise ValueError(
                f"Computing {self} of a matrix of shape {A.shape} and a right-hand side of shape "
                f"{b.shape}: it must have a row for each of the matrix"
            )
        try:
            found = self.solved(A, b) if b.size else np.empty_like(b)
        except np.linalg.LinAlgError:
            found = np.full_like(b, np.nan)
        output_storage[0][0] = np.asarray(found, node.outputs[0].type.dtype, order="C")

    def solved(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the solution, or raise LinAlgError, which `perform` turns into NaNs."""
        raise NotImplementedError

    def transposed(self) -> _SolveBase:
        """Return the Op that solves the system of the transposed matrix."""
        raise NotImplementedError

    def of_matrix(self, gradient: Any) -> Any:
        """Return the gradient of the matrix as this Op reads it, given that of a matrix read whole."""
        return gradient

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None, None]
        x = outputs[0]
        of_b = self.transposed().make_node(transpose(inputs[0]), cotangents[0]).outputs[0]
        if self.b_ndim == 1:
            product = mul(dimshuffle(of_b, (0, "x")), dimshuffle(x, ("x", 0)))
        else:
            product = dot(of_b, transpose(x))
        return [self.of_matrix(neg(product)), of_b]


class Solve(_SolveBase):
    """Solves `A x = b`; NaN if A is singular.

    With `assume_a="pos"` A is symmetric positive definite: only the triangle that `lower` names is
    read, and the solution is NaN if A is not positive definite.
    """

    __props__ = ("assume_a", "lower", "b_ndim")

    def __init__(self, *, assume_a: str = "gen", lower: bool = False, b_ndim: int) -> None:
        super().__init__(lower, b_ndim)
        if assume_a not in ("gen", "pos"):
            raise ValueError(f'Making a Solve with assume_a={assume_a!r}: it must be "gen" or "pos"')
        self.assume_a = assume_a

    def solved(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.assume_a == "gen":
            return np.linalg.solve(A, b)
        from scipy.linalg import cho_solve

        factor = np.linalg.cholesky(A, upper=not self.lower)
        return cho_solve((factor, self.lower), b, check_finite=False)

    def transposed(self) -> Solve:
        lower = self.lower if self.assume_a == "gen" else not self.lower
        return Solve(assume_a=self.assume_a, lower=lower, b_ndim=self.b_ndim)

    def of_matrix(self, gradient: Any) -> Any:
        if self.assume_a == "gen":
            return gradient
        return only_triangle(add(gradient, transpose(gradient)), self.lower, halved=True)


class SolveTriangular(_SolveBase):
    """Solves `A x = b` reading only the `lower` or upper triangle of A; NaN if a diagonal element is 0.

    With `unit_diagonal` the diagonal is not read and taken to be 1.
    """

    __props__ = ("lower", "unit_diagonal", "b_ndim")

    def __init__(self, *, lower: bool = False, unit_diagonal: bool = False, b_ndim: int) -> None:
        super().__init__(lower, b_ndim)
        self.unit_diagonal = bool(unit_diagonal)

    def solved(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return solve_triangular(A, b, lower=self.lower, unit_diagonal=self.unit_diagonal, check_finite=False)

    def transposed(self) -> SolveTriangular:
        return SolveTriangular(lower=not self.lower, unit_diagonal=self.unit_diagonal, b_ndim=self.b_ndim)

    def of_matrix(self, gradient: Any) -> Any:
        return only_triangle(gradient, self.lower, strict=self.unit_diagonal)


def solve(
    a: Any,
    b: Any,
    *,
    lower: bool = False,
    assume_a: str = "gen",
    transposed: bool = False,
    b_ndim: int | None = None,
) -> Any:
    """Return the solution of `a x = b`, or of `a.T x = b` if `transposed`; b is a vector or a matrix.

    `assume_a` is "gen" (general), "pos" (symmetric positive definite: only the triangle that `lower`
    names is read), "lower triangular", "upper triangular" or "diagonal". Without a solution, the result
    is NaN.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    short = {"general": "gen", "positive definite": "pos"}.get(assume_a.lower(), assume_a.lower())
    b_ndim = b.type.ndim if b_ndim is None else b_ndim
    if short in ("lower triangular", "upper triangular"):
        return solve_triangular(a, b, lower=short.startswith("lower"), trans=int(transposed), b_ndim=b_ndim)
    if transposed:
        a, lower = transpose(a), not lower
    return Solve(assume_a=short, lower=lower and short == "pos", b_ndim=b_ndim).make_node(a, b).outputs[0]


def solve_triangular(
    a: Any,
    b: Any,
    *,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    b_ndim: int | None = None,
) -> Any:
    """Return the solution of `a x = b` for a triangular a, or of `a.T x = b` with `trans` 1 or "T".

    Only the `lower` or upper triangle of a is read; with `unit_diagonal` the diagonal is taken to be 1.
    If a diagonal element is 0, the result is NaN.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f'Solving with trans={trans!r}: it must be 0, 1, 2, "N", "T" or "C"')
    if trans not in (0, "N"):
        a, lower = transpose(a), not lower
    b_ndim = b.type.ndim if b_ndim is None else b_ndim
    op = SolveTriangular(lower=lower, unit_diagonal=unit_diagonal, b_ndim=b_ndim)
    return op.make_node(a, b).outputs[0]


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, *, b_ndim: int | None = None) -> Any:
    """Return the solution of `A x = b`, given the Cholesky factor of A and True if that is the lower one."""
    c, lower = c_and_lower
    halfway = solve_triangular(c, b, lower=lower, trans=0 if lower else 1, b_ndim=b_ndim)
    return solve_triangular(c, halfway, lower=lower, trans=1 if lower else 0, b_ndim=b_ndim)


def inv(x: Any) -> Any:
    """Return the inverse of a square matrix; NaN if it is singular."""
    x = as_square("inv", x)
    return solve(x, eye(shape_i(x, 0), dtype=x.type.dtype if x.type.dtype in FLOATS else "float64"))


def as_floats(*values: Any) -> list[Any]:
    """Return `values` as tensors of one float dtype: float32 if all are, otherwise float64."""
    tensors = [as_tensor_variable(value) for value in values]
    dtype = common(tuple([tensor.type.dtype for tensor in tensors]))
    return [cast(tensor, dtype if dtype in FLOATS else "float64") for tensor in tensors]


def as_square(what: str, value: Any) -> Any:
    """Return `value` as a float matrix.

    Raises TypeError unless it has 2 dimensions, and ValueError if its static shape is not square.
    """
    (matrix,) = as_floats(value)
    if matrix.type.ndim != 2:
        raise TypeError(f"Applying {what} to {matrix.type}: it takes a matrix")
    rows, columns = matrix.type.shape
    if None not in (rows, columns) and rows != columns:
        raise ValueError(f"Applying {what} to {matrix.type}: the matrix must be square")
    return matrix


def check_square(what: str, matrix: np.ndarray) -> None:
    """Raise ValueError for a matrix that is not square."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"Computing {what} of a matrix of shape {matrix.shape}: it must be square")


def failure(what: str, error: Exception) -> np.linalg.LinAlgError:
    """Return the error for a matrix that `what` cannot be computed of."""
    return np.linalg.LinAlgError(f"Computing {what}: {error}")
