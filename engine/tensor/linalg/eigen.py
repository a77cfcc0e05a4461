"""Eigenvalues and eigenvectors: of symmetric or hermitian matrices, of pairs of them, and of any matrix.

Gradients follow Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008, section 3.1, and for pairs Boeddeker and others, "On the computation of
complex-valued gradients", 2017, section 4.4. Only the triangle that is read has a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.tensor.blockwise import batched
from engine.tensor.diagonals import eye, only_triangle
from engine.tensor.linalg.callback_op import Arrays, CallbackOp, zeros_for_none
from engine.tensor.linalg.equations import complex_of, real_of
from engine.tensor.math import switch, true_div
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_DRIVERS = ("evr", "evd")


class Eig(CallbackOp):
    """The complex eigenvalues of a square matrix, and its eigenvectors, as columns. They have no gradient."""

    __props__ = ()
    gufunc_signature = "(m,m)->(m),(m,m)"
    takes_batches = True

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        return [complex_of(dtype)] * 2

    def computed(self, *arrays: Any) -> Sequence[Any]:
        return np.linalg.eig(arrays[0])


def eig(x: Any) -> Any:
    """Return the eigenvalues of a square matrix and its eigenvectors, as columns: complex numbers.

    They have no gradient. Leading axes are a batch.
    """
    return batched(Eig(), x)


def eigvals(x: Any) -> TensorVariable:
    """Return the eigenvalues of a square matrix: complex numbers, without a gradient. Leading axes are a
    batch.
    """
    return eig(x)[0]


class Eigh(CallbackOp):
    """The eigenvalues of a symmetric or hermitian matrix, ascending, and its eigenvectors, as columns.

    Of two matrices A and B, B positive definite, those with `A v = w B v`. Only the `lower` or upper
    triangles are read. `driver` is LAPACK's algorithm for one matrix: "evr" or "evd".
    """

    __props__ = ("lower", "driver", "generalized")

    def __init__(self, lower: bool = True, driver: str = "evr", generalized: bool = False) -> None:
        if driver not in _DRIVERS:
            raise ValueError(f"Making an Eigh: Invalid driver {driver!r}; it must be one of {_DRIVERS}")
        self.lower, self.driver, self.generalized = bool(lower), driver, bool(generalized)
        self.gufunc_signature = "(m,m),(m,m)->(m),(m,m)" if self.generalized else "(m,m)->(m),(m,m)"

    @property
    def is_called_back(self) -> bool:
        """True for a pair of matrices: one has a kernel."""
        return self.generalized

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_of(dtype), dtype]

    def computed(self, *arrays: Any) -> Sequence[Any]:
        if not arrays[0].size:
            return arrays[0].real.reshape(0), arrays[0]
        if not self.generalized:
            return _solved(arrays[0], self.lower, self.driver, with_vectors=True)
        from scipy.linalg import eigh as solved_pair

        found: Sequence[Any] = solved_pair(*arrays, lower=self.lower, check_finite=False)
        return found

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        """Return the gradients; those of eigenvectors need eigenvalues that differ."""
        (w, v), (of_w, of_v) = outputs, zeros_for_none(outputs, cotangents)
        unit = eye(shape_i(w, 0), dtype=w.type.dtype)
        within = unit * of_w
        along = unit
        if cotangents[1] is not None:
            along = v.T @ of_v
            gaps = switch(unit > 0, 1, w.dimshuffle("x", 0) - w.dimshuffle(0, "x"))
            within = within + switch(unit > 0, 0, true_div(along, gaps))
        found = [v @ within @ v.T]
        if self.generalized:
            of_b = v @ (within * w) @ v.T
            if cotangents[1] is not None:
                of_b = of_b + 0.5 * (v * sum_over(along * unit, 0)) @ v.T
            found.append(-of_b)
        return [_as_read(gradient, self.lower) for gradient in found]


def _solved(x: Any, lower: bool, driver: str, with_vectors: bool) -> tuple[Any, Any]:
    """Return the eigenvalues and vectors by LAPACK's `driver`, called as SciPy does, without its checks.

    Raises LinAlgError if it does not converge.
    """
    name = ("he" if x.dtype.kind == "c" else "sy") + driver
    routine, rooms = _routine(name, x.dtype.char, len(x), lower)
    w, v, *_, info = routine(x, lower=lower, compute_v=with_vectors, **rooms)
    if info != 0:
        raise np.linalg.LinAlgError(f"{driver} returned {info}")
    return w, v


@lru_cache(maxsize=256)
def _routine(name: str, dtype: str, rows: int, lower: bool) -> tuple[Any, dict[str, int]]:
    """Return LAPACK's routine, and the sizes of the work spaces that it asks for.

    With others it computes in blocks of another size, and vectors may have another sign.
    """
    from scipy.linalg import get_lapack_funcs

    routine, query = get_lapack_funcs((name, f"{name}_lwork"), dtype=dtype)
    *sizes, _ = query(rows, lower=lower)
    rooms = {"heevr": ("lwork", "lrwork", "liwork"), "heevd": ("lwork", "liwork", "lrwork")}
    named = zip(rooms.get(name, ("lwork", "liwork")), sizes, strict=True)
    return routine, {key: int(size.real) for key, size in named}


def _as_read(gradient: Any, lower: bool) -> Any:
    """Return the gradient of the triangle that is read, given that of a matrix read whole."""
    return only_triangle(gradient + gradient.T, lower, halved=True)


def eigh(a: Any, b: Any = None, lower: bool = True, UPLO: str | None = None, driver: str = "evr") -> Any:
    """Return the eigenvalues of the symmetric matrix `a`, ascending, and its eigenvectors, as columns.

    With the positive definite `b` they are those with `a v = w b v`. Only the `lower` (`UPLO` "L") or upper
    triangles are read. `driver` is LAPACK's algorithm for `a` alone: "evr" or "evd". Leading axes are a
    batch.
    """
    lower = lower if UPLO is None else UPLO == "L"
    if b is None:
        return batched(Eigh(lower, driver), a)
    return batched(Eigh(lower, "evd", generalized=True), a, b)


class Eigvalsh(CallbackOp):
    """The eigenvalues of a symmetric or hermitian matrix, ascending; of two matrices those with `A v = w B
    v`.

    Only the `lower` or upper triangles are read.
    """

    __props__ = ("lower", "generalized")

    def __init__(self, lower: bool = True, generalized: bool = False) -> None:
        self.lower, self.generalized = bool(lower), bool(generalized)
        self.gufunc_signature = "(m,m),(m,m)->(m)" if self.generalized else "(m,m)->(m)"

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_of(dtype)]

    def computed(self, *arrays: Any) -> Sequence[Any]:
        if not arrays[0].size:
            return (arrays[0].real.reshape(0),)
        if not self.generalized:
            return _solved(arrays[0], self.lower, "evr", with_vectors=False)[:1]
        from scipy.linalg import eigvalsh as solved_pair

        return (solved_pair(*arrays, lower=self.lower, check_finite=False),)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        w, v = Eigh(self.lower, "evd", self.generalized)(*inputs)
        scaled = v * cotangents[0]
        found = [scaled @ v.T, -(scaled * w) @ v.T][: len(inputs)]
        return [_as_read(gradient, self.lower) for gradient in found]


def eigvalsh(a: Any, b: Any = None, lower: bool = True) -> TensorVariable:
    """Return the eigenvalues of the symmetric matrix `a`, ascending; with `b` those with `a v = w b v`.

    Only the `lower` or upper triangles are read. Leading axes are a batch.
    """
    return batched(Eigvalsh(lower), a) if b is None else batched(Eigvalsh(lower, generalized=True), a, b)
