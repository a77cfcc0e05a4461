"""Systems of linear equations, and the inverse of a matrix.

Gradients follow Giles, "An extended collection of matrix derivative results for forward and reverse
mode algorithmic differentiation", 2008, section 2.3.1. If an Op reads only a triangle of a matrix,
the gradient has only that triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.scalar.promotion import COMPILED, COMPLEX, common
from engine.tensor.blockwise import batched, vectorize
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.diagonals import eye, on_diagonals, only_triangle, tril, triu
from engine.tensor.elementary import conj
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.linalg.matrix_op import MatrixOp
from engine.tensor.math import add, mul, neg, true_div
from engine.tensor.products import matrix_product
from engine.tensor.rearranging import matrix_transpose
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import expand_dims, shape_i, transpose
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class SolveBase(MatrixOp):
    """Base class of the Ops that solve `A x = b` for a square matrix A and a vector or matrix b."""

    __props__: tuple[str, ...] = ("lower", "b_ndim")

    def __init__(self, lower: bool = False, *, b_ndim: int) -> None:
        self.lower, self.b_ndim = bool(lower), int(b_ndim)
        if self.b_ndim not in (1, 2):
            raise ValueError(f"Making a {type(self).__name__} with b_ndim={b_ndim}: it must be 1 or 2")

    @property
    def gufunc_signature(self) -> str:
        """The axes of the matrix, the right-hand side and the solution."""
        return "(m,m),(m)->(m)" if self.b_ndim == 1 else "(m,m),(m,n)->(m,n)"

    def make_node(self, A: Any, b: Any) -> Apply:
        A, b = as_inexact(A, b)
        if A.type.ndim != 2:
            raise ValueError(f"Applying {self} to {A.type}: `A` must be a matrix")
        if b.type.ndim != self.b_ndim:
            raise ValueError(f"Applying {self} to {b.type}: `b` must have {self.b_ndim} dims")
        A = as_square(str(self), A)
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

    def transposed(self) -> SolveBase:
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
            product = matrix_product(of_b, transpose(x))
        return [self.of_matrix(neg(product)), of_b]


class Solve(ReplacedOp, SolveBase):
    """Solves `A x = b`; NaN if A is singular.

    With `assume_a="pos"` A is symmetric positive definite: only the triangle that `lower` names is
    read, and the solution is NaN if A is not positive definite. With "tridiagonal" only the diagonal and
    those beside it are read; a general solution with these replaces it.
    """

    __props__ = ("assume_a", "lower", "b_ndim")
    make_node = SolveBase.make_node
    perform = SolveBase.perform

    def __init__(self, *, assume_a: str = "gen", lower: bool = False, b_ndim: int) -> None:
        super().__init__(lower, b_ndim=b_ndim)
        if assume_a not in ("gen", "pos", "tridiagonal"):
            raise ValueError(
                f"Making a Solve: Invalid assume_a: {assume_a}. It must be one of {', '.join(ASSUMPTIONS)}"
            )
        self.assume_a = assume_a

    def is_replaced(self, inputs: Sequence[Any]) -> bool:
        return self.assume_a == "tridiagonal"

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        return [Solve(b_ndim=self.b_ndim)(_three_diagonals(inputs[0]), inputs[1])]

    def solved(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.assume_a == "tridiagonal":
            A = np.triu(np.tril(A, 1), -1)
        if self.assume_a != "pos":
            return np.linalg.solve(A, b)
        from scipy.linalg import cho_solve

        factor = np.linalg.cholesky(A, upper=not self.lower)
        return cho_solve((factor, self.lower), b, check_finite=False)

    def transposed(self) -> Solve:
        lower = not self.lower if self.assume_a == "pos" else self.lower
        return Solve(assume_a=self.assume_a, lower=lower, b_ndim=self.b_ndim)

    def of_matrix(self, gradient: Any) -> Any:
        if self.assume_a != "pos":
            return gradient if self.assume_a == "gen" else _three_diagonals(gradient)
        return only_triangle(add(gradient, transpose(gradient)), self.lower, halved=True)


class SolveTriangular(SolveBase):
    """Solves `A x = b` reading only the `lower` or upper triangle of A; NaN if a diagonal element is 0.

    With `unit_diagonal` the diagonal is not read and taken to be 1.
    """

    __props__ = ("lower", "unit_diagonal", "b_ndim")

    def __init__(self, *, lower: bool = False, unit_diagonal: bool = False, b_ndim: int) -> None:
        super().__init__(lower, b_ndim=b_ndim)
        self.unit_diagonal = bool(unit_diagonal)

    def solved(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return solve_triangular(A, b, lower=self.lower, unit_diagonal=self.unit_diagonal, check_finite=False)

    def transposed(self) -> SolveTriangular:
        return SolveTriangular(lower=not self.lower, unit_diagonal=self.unit_diagonal, b_ndim=self.b_ndim)

    def of_matrix(self, gradient: Any) -> Any:
        return only_triangle(gradient, self.lower, strict=self.unit_diagonal)


def _three_diagonals(m: Any) -> Any:
    """Return the matrix `m` with zeros but on its diagonal and beside it."""
    return triu(tril(m, 1), -1)


ASSUMPTIONS = (
    *("general", "gen", "positive definite", "pos", "symmetric", "sym", "hermitian", "her"),
    *("lower triangular", "upper triangular", "diagonal", "tridiagonal", "banded"),
)
_SHORT = {"general": "gen", "positive definite": "pos", "symmetric": "sym", "hermitian": "her"}


def solve(
    a: Any,
    b: Any,
    *,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
    transposed: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Return the solution of `a x = b`, or of `a.T x = b` if `transposed`; b is a vector or a matrix.

    `assume_a` is "gen" (general), "pos" (positive definite), "sym" (symmetric) or "her" (hermitian): of these
    three, only the triangle that `lower` names is read; "lower triangular", "upper triangular", "diagonal",
    "tridiagonal", of which only these elements are read, or "banded", which is solved as a general one.
    Without a solution, the result is NaN.
    `b_ndim` is 1 if the last axis of b is a vector, 2 if the last two are a matrix; by default 2 if there
    are as many. Leading axes are a batch. `overwrite_a`, `overwrite_b` and `check_finite` are ignored.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    short = _SHORT.get(assume_a.lower(), assume_a.lower())
    b_ndim = core_ndim_of(b, b_ndim)
    if short in ("lower triangular", "upper triangular"):
        return solve_triangular(a, b, lower=short.startswith("lower"), trans=int(transposed), b_ndim=b_ndim)
    if short == "diagonal":
        a, b = as_inexact(a, b)
        return _solved_diagonal(a, b, b_ndim)
    if short == "banded":
        short = "gen"
    if transposed:
        a, lower = matrix_transpose(a), not lower
    if short in ("sym", "her"):
        whole = partial(_mirrored, lower=lower, is_hermitian=short == "her")
        a, short = vectorize(whole, "(m,m)->(m,m)")(a), "gen"
    return batched(Solve(assume_a=short, lower=lower and short == "pos", b_ndim=b_ndim), a, b)


def _solved_diagonal(a: Any, b: Any, b_ndim: int) -> Any:
    elements = vectorize(on_diagonals, "(m,m)->(m)")(a)
    return true_div(b, elements if b_ndim == 1 else expand_dims(elements, -1))


def _mirrored(a: Any, lower: bool, is_hermitian: bool) -> Any:
    """Return the symmetric, or hermitian, matrix of which `a` has one triangle."""
    half = only_triangle(a, lower, halved=True)
    return add(half, adjoint(half) if is_hermitian else transpose(half))


def core_ndim_of(b: Any, b_ndim: int | None) -> int:
    """Return the number of axes of a right-hand side that are no batch: `b_ndim`, or 2 if there are as many.

    Raises ValueError for a `b_ndim` other than 1 and 2.
    """
    if b_ndim not in (1, 2, None):
        raise ValueError(f"Solving with b_ndim={b_ndim}: it must be 1 or 2")
    return min(b.type.ndim, 2) if b_ndim is None else int(b_ndim)


def solve_triangular(
    a: Any,
    b: Any,
    *,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    check_finite: bool = True,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Return the solution of `a x = b` for a triangular a, or of `a.T x = b` with `trans` 1 or "T".

    Only the `lower` or upper triangle of a is read; with `unit_diagonal` the diagonal is taken to be 1.
    If a diagonal element is 0, the result is NaN. `b_ndim` and batches are as for `solve`. `check_finite` is
    ignored.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f'Solving with trans={trans!r}: it must be 0, 1, 2, "N", "T" or "C"')
    if trans not in (0, "N"):
        a, lower = adjoint(a) if trans in (2, "C") else matrix_transpose(a), not lower
    op = SolveTriangular(lower=lower, unit_diagonal=unit_diagonal, b_ndim=core_ndim_of(b, b_ndim))
    return batched(op, a, b)


class CholeskySolve(ReplacedOp, SolveBase):
    """Solves `A x = b` given the Cholesky factor of A: the `lower` or upper one."""

    make_node = SolveBase.make_node
    perform = ReplacedOp.perform

    def is_replaced(self, inputs: Sequence[Any]) -> bool:
        return inputs[0].type.dtype not in COMPILED

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        c, b = inputs
        first, second = ("N", "C") if self.lower else ("C", "N")
        halfway = solve_triangular(c, b, lower=self.lower, trans=first, b_ndim=self.b_ndim)
        return [solve_triangular(c, halfway, lower=self.lower, trans=second, b_ndim=self.b_ndim)]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None, None]
        factor, x = inputs[0], outputs[0]
        of_b = self(factor, cotangents[0])
        if self.b_ndim == 1:
            x, columns = dimshuffle(x, (0, "x")), dimshuffle(of_b, (0, "x"))
        else:
            columns = of_b
        product = matrix_product(columns, transpose(x))
        whole = neg(add(product, transpose(product)))
        of_factor = matrix_product(whole, factor) if self.lower else matrix_product(factor, whole)
        return [only_triangle(of_factor, self.lower), of_b]


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: Any,
    *,
    check_finite: bool = True,
    overwrite_b: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Return the solution of `A x = b`, given the Cholesky factor of A and True if that is the lower one.

    `b_ndim` and batches are as for `solve`. `check_finite` and `overwrite_b` are ignored.
    """
    c, lower = c_and_lower
    return batched(CholeskySolve(lower, b_ndim=core_ndim_of(as_tensor_variable(b), b_ndim)), c, b)


