"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.scalar.arithmetic import mul
from engine.scalar.complex_numbers import conj
from engine.scalar.promotion import COMPLEX, INEXACT, common_dtype
from engine.tensor.blockwise import Blockwise
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import apply_elemwise, as_gradient, cast, dimshuffle
from engine.tensor.shape import flatten, transpose
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_SIGNATURES = {
    (1, 1): "(k),(k)->()",
    (1, 2): "(k),(k,n)->(n)",
    (2, 1): "(m,k),(k)->(m)",
    (2, 2): "(m,k),(k,n)->(m,n)",
}
"""The signatures of products, by the ranks of the operands."""


class Dot(Op):
    """The product of two tensors of 1 or 2 dimensions: last axis of the first with first axis of the second.

    It is computed in the common dtype; bools combine by `and` and `or`. Raises ValueError for lengths
    that differ.
    """

    __props__ = ()
    differentiates_complex = True

    def make_node(self, x: Any, y: Any) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        if not (1 <= x.type.ndim <= 2 and 1 <= y.type.ndim <= 2):
            raise TypeError(f"Multiplying {x.type} by {y.type}: both must have 1 or 2 dimensions")
        inner = (x.type.shape[-1], y.type.shape[0])
        if None not in inner and inner[0] != inner[1]:
            raise ValueError(_mismatch(x.type.shape, y.type.shape))
        dtype = common_dtype(x.type.dtype, y.type.dtype)
        return Apply(self, [x, y], [tensor_type(dtype, x.type.shape[:-1] + y.type.shape[1:]).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, y = inputs
        if x.shape[-1] != y.shape[0]:
            raise ValueError(_mismatch(x.shape, y.shape))
        dtype = common_dtype(node.inputs[0].type.dtype, node.inputs[1].type.dtype)
        with np.errstate(all="ignore"):
            output_storage[0][0] = np.asarray(
                np.dot(x.astype(dtype, copy=False), y.astype(dtype, copy=False))
            )

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        x, y = node.inputs
        return Blockwise(self, _SIGNATURES[x.type.ndim, y.type.ndim]).make_node(*inputs).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.pullback_wanted(inputs, outputs, cotangents, (True, True))

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        """Return the result of `pullback`, with None for inputs that are not `wanted`."""
        gradient = cotangents[0]
        if gradient is None or outputs[0].type.dtype not in INEXACT:
            return [None, None]
        rules: tuple[Any, ...] = (_of_left, _of_right)
        factors = [_conjugate(variable) for variable in inputs]
        found = [
            rule(*factors, gradient) if w else None
            for rule, w in zip(rules, wanted or (True, True), strict=True)
        ]
        return [as_gradient(g, v.type.dtype) for g, v in zip(found, inputs, strict=True)]


def _of_left(x: Any, y: Any, gradient: Any) -> Any:
    if y.type.ndim == 2:
        return matrix_product(gradient, transpose(y))
    return apply_elemwise(mul, gradient, y) if x.type.ndim == 1 else _outer(gradient, y)


def _of_right(x: Any, y: Any, gradient: Any) -> Any:
    if x.type.ndim == 2:
        return matrix_product(transpose(x), gradient)
    return apply_elemwise(mul, gradient, x) if y.type.ndim == 1 else _outer(x, gradient)


def _outer(x: Any, y: Any) -> Any:
    return apply_elemwise(mul, dimshuffle(x, (0, "x")), dimshuffle(y, ("x", 0)))


def _conjugate(variable: Variable) -> Any:
    return apply_elemwise(conj, variable) if variable.type.dtype in COMPLEX else variable


def _mismatch(x: Sequence[int | None], y: Sequence[int | None]) -> str:
    return (
        f"Multiplying a tensor of shape {tuple(x)} by one of shape {tuple(y)}: lengths {x[-1]} and "
        f"{y[0]} must be equal"
    )


_dot = Dot()


def matrix_product(x: Any, y: Any) -> TensorVariable:
    """Return the product of `x` and `y` of up to 2 dimensions; elementwise if one has none."""
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if x.type.ndim == 0 or y.type.ndim == 0:
        return apply_elemwise(mul, x, y)
    return _dot(x, y)


def matmul(x1: Any, x2: Any, dtype: Any = None) -> TensorVariable:
    """Return the products of the matrices in the last two axes of `x1` and `x2`; the others are a batch.

    One of 1 dimension is a vector. With a `dtype`, the result is cast to it. Raises ValueError for 0
    dimensions.
    """
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    if min(x1.type.ndim, x2.type.ndim) == 0:
        raise ValueError(f"Multiplying {x1.type} by {x2.type}: matmul operand cannot be scalar")
    if max(x1.type.ndim, x2.type.ndim) <= 2:
        found = _dot(x1, x2)
        return found if dtype is None else cast(found, dtype)
    ranks = min(x1.type.ndim, 2), min(x2.type.ndim, 2)
    found = Blockwise(_dot, _SIGNATURES[ranks])(x1, x2)
    return found if dtype is None else cast(found, dtype)


def outer(x: Any, y: Any) -> TensorVariable:
    """Return the matrix of products of the elements of `x` and `y`, both flattened."""
    return _outer(flatten(x), flatten(y))
