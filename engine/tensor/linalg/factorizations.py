"""Cholesky factors and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.tensor.blockwise import batched
from engine.tensor.diagonals import only_triangle
from engine.tensor.linalg.equations import (
    as_inexact,
    as_square,
    check_square,
    failure,
    inv,
    real_of,
    solve_triangular,
)
from engine.tensor.linalg.matrix_op import MatrixOp
from engine.tensor.math import add, exp, mul
from engine.tensor.products import matrix_product
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import transpose
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Cholesky(MatrixOp):
    """The triangular factor of a positive definite x: L with `L L.T` = x if `lower`, otherwise U with
    `U.T U` = x.

    Only that triangle of x is read. If x is not positive definite, the result is NaN, or, with
    `on_error="raise"`, LinAlgError is raised.
    """

    __props__ = ("lower", "on_error")
    gufunc_signature = "(m,m)->(m,m)"

    def __init__(self, *, lower: bool = True, on_error: str = "nan") -> None:
        if on_error not in ("raise", "nan"):
            raise ValueError(f'Making a Cholesky with on_error={on_error!r}: it must be "raise" or "nan"')
        self.lower, self.on_error = bool(lower), on_error

    def make_node(self, x: Any) -> Apply:
        x = as_square(str(self), x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        check_square(str(self), inputs[0])
        try:
            output_storage[0][0] = np.linalg.cholesky(inputs[0], upper=not self.lower)
        except np.linalg.LinAlgError as error:
            if self.on_error == "raise":
                raise failure(str(self), error) from error
            output_storage[0][0] = np.full_like(inputs[0], np.nan, order="C")

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Follow Murray, "Differentiation of the Cholesky decomposition", 2016, equation 10."""
        factor, gradient = outputs[0], cotangents[0]
        if gradient is None:
            return [None]
        if not self.lower:
            factor, gradient = transpose(factor), transpose(gradient)
        inner = only_triangle(matrix_product(transpose(factor), gradient), True, halved=True)
        right = solve_triangular(factor, transpose(inner), lower=True, trans=1)
        found = solve_triangular(factor, transpose(right), lower=True, trans=1)
        return [only_triangle(add(found, transpose(found)), self.lower, halved=True)]


def cholesky(
    x: Any,
    lower: bool = True,
    *,
    check_finite: bool = True,
    overwrite_a: bool = False,
    on_error: str = "nan",
) -> TensorVariable:
    """Return the triangular factor of the positive definite x: L with `L L.T` = x if `lower`, or U with
    `U.T U` = x.

    Only that triangle of x is read. If x is not positive definite, the result is NaN, or, with
    `on_error="raise"`, LinAlgError is raised. Leading axes are a batch. `check_finite` and `overwrite_a` are
    ignored.
    """
    return batched(Cholesky(lower=lower, on_error=on_error), x)


class SLogDet(MatrixOp):
    """The sign (0 if singular) and the logarithm of the magnitude (-inf if singular) of a determinant.

    If the logarithm is NaN, so is the sign. The gradient of a singular matrix is NaN.
    """

    __props__ = ()
    gufunc_signature = "(m,m)->(),()"

    def make_node(self, x: Any) -> Apply:
        x = as_square("SLogDet", x)
        types = [tensor_type(dtype, ()) for dtype in (x.type.dtype, real_of(x.type.dtype))]
        return Apply(self, [x], [type.make_variable() for type in types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        check_square("SLogDet", inputs[0])
        with np.errstate(invalid="ignore"):
            sign, logarithm = np.linalg.slogdet(inputs[0])
        if np.isnan(logarithm) or (sign == 0 and not np.isfinite(inputs[0]).all()):
            sign = logarithm = np.full((), np.nan)
        for cell, output, value in zip(output_storage, node.outputs, (sign, logarithm), strict=True):
            cell[0] = np.asarray(value, output.type.dtype)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[1] is None:
            return [None]
        return [mul(cotangents[1], transpose(inv(inputs[0])))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True]]


def slogdet(x: Any) -> tuple[Any, Any]:
    """Return the sign (0 if singular) and the log of the magnitude (-inf if singular) of a determinant.

    Leading axes are a batch.
    """
    sign, logabsdet = batched(SLogDet(), x)
    return sign, logabsdet


class Det(ReplacedOp, MatrixOp):
    """The determinant of a square matrix. The gradient of a singular matrix is NaN."""

    __props__ = ()
    gufunc_signature = "(m,m)->()"

    def make_node(self, *inputs: Any) -> Apply:
        (x,) = as_inexact(*inputs)
        shape = x.type.shape
        if len(shape) == 2 and None not in shape and shape[0] != shape[1]:
            raise ValueError(
                f"Applying {self} to {x.type}: Determinant not defined, the matrix must be square"
            )
        return super().make_node(as_square(str(self), x))

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        sign, logarithm = slogdet(inputs[0])
        return [mul(sign, exp(logarithm))]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        return [mul(mul(cotangents[0], outputs[0]), transpose(inv(inputs[0])))]


def det(x: Any) -> TensorVariable:
    """Return the determinant of a square matrix. The gradient of a singular matrix is NaN.

    Leading axes are a batch.
    """
    return batched(Det(), x)
