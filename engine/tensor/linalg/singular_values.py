"""Singular values: the decomposition, ranks, and the inverse of a matrix of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import NullGradientError
from engine.tensor.blockwise import batched
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.diagonals import eye, identity_like
from engine.tensor.elemwise import cast
from engine.tensor.linalg.callback_op import Arrays, CallbackOp, zeros_for_none
from engine.tensor.linalg.equations import as_inexact, real_of
from engine.tensor.math import abs as absolute
from engine.tensor.math import gt, lt, maximum, mul, sub, switch
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import expand_dims, shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_LEAST_GAP = 1e-8


class SVD(CallbackOp):
    """The singular values of a matrix, in descending order, and with `compute_uv` its singular vectors:
    U, s, Vh with `x = U * s @ Vh`.

    U and Vh are square if `full_matrices`; otherwise they have as many columns, or rows, as s has elements.
    """

    __props__ = ("full_matrices", "compute_uv")
    takes_batches = True

    def __init__(self, full_matrices: bool = True, compute_uv: bool = True) -> None:
        self.full_matrices, self.compute_uv = bool(full_matrices), bool(compute_uv)
        vectors = ("(m,m)", "(n,n)") if self.full_matrices else ("(m,k)", "(k,n)")
        self.gufunc_signature = f"(m,n)->{vectors[0]},(k),{vectors[1]}" if self.compute_uv else "(m,n)->(k)"

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, real_of(dtype), dtype] if self.compute_uv else [real_of(dtype)]

    def computed(self, *arrays: Any) -> Sequence[Any]:
        if self.compute_uv:
            return np.linalg.svd(arrays[0], self.full_matrices)
        return (np.linalg.svd(arrays[0], compute_uv=False),)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        """Follow Seeger and others, "Auto-differentiating linear algebra", 2017, and for matrices that are
        not square Townsend, "Differentiating the singular value decomposition", 2016.

        Gaps between singular values count as at least 1e-8: vectors of equal ones have no gradient.
        """
        of_s = cotangents[1 if self.compute_uv else 0]
        if not self.compute_uv or (cotangents[0] is None and cotangents[2] is None):
            u, _, vh = SVD(full_matrices=False)(inputs[0])
            return [(u * of_s) @ vh]
        if self.full_matrices:
            raise NullGradientError(
                f"Taking a gradient through the vectors of {self}: they are not unique; use "
                "full_matrices=False",
                self,
            )
        return [_of_vectors(*outputs, *zeros_for_none(outputs, cotangents))]


def _of_vectors(u: Any, s: Any, vh: Any, of_u: Any, of_s: Any, of_vh: Any) -> Any:
    row, column = s.dimshuffle("x", 0), s.dimshuffle(0, "x")
    unit = eye(shape_i(s, 0), dtype=s.type.dtype)
    rates = sub(1, unit) / (_gap(row - column) * _gap(row + column))
    left, right = u.T @ of_u, vh @ of_vh.T
    within = rates * (left - left.T) * row + unit * of_s + column * (rates * (right - right.T))
    below = ((of_u - u @ left) / row) @ vh
    beside = (u / row) @ (of_vh - right.T @ vh)
    return u @ within @ vh + below + beside


def _gap(difference: Any) -> Any:
    size = maximum(
        absolute(difference), np.float32(_LEAST_GAP) if difference.type.dtype == "float32" else _LEAST_GAP
    )
    return switch(lt(difference, 0), -size, size)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return U, s and Vh with `a = U * s @ Vh`, or, without `compute_uv`, the singular values s alone.

    U and Vh are square if `full_matrices`, otherwise they have as many columns, or rows, as s has elements.
    Leading axes are a batch. NaN where it does not converge. The gradient of the vectors needs
    full_matrices=False, and singular values that differ.
    """
    return batched(SVD(full_matrices, compute_uv), a)


class MatrixPinv(CallbackOp):
    """The Moore-Penrose inverse of a matrix, which is symmetric if `hermitian`."""

    __props__ = ("hermitian",)
    takes_batches = True
    gufunc_signature = "(m,n)->(n,m)"

    def __init__(self, hermitian: bool = False) -> None:
        self.hermitian = bool(hermitian)

    def computed(self, *arrays: Any) -> Sequence[Any]:
        return (np.linalg.pinv(arrays[0], hermitian=self.hermitian),)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        """Follow Golub and Pereyra, "The differentiation of pseudo-inverses", 1973, equation 4.12."""
        (x,), (z,), (gradient,) = inputs, outputs, cotangents
        rows, columns = x @ z, z @ x
        found = -(z @ gradient.T @ z)
        found = found + z @ z.T @ gradient @ (identity_like(rows) - rows)
        found = found + (identity_like(columns) - columns) @ gradient @ z.T @ z
        return [found.T]


class MatrixPinvOfLarge(MatrixPinv):
    """The Moore-Penrose inverse of a matrix, in which singular values of at most a second input times the
    largest one count as 0.
    """

    gufunc_signature = "(m,n),()->(n,m)"

    def computed(self, *arrays: Any) -> Sequence[Any]:
        return (np.linalg.pinv(arrays[0], arrays[1].real, self.hermitian),)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        return [*super().gradients(inputs[:1], outputs, cotangents), None]


def pinv(x: Any, hermitian: bool = False, *, rtol: Any = None) -> TensorVariable:
    """Return the Moore-Penrose inverse of `x`, symmetric if `hermitian`. Leading axes are a batch.

    Singular values of at most `rtol` (1e-15) times the largest one count as 0.
    """
    if rtol is None:
        return batched(MatrixPinv(hermitian), x)
    (x,) = as_inexact(x)
    return batched(MatrixPinvOfLarge(hermitian), x, cast(as_tensor_variable(rtol), real_of(x.type.dtype)))


def svdvals(x: Any) -> TensorVariable:
    """Return the singular values of `x`, in descending order. Leading axes are a batch."""
    return svd(x, compute_uv=False)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> TensorVariable:
    """Return the number of singular values above `tol`, or above `rtol` times the largest one, as int64.

    `rtol` is by default the larger of the lengths times the rounding error of the dtype. Leading axes are a
    batch. `hermitian` is numpy's and decides nothing here.
    """
    A = as_tensor_variable(A)
    values = svdvals(A)
    if tol is not None:
        limit = expand_dims(as_tensor_variable(tol), -1)
    else:
        if rtol is None:
            rtol = mul(maximum(shape_i(A, -2), shape_i(A, -1)), float(np.finfo(values.type.dtype).eps))
        limit = mul(largest(values, -1, keepdims=True), expand_dims(as_tensor_variable(rtol), -1))
    return sum_over(gt(values, limit), -1, dtype="int64")
