"""The linear algebra and the Fourier transforms of the standard."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import engine.tensor as pt

LINALG, FFT = pt.linalg, pt.fft


class Eigenpairs(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class OrthogonalFactors(NamedTuple):
    """A matrix with orthogonal columns and an upper triangular one."""

    Q: Any
    R: Any


class LogDeterminant(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: Any
    logabsdet: Any


class SingularVectors(NamedTuple):
    """Left singular vectors, singular values and right singular vectors."""

    U: Any
    S: Any
    Vh: Any


def cholesky(x: Any, *, upper: bool = False) -> Any:
    """Return the lower or `upper` triangular factor of positive definite matrices."""
    return LINALG.cholesky(x, lower=not upper, on_error="raise")


def cross(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    """Return the cross products along the negative `axis` of vectors of 3 elements."""
    return pt.cross(x1, x2, axis=_negative(axis, x1, x2))


def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    """Return the products of the conjugates of `x1` with `x2`, summed over the negative `axis`."""
    _negative(axis, x1, x2)
    first, second = pt.broadcast_arrays(pt.conj(x1), x2)
    return pt.vecdot(*(pt.moveaxis(x, axis, -1) for x in (first, second)))


def _negative(axis: int, *tensors: Any) -> int:
    if not max(-x.ndim for x in tensors) <= axis < 0:
        raise ValueError(f"Multiplying vectors along axis {axis}: it must be a negative axis of both")
    return axis


def matrix_rank(x: Any, *, rtol: Any = None) -> Any:
    """Return the number of singular values above `rtol` times the largest one."""
    return LINALG.matrix_rank(x, rtol=rtol)


def outer(x1: Any, x2: Any) -> Any:
    """Return the products of all elements of two vectors. Raises ValueError for arrays of other ranks."""
    if (x1.ndim, x2.ndim) != (1, 1):
        raise ValueError("Multiplying all elements of two arrays: both must be vectors")
    return pt.outer(x1, x2)


def pinv(x: Any, *, rtol: Any = None) -> Any:
    """Return the Moore-Penrose inverses of matrices, in which singular values up to `rtol` times the largest
    one count as 0.
    """
    if rtol is None:
        eps = float(np.finfo(x.dtype).eps)
        rtol = pt.mul(pt.maximum(x.shape[-2], x.shape[-1]), eps)
    return LINALG.pinv(x, rtol=rtol)


def qr(x: Any, *, mode: str = "reduced") -> OrthogonalFactors:
    """Return the QR factors of matrices; with `mode` "complete" Q is square."""
    return OrthogonalFactors(*LINALG.qr(x, mode={"reduced": "economic", "complete": "full"}[mode]))


def solve(x1: Any, x2: Any) -> Any:
    """Return the solutions of equations; `x2` is one vector if it has one axis, otherwise matrices."""
    return LINALG.solve(x1, x2, b_ndim=min(x2.ndim, 2))


def trace(x: Any, *, offset: int = 0, dtype: str | None = None) -> Any:
    """Return the sums of the diagonals `offset` of matrices."""
    return pt.sum(diagonal(x, offset=offset), -1, dtype)


def diagonal(x: Any, *, offset: int = 0) -> Any:
    """Return the diagonals `offset` of matrices."""
    return pt.diagonal(x, offset, -2, -1)


def fftfreq(n: int, *, d: float = 1.0, dtype: str | None = None) -> Any:
    """Return the frequencies of the `n` coefficients of `fft` for samples that are `d` apart."""
    return pt.cast(FFT.fftfreq(n, d), dtype or "float64")


def rfftfreq(n: int, *, d: float = 1.0, dtype: str | None = None) -> Any:
    """Return the frequencies of the coefficients of `rfft` for samples that are `d` apart."""
    return pt.cast(FFT.rfftfreq(n, d), dtype or "float64")


def rfft(x: Any, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Return the first half of the Fourier transform of a real array along `axis`."""
    return FFT.rfftn(x, None if n is None else (n,), (axis,), norm)


def irfft(x: Any, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """Return the inverse of `rfft`."""
    return FFT.irfftn(x, None if n is None else (n,), (axis,), norm)


_LINALG = "det eigvals eigvalsh inv matrix_norm matrix_power svdvals vector_norm".split()
_FFT = "fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfftn rfftn".split()

FUNCTIONS = {
    **{name: getattr(pt, name) for name in ("matmul", "tensordot", "matrix_transpose")},
    "vecdot": vecdot,
    **{f"linalg.{name}": getattr(pt, name) for name in ("matmul", "tensordot", "matrix_transpose")},
    **{f"linalg.{name}": getattr(LINALG, name) for name in _LINALG},
    "linalg.eig": lambda x: Eigenpairs(*LINALG.eig(x)),
    "linalg.eigh": lambda x: Eigenpairs(*LINALG.eigh(x)),
    "linalg.slogdet": lambda x: LogDeterminant(*LINALG.slogdet(x)),
    "linalg.svd": lambda x, *, full_matrices=True: SingularVectors(*LINALG.svd(x, full_matrices)),
    **{
        f"linalg.{function.__name__}": function
        for function in (
            cholesky,
            cross,
            diagonal,
            matrix_rank,
            outer,
            pinv,
            qr,
            solve,
            trace,
            vecdot,
        )
    },
    **{f"fft.{name}": getattr(FFT, name) for name in _FFT},
    **{f"fft.{function.__name__}": function for function in (fftfreq, irfft, rfft, rfftfreq)},
}
"""The functions by their names; those of the extensions begin with "linalg." and "fft."."""
