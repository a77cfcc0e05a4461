"""Where the largest and the smallest elements are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import dimshuffle
from engine.tensor.reduction import normalize_axis
from engine.tensor.shape import flatten
from engine.tensor.type import tensor_type


class _Extreme(Op):
    """Base class of the positions along `axis`, int64, of the first of the extreme elements: a NaN is the most extreme.

    Refuses (ValueError) to look among no elements.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = int(axis)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if not 0 <= self.axis < x.type.ndim:
            raise TypeError(f"Applying {self} to {x.type}: it has no axis {self.axis}")
        shape = [length for axis, length in enumerate(x.type.shape) if axis != self.axis]
        return Apply(self, [x], [tensor_type("int64", tuple(shape)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.asarray(self.found(inputs[0]), "int64")

    def found(self, x: np.ndarray) -> Any:
        """The positions in an array."""
        raise NotImplementedError

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axis={self.axis}}}"

    __repr__ = __str__


class Argmax(_Extreme):
    """Where the first of the largest elements is."""

    def found(self, x: np.ndarray) -> Any:
        return np.argmax(x, axis=self.axis)


class Argmin(_Extreme):
    """Where the first of the smallest elements is."""

    def found(self, x: np.ndarray) -> Any:
        return np.argmin(x, axis=self.axis)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position along `axis` of the first of the largest elements; without an axis, in `x` flattened."""
    return _position(Argmax, x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position along `axis` of the first of the smallest elements; without an axis, in `x` flattened."""
    return _position(Argmin, x, axis, keepdims)


def _position(op: type[_Extreme], x: Any, axis: int | None, keepdims: bool) -> Any:
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    if axis is None:
        found = op(0).make_node(flatten(x)).outputs[0]
        return dimshuffle(found, ["x"] * ndim) if keepdims else found
    (number,) = normalize_axis(axis, ndim)
    found = op(number).make_node(x).outputs[0]
    kept = iter(range(ndim))
    return dimshuffle(found, ["x" if a == number else next(kept) for a in range(ndim)]) if keepdims else found
