"""Determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.linalg.matrices import as_square, check_square
from engine.tensor.linalg.solvers import inv
from engine.tensor.type import tensor_type


class SLogDet(Op):
    """The sign of the determinant of a square matrix (0 if it is 0) and the logarithm of its magnitude (-inf then).

    Where the logarithm is NaN, so is the sign. The gradient of a singular matrix is made of NaNs.
    """

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = as_square("SLogDet", x)
        return Apply(self, [x], [tensor_type(x.type.dtype, ()).make_variable() for _ in range(2)])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        check_square("SLogDet", inputs[0])
        with np.errstate(invalid="ignore"):
            sign, logarithm = np.linalg.slogdet(inputs[0])
        if np.isnan(logarithm) or (sign == 0 and not np.isfinite(inputs[0]).all()):
            sign = logarithm = np.full((), np.nan, inputs[0].dtype)
        output_storage[0][0], output_storage[1][0] = np.asarray(sign), np.asarray(logarithm)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[1] is None:
            return [None]
        return [pt.mul(cotangents[1], pt.transpose(inv(inputs[0])))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True]]

    def __str__(self) -> str:
        return "SLogDet"

    __repr__ = __str__


def slogdet(x: Any) -> tuple[Any, Any]:
    """The sign of the determinant of a square matrix (0 if it is 0) and the logarithm of its magnitude (-inf then)."""
    sign, logabsdet = SLogDet().make_node(x).outputs
    return sign, logabsdet


def det(x: Any) -> Any:
    """The determinant of a square matrix. The gradient of a singular matrix is made of NaNs."""
    sign, logabsdet = slogdet(x)
    return pt.mul(sign, pt.exp(logabsdet))
