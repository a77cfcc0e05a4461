"""The decomposition of a matrix into a permutation and two triangular factors, by Gaussian elimination.

Gradients follow de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
factorization", 2011. The permutation does not change for small changes of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import NullGradientError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import INTEGERS
from engine.tensor.blockwise import batched, vectorize
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.diagonals import identity_like, tril, triu
from engine.tensor.linalg.callback_op import Arrays, CallbackOp, zeros_for_none
from engine.tensor.linalg.equations import core_ndim_of, real_of, solve_triangular
from engine.tensor.ordering import argsort
from engine.tensor.shape import shape_i
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class LU(CallbackOp):
    """P, L and U with `x = P @ L @ U`, L lower triangular with a unit diagonal and U upper triangular.

    With `permute_l` they are `P @ L` and U; with `p_indices` P is the vector with `x = L[P] @ U`.
    """

    __props__ = ("permute_l", "p_indices")

    def __init__(self, *, permute_l: bool = False, p_indices: bool = False) -> None:
        if permute_l and p_indices:
            raise ValueError("Making an LU: Only one of permute_l and p_indices can be True")
        self.permute_l, self.p_indices = bool(permute_l), bool(p_indices)
        first = "" if self.permute_l else "(m)," if self.p_indices else "(m,m),"
        self.gufunc_signature = f"(m,n)->{first}(m,k),(k,n)"

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        first = [] if self.permute_l else ["int32" if self.p_indices else real_of(dtype)]
        return [*first, dtype, dtype]

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import lu as factored

        found: Sequence[Any] = factored(
            arrays[0], permute_l=self.permute_l, check_finite=False, p_indices=self.p_indices
        )
        return found

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        if cotangents[-1] is None and cotangents[-2] is None:
            return [None]
        rows, columns = inputs[0].type.shape
        if None not in (rows, columns) and rows != columns:
            raise NullGradientError(
                f"Taking a gradient through {self} of {inputs[0].type}: it takes a square matrix", self
            )
        order, lower, upper = LU(p_indices=True)(inputs[0]) if not self.p_indices else outputs
        of_lower, of_upper = zeros_for_none(outputs[-2:], cotangents[-2:])
        if self.permute_l:
            of_lower = of_lower[argsort(order)]
        return [_of_factors(lower, upper, of_lower, of_upper)[order]]


def _of_factors(lower: Any, upper: Any, of_lower: Any, of_upper: Any) -> Any:
    """Return the gradient of `lower @ upper`."""
    within = tril(lower.T @ of_lower, -1) + triu(of_upper @ upper.T)
    halfway = solve_triangular(lower, within, lower=True, trans=1, unit_diagonal=True, b_ndim=2)
    return solve_triangular(upper, halfway.T, b_ndim=2).T


def lu(
    a: Any,
    permute_l: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
    overwrite_a: bool = False,
) -> Any:
    """Return P, L and U with `a = P @ L @ U`.

    With `permute_l` return `P @ L` and U; with `p_indices` P is the vector with `a = L[P] @ U`.
    `check_finite` and `overwrite_a` are ignored: a matrix with a NaN has factors of NaN. Leading axes are a
    batch.
    """
    return batched(LU(permute_l=permute_l, p_indices=p_indices), a)


class LUFactor(CallbackOp):
    """The factors L and U of a square matrix in one, without L's diagonal, and the exchanges of rows.

    Step i exchanged row i with row `pivots[i]`. All factors are NaN for a singular matrix.
    """

    __props__ = ()
    gufunc_signature = "(m,m)->(m,m),(m)"

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        return dtype, "int32"

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import get_lapack_funcs

        if not arrays[0].size:
            return arrays[0], np.empty(0, "int32")
        (getrf,) = get_lapack_funcs(("getrf",), (arrays[0],))
        factors, pivots, info = getrf(arrays[0])
        return factors if info == 0 else np.full_like(factors, np.nan), pivots

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        gradient, (factors, pivots) = cotangents[0], outputs
        lower = tril(factors, -1) + identity_like(factors)
        found = _of_factors(lower, triu(factors), tril(gradient, -1), triu(gradient))
        return [found[pivot_to_permutation(pivots)]]


def lu_factor(a: Any, *, check_finite: bool = True, overwrite_a: bool = False) -> Any:
    """Return the factors L and U of `a` in one matrix, without L's diagonal of ones, and the pivots.

    Step i of the elimination exchanged row i with row `pivots[i]`. All is NaN for a singular matrix.
    `check_finite` and `overwrite_a` are ignored. Leading axes are a batch.
    """
    return batched(LUFactor(), a)


class PivotToPermutations(Op):
    """The permutation that exchanges of rows amount to: row i with row `pivots[i]`, one after the other.

    With `inverse` it is the order of the exchanged rows, `x[order] = L @ U`; otherwise its inverse.
    """

    __props__ = ("inverse",)
    gufunc_signature = "(n)->(n)"

    def __init__(self, inverse: bool = True) -> None:
        self.inverse = bool(inverse)

    def make_node(self, pivots: Any) -> Apply:
        pivots = as_tensor_variable(pivots)
        if pivots.type.ndim != 1 or pivots.type.dtype not in INTEGERS:
            raise ValueError(f"Applying {self} to {pivots.type}: it takes a vector of integers")
        return Apply(self, [pivots], [tensor_type("int64", pivots.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        order = np.arange(len(inputs[0]))
        for row, other in enumerate(inputs[0]):
            order[[row, other]] = order[[other, row]]
        output_storage[0][0] = order if self.inverse else np.argsort(order)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]


def pivot_to_permutation(p: Any, inverse: bool = False) -> TensorVariable:
    """Return the permutation that the pivots `p` of `lu_factor` amount to, with `a = (L @ U)[permutation]`.

    With `inverse` it is the other way round: `a[permutation] = L @ U`. Leading axes are a batch.
    """
    return batched(PivotToPermutations(inverse), p)


def lu_solve(
    LU_and_pivots: tuple[Any, Any],
    b: Any,
    trans: bool = False,
    b_ndim: int | None = None,
    check_finite: bool = True,
    overwrite_b: bool = False,
) -> TensorVariable:
    """Return the solution of `a x = b`, or `a.T x = b` with `trans`, given `lu_factor(a)`.

    b is a vector or a matrix, as `b_ndim` says. `check_finite` and `overwrite_b` are ignored. Other leading
    axes are a batch.
    """
    b = as_tensor_variable(b)
    ndim = core_ndim_of(b, b_ndim)
    signature = "(m,m),(m),(m)->(m)" if ndim == 1 else "(m,m),(m),(m,n)->(m,n)"
    core = partial(_lu_solved, trans=bool(trans), b_ndim=ndim)
    return vectorize(core, signature)(*map(as_tensor_variable, LU_and_pivots), b)


def _lu_solved(factors: Any, pivots: Any, b: Any, trans: bool, b_ndim: int) -> Any:
    def solved(right: Any, lower: bool) -> Any:
        return solve_triangular(
            factors, right, trans=int(trans), lower=lower, unit_diagonal=lower, b_ndim=b_ndim
        )

    if trans:
        return solved(solved(b, False), True)[pivot_to_permutation(pivots)]
    rows = specify_shape(b, (shape_i(pivots, 0), ...))  # the order of fewer rows would select some of more
    return solved(solved(rows[pivot_to_permutation(pivots, inverse=True)], True), False)
