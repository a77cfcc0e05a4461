"""Elimination of tridiagonal matrices, by LAPACK's `gttrf` and `gttrs`, as callbacks. They have no gradient:
that of `solve(a, b, assume_a="tridiagonal")` needs none of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.inner.diagonals import diagonal
from engine.scalar.promotion import INTEGERS
from engine.tensor.blockwise import batched
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.linalg.equations import as_inexact
from engine.tensor.type import tensor_type

LEAST = 3
"""The length that SciPy's functions take at least; a smaller matrix stands in front of ones."""
_BESIDE = (1, 0, 1, 2, 0)
"""How much shorter than the diagonal each factor is: dl, d, du, du2 and the pivots."""


class LUFactorTridiagonal(Op):
    """The factors of a matrix with the diagonals dl, d and du: dl, d, du, du2 and the pivots, as LAPACK's.

    The new d is NaN if the matrix is singular.
    Raises ValueError unless the diagonals are vectors whose lengths fit.
    """

    __props__ = ()
    gufunc_signature = "(dl),(d),(dl)->(dl),(d),(dl),(du2),(d)"

    def make_node(self, dl: Any, d: Any, du: Any) -> Apply:
        diagonals = as_inexact(dl, d, du)
        size = _size(str(self), diagonals)
        dtype = diagonals[0].type.dtype
        kinds = [*[dtype] * 4, "int32"]
        types = [
            tensor_type(kind, (None if size is None else max(size - less, 0),))
            for kind, less in zip(kinds, _BESIDE, strict=True)
        ]
        return Apply(self, diagonals, [type.make_variable() for type in types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        from scipy.linalg import get_lapack_funcs

        size = len(inputs[1])
        _check(str(self), size, inputs, _BESIDE)
        factor = get_lapack_funcs("gttrf", dtype=inputs[1].dtype)
        *found, info = factor(
            *[_filled(each, less, size) for each, less in zip(inputs, _BESIDE, strict=False)]
        )
        if info:
            found[1] = np.full_like(found[1], np.nan)
        for cell, array, less in zip(output_storage, found, _BESIDE, strict=True):
            cell[0] = np.array(array[: max(size - less, 0)])


class SolveLUFactorTridiagonal(Op):
    """The solution of `a x = b`, or of `a.T x = b` if `transposed`, by the factors of a tridiagonal a.

    b is a vector or a matrix, as `b_ndim` says. Raises ValueError for other ranks and lengths that do not
    fit.
    """

    __props__ = ("b_ndim", "transposed")

    def __init__(self, b_ndim: int, transposed: bool) -> None:
        if b_ndim not in (1, 2):
            raise ValueError(f"Making a SolveLUFactorTridiagonal: b_ndim is {b_ndim}; it must be 1 or 2")
        self.b_ndim, self.transposed = b_ndim, bool(transposed)
        right = "(d)" if b_ndim == 1 else "(d,rhs)"
        self.gufunc_signature = f"(dl),(d),(dl),(du2),(d),{right}->{right}"

    def make_node(self, dl: Any, d: Any, du: Any, du2: Any, ipiv: Any, b: Any) -> Apply:
        *factors, right = as_inexact(dl, d, du, du2, b)
        pivots = as_tensor_variable(ipiv)
        if right.type.ndim != self.b_ndim or pivots.type.dtype not in INTEGERS:
            raise ValueError(f"Applying {self} to pivots {pivots.type} and b {right.type}: they do not fit")
        size = _size(str(self), [*factors, pivots])
        shape = (right.type.shape[0] if size is None else size, *right.type.shape[1:])
        found = tensor_type(right.type.dtype, shape).make_variable()
        return Apply(self, [*factors, pivots, right], [found])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        from scipy.linalg import get_lapack_funcs

        *factors, right = inputs
        size = len(factors[1])
        _check(str(self), size, [*factors, right], (*_BESIDE, 0))
        filled = [_filled(each, less, size) for each, less in zip(factors, _BESIDE, strict=True)]
        rows = np.zeros((max(size, LEAST), *right.shape[1:]), right.dtype)
        rows[:size] = right
        solve = get_lapack_funcs("gttrs", dtype=right.dtype)
        found, _ = solve(*filled[:4], filled[4].astype("int32"), rows, trans="T" if self.transposed else "N")
        output_storage[0][0] = np.array(found[:size], order="C").reshape(right.shape)


def _size(op: str, vectors: Sequence[Any]) -> int | None:
    """Return the length of the diagonal that the types of `vectors` know."""
    if any(vector.type.ndim != 1 for vector in vectors):
        given = ", ".join(str(vector.type) for vector in vectors)
        raise ValueError(f"Applying {op} to {given}: diagonals must be vectors")
    lengths = [vector.type.shape[0] for vector in vectors]
    known = {length + less for length, less in zip(lengths, _BESIDE, strict=False) if length}
    if len(known) > 1:
        raise ValueError(f"Applying {op}: the diagonals have lengths {lengths}, which do not fit")
    return known.pop() if known else None


def _check(op: str, size: int, arrays: Sequence[Any], beside: Sequence[int]) -> None:
    found = [len(array) for array in arrays]
    due = [max(size - less, 0) for less, _ in zip(beside, arrays, strict=False)]
    if found != due:
        raise ValueError(f"Computing {op}: lengths {due} are due, {found} were found")


def _filled(array: Any, less: int, size: int) -> Any:
    """Return a diagonal, or the pivots, of the least length that SciPy takes: ones stand in further rows."""
    length = max(size, LEAST) - less
    if len(array) == length:
        return array
    if array.dtype.kind in "iu":
        rest = np.arange(1, length + 1)
    else:
        rest = np.full(length, float(less == 0), array.dtype)
    rest[: len(array)] = array
    return rest


def tridiagonal_lu_factor(a: Any) -> list[Any]:
    """Return dl, d, du, du2 and the pivots: what elimination makes of a tridiagonal matrix (LAPACK's gttrf).

    Elements beside the three diagonals are not read. Leading axes are a batch.
    """
    a = as_tensor_variable(a)
    diagonals = [diagonal(a, offset, -2, -1) for offset in (-1, 0, 1)]
    found: list[Any] = batched(LUFactorTridiagonal(), *diagonals)
    return found


def tridiagonal_lu_solve(a_diagonals: Sequence[Any], b: Any, *, b_ndim: int, transposed: bool = False) -> Any:
    """Return the solution of `a x = b`, or of `a.T x = b` if `transposed`, given `tridiagonal_lu_factor(a)`.

    b is a vector or a matrix, as `b_ndim` says; other leading axes are a batch.
    """
    return batched(SolveLUFactorTridiagonal(b_ndim, transposed), *a_diagonals, b)
