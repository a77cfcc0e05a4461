"""The decompositions of Schur: of a matrix, and of a pair (QZ). They have no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.tensor.blockwise import batched
from engine.tensor.elemwise import cast
from engine.tensor.linalg.callback_op import CallbackOp
from engine.tensor.linalg.equations import as_inexact, complex_of

if TYPE_CHECKING:
    pass

_SORTS = ("lhp", "rhp", "iuc", "ouc")


def _checked_sort(doing: str, sort: str | None) -> str | None:
    if sort is not None and sort not in _SORTS:
        raise ValueError(f"{doing} with sort={sort!r}: sort must be None or one of {_SORTS}")
    return sort


def _as_output(doing: str, output: str, *matrices: Any) -> list[Any]:
    """Return `matrices`, complex if the output is to be. Raises ValueError unless that is real or complex."""
    if output not in ("real", "complex"):
        raise ValueError(f"{doing}: output must be 'real' or 'complex', not {output!r}")
    found = as_inexact(*matrices)
    return [cast(m, complex_of(m.type.dtype)) for m in found] if output == "complex" else found


class Schur(CallbackOp):
    """T and Z with `x = Z @ T @ Z*`, Z unitary and T upper triangular, but for blocks of two rows if x is
    real.

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
    """Return T and Z with `A = Z @ T @ Z*`, Z unitary, Z* its adjoint, and T upper triangular.

    If A is real and `output` is not "complex", Z is real, and T has blocks of two rows. `sort` says which
    eigenvalues come first (see Schur). Leading axes are a batch.
    """
    return batched(Schur(sort), *_as_output("Decomposing by schur", output, A))


class QZ(CallbackOp):
    """AA, BB, Q and Z with `A = Q @ AA @ Z*` and `B = Q @ BB @ Z*`, Q and Z unitary.

    BB is upper triangular, and AA, but for blocks of two rows if both are real. `sort` says which quotients
    of eigenvalues come first, as for Schur. With `return_eigenvalues` their numerators and denominators
    follow BB.
    """

    __props__ = ("sort", "return_eigenvalues")

    def __init__(self, sort: str | None = None, return_eigenvalues: bool = False) -> None:
        self.sort = _checked_sort("Making a QZ", sort)
        self.return_eigenvalues = bool(return_eigenvalues)
        values = "(m),(m)," if self.return_eigenvalues else ""
        self.gufunc_signature = f"(m,m),(m,m)->(m,m),(m,m),{values}(m,m),(m,m)"

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        values = [complex_of(dtype), dtype] if self.return_eigenvalues else []
        return [dtype, dtype, *values, dtype, dtype]

    def computed(self, *arrays: Any) -> Sequence[Any]:
        from scipy.linalg import ordqz as ordered
        from scipy.linalg import qz as decomposed

        if self.sort is None and not self.return_eigenvalues:
            found: Sequence[Any] = decomposed(*arrays, output="real", check_finite=False)
            return found
        aa, bb, alpha, beta, q, z = ordered(
            *arrays, sort=self.sort or _keep_order, output="real", check_finite=False
        )
        return (aa, bb, alpha, beta, q, z) if self.return_eigenvalues else (aa, bb, q, z)


def _keep_order(alpha: Any, beta: Any) -> Any:
    """Return that all eigenvalues come first."""
    return np.ones(len(alpha), bool)


def qz(
    A: Any, B: Any, output: str = "real", sort: str | None = None, return_eigenvalues: bool = False
) -> Any:
    """Return AA, BB, Q and Z with `A = Q @ AA @ Z*` and `B = Q @ BB @ Z*`, Q and Z unitary, Z* the adjoint.

    AA and BB are upper triangular. If A and B are real and `output` is not "complex", all are real, and AA
    has blocks of two rows. `sort` says which eigenvalues come first (see Schur); with `return_eigenvalues`
    they follow BB, as numerators and denominators. Leading axes are a batch.
    """
    return batched(QZ(sort, return_eigenvalues), *_as_output("Decomposing by qz", output, A, B))


def ordqz(A: Any, B: Any, sort: str | None = None, output: str = "real") -> Any:
    """Return `qz` with the eigenvalues."""
    return qz(A, B, output, sort, return_eigenvalues=True)