class MatrixInverse(ReplacedOp, MatrixOp):
    """The inverse of a square matrix; NaN if it is singular."""

    __props__ = ()
    gufunc_signature = "(m,m)->(m,m)"

    def make_node(self, *inputs: Any) -> Apply:
        return super().make_node(*[as_square(str(self), x) for x in inputs])

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        (x,) = inputs
        return [solve(x, eye(shape_i(x, -1), dtype=x.type.dtype), b_ndim=2)]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        turned = transpose(outputs[0])
        return [neg(matrix_product(matrix_product(turned, cotangents[0]), turned))]


def inv(x: Any) -> TensorVariable:
    """Return the inverse of a square matrix; NaN if it is singular. Leading axes are a batch."""
    return batched(MatrixInverse(), x)


matrix_inverse = inv


_DTYPES = {"float16": "float32", "float32": "float32", "complex64": "complex64", "complex128": "complex128"}


def as_inexact(*values: Any) -> list[Any]:
    """Return `values` as tensors of one dtype: float32 if all are floats of up to 32 bits, complex if one is.

    All others become float64.
    """
    tensors = [as_tensor_variable(value) for value in values]
    dtype = _DTYPES.get(common(tuple([tensor.type.dtype for tensor in tensors])), "float64")
    return [cast(tensor, dtype) for tensor in tensors]


def real_of(dtype: str) -> str:
    """Return the dtype of the real parts of numbers of `dtype`."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def complex_of(dtype: str) -> str:
    """Return the dtype of complex numbers with real parts of the float or complex `dtype`."""
    return {"float32": "complex64", "float64": "complex128"}.get(dtype, dtype)


def adjoint(x: Any) -> Any:
    """Return the complex conjugate of the matrices in the last two axes, transposed."""
    return matrix_transpose(conj(x) if x.type.dtype in COMPLEX else x)


def as_square(what: str, value: Any) -> Any:
    """Return `value` as a matrix of floats or complex numbers.

    Raises TypeError unless it has 2 dimensions, and ValueError if its static shape is not square.
    """
    (matrix,) = as_inexact(value)
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
