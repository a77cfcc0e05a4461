"""Cholesky's factor of a positive definite matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.diagonal import only_triangle
from engine.tensor.linalg.matrices import as_square, check_square, failure
from engine.tensor.linalg.solvers import solve_triangular


class Cholesky(Op):
    """The triangular L with `L L.T` = x if `lower`, else the U with `U.T U` = x; only that triangle of x is read.

    Where x is not positive definite: it gives NaNs, or, with `on_error="raise"`, raises LinAlgError.
    """

    __props__ = ("lower", "on_error")

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
        """Murray, "Differentiation of the Cholesky decomposition", 2016, equation 10."""
        factor, gradient = outputs[0], cotangents[0]
        if gradient is None:
            return [None]
        if not self.lower:
            factor, gradient = pt.transpose(factor), pt.transpose(gradient)
        inner = only_triangle(pt.dot(pt.transpose(factor), gradient), True, halved=True)
        right = solve_triangular(factor, pt.transpose(inner), lower=True, trans=1)
        found = solve_triangular(factor, pt.transpose(right), lower=True, trans=1)
        return [only_triangle(pt.add(found, pt.transpose(found)), self.lower, halved=True)]

    def __str__(self) -> str:
        return f"Cholesky{{lower={self.lower}, on_error={self.on_error}}}"

    __repr__ = __str__


def cholesky(x: Any, lower: bool = True, *, on_error: str = "nan") -> Any:
    """The triangular factor of x, which is symmetric and positive definite: L with `L L.T` = x if `lower`, else U with
    `U.T U` = x. Only that triangle of x is read.

    Where x is not positive definite: NaNs, or LinAlgError with `on_error="raise"`.
    """
    return Cholesky(lower=lower, on_error=on_error).make_node(x).outputs[0]
