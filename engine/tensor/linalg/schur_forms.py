"""The decompositions of Schur: of a matrix, and of a pair (QZ). They have no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.tensor.blockwise import batched
from engine.tensor.linalg.callback_op import CallbackOp

_SORTS = ("lhp", "rhp", "iuc", "ouc")


def _checked_sort(doing: str, sort: str | None) -> str | None:
    if sort is not None and sort not in _SORTS:
        raise ValueError(f"{doing} with sort={sort!r}: sort must be None or one of {_SORTS}")
    return sort


class Schur(CallbackOp):
    """T and Z with `x = Z @ T @ Z.T`, Z orthogonal and T upper triangular but for blocks of two rows.

    `sort` says which eigenvalues come first: those with a negative ("lhp") or other ("rhp") real part, or
    within ("iuc") or outside ("ouc") the unit circle.
    """

    __props__ = ("sort",)
    gufunc_signature = "(m,m)->(m,m),(m,m)"

    def __init__(self, sort: str | None = None) -> None:
        self.sort = _checked_sort("Making a Schur", sort)

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import schur as decomposed

        if not arrays[0].size:
            return arrays[0], arrays[0]
        return tuple(decomposed(arrays[0], sort=self.sort, check_finite=False)[:2])


def schur(A: Any, output: str = "real", sort: str | None = None) -> Any:
    """Return T and Z with `A = Z @ T @ Z.T`, Z orthogonal and T upper triangular but for blocks of two rows.

    `sort` says which eigenvalues come first (see Schur). Leading axes are a batch. Raises NotImplementedError
    for `output` "complex".
    """
    _check_real("Decomposing by schur", output)
    return batched(Schur(sort), A)


class QZ(CallbackOp):
    """AA, BB, Q and Z with `A = Q @ AA @ Z.T` and `B = Q @ BB @ Z.T`, Q and Z orthogonal.

    BB is upper triangular, and AA but for blocks of two rows. `sort` says which quotients of eigenvalues come
    first, as for Schur.
    """

    __props__ = ("sort",)
    gufunc_signature = "(m,m),(m,m)->(m,m),(m,m),(m,m),(m,m)"

    def __init__(self, sort: str | None = None) -> None:
        self.sort = _checked_sort("Making a QZ", sort)

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import ordqz
        from scipy.linalg import qz as decomposed

        if self.sort is None:
            found: Sequence[Any] = decomposed(*arrays, output="real", check_finite=False)
            return found
        aa, bb, _, _, q, z = ordqz(*arrays, sort=self.sort, output="real", check_finite=False)
        return aa, bb, q, z


def qz(
    A: Any, B: Any, output: str = "real", sort: str | None = None, return_eigenvalues: bool = False
) -> Any:
    """Return AA, BB, Q and Z with `A = Q @ AA @ Z.T` and `B = Q @ BB @ Z.T`, Q and Z orthogonal.

    BB is upper triangular, and AA but for blocks of two rows. `sort` says which quotients of eigenvalues come
    first (see Schur). Leading axes are a batch. Raises NotImplementedError for `output` "complex" and for
    `return_eigenvalues`, which are complex.
    """
    _check_real("Decomposing by qz", output)
    if return_eigenvalues:
        raise NotImplementedError(
            "Decomposing by qz: the eigenvalues are complex numbers, which there are none of"
        )
    return batched(QZ(sort), A, B)


def _check_real(doing: str, output: str) -> None:
    if output not in ("real", "complex"):
        raise ValueError(f"{doing}: output must be 'real' or 'complex', not {output!r}")
    if output == "complex":
        raise NotImplementedError(f"{doing}: there are no complex numbers; give output='real'")
