"""Solutions of equations that are not square: by least squares, and for tensors of several axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.linalg.equations import as_inexact, inv, real_of, solve
from engine.tensor.math import mul, neg
from engine.tensor.products import matrix_product
from engine.tensor.rearranging import moveaxis
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import lengths_along, reshape, transpose
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Lstsq(Op):
    """The x that minimizes the sum of squares of `A x - b`, with the sums, the rank of A and its singular
    values.

    Inputs: A, b (a vector or a matrix) and the share of the largest singular value below which another counts
    as 0. There are no sums if A has less than full rank, or no more rows than columns. It has no gradient.
    """

    __props__ = ()

    def make_node(self, x: Any, y: Any, rcond: Any) -> Apply:
        x, y = as_inexact(x, y)
        dtype, real = x.type.dtype, real_of(x.type.dtype)
        rcond = cast(as_tensor_variable(rcond), real)
        if x.type.ndim != 2 or y.type.ndim not in (1, 2) or rcond.type.ndim != 0:
            raise TypeError(
                f"Applying {self} to {x.type}, {y.type} and {rcond.type}: it takes a matrix, a vector or a "
                "matrix, and a number"
            )
        solution = tensor_type(dtype, (x.type.shape[1], *y.type.shape[1:]))
        rows, columns = x.type.shape
        size = None if rows is None or columns is None else min(rows, columns)
        types = [solution, tensor_type(real, (None,)), tensor_type("int32", ()), tensor_type(real, (size,))]
        return Apply(self, [x, y, rcond], [type.make_variable() for type in types])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, y, rcond = inputs
        found = np.linalg.lstsq(x, y, float(rcond))
        for cell, output, value in zip(output_storage, node.outputs, found, strict=True):
            cell[0] = np.asarray(value, output.type.dtype, order="C")


def lstsq(x: Any, y: Any, rcond: Any) -> Any:
    """Return the solution of `x @ s = y` by least squares, the sums of squares, the rank and the singular
    values.

    Singular values of `x` below `rcond` times the largest count as 0. There are no sums if `x` has less
    than full rank, or no more rows than columns. It has no gradient.
    """
    return Lstsq()(x, y, rcond)


class TensorInv(ReplacedOp):
    """The inverse of a tensor for products over its first `ind` axes."""

    __props__ = ("ind",)

    def __init__(self, ind: int = 2) -> None:
        self.ind = int(ind)

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        (a,) = inputs
        if not 0 < self.ind < a.type.ndim:
            raise ValueError(
                f"Inverting {a.type} with ind={self.ind}: it must be from 1 to {a.type.ndim - 1}"
            )
        lengths = lengths_along(a)
        found = inv(_as_matrix(a, self.ind))
        return [reshape(found, (*lengths[self.ind :], *lengths[: self.ind]))]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        (a,), (gradient,) = inputs, cotangents
        if gradient is None:
            return [None]
        turned, given = (_as_matrix(v, a.type.ndim - self.ind) for v in (outputs[0], gradient))
        found = neg(matrix_product(matrix_product(transpose(turned), given), transpose(turned)))
        return [reshape(found, lengths_along(a))]


def _as_matrix(a: Any, count: int) -> Any:
    """Return `a` with its first `count` axes as rows, and the others as columns."""
    lengths = lengths_along(a)
    return reshape(a, (reduce(mul, lengths[:count]), reduce(mul, lengths[count:])))


def tensorinv(a: Any, ind: int = 2) -> TensorVariable:
    """Return the inverse of `a` for products over its first `ind` axes: `tensordot(tensorinv(a), a, ind)`
    is the identity. As a matrix, of its first and its other axes, `a` must be square.
    """
    return TensorInv(ind)(a)


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> TensorVariable:
    """Return the x with `tensordot(a, x, x.ndim)` = b: a has the axes of b, then those of x.

    `axes` of a are moved to its end first. As a matrix, `a` must be square.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if axes is not None:
        a = moveaxis(a, list(axes), list(range(a.type.ndim - len(axes), a.type.ndim)))
    if a.type.ndim <= b.type.ndim:
        raise ValueError(f"Solving for {b.type} by {a.type}: the coefficients must have more dimensions")
    lengths = lengths_along(a)
    unknown = lengths[b.type.ndim :]
    matrix = reshape(a, (reduce(mul, lengths[: b.type.ndim]), reduce(mul, unknown)))
    return reshape(solve(matrix, b.flatten(), b_ndim=1), unknown)
