"""Softmax, its logarithm, and the logarithm of a sum of exponentials: computed so that nothing overflows.

The largest element over the axes is subtracted before exponentials are taken (Blanchard, Higham and Higham, "Accurately
computing the log-sum-exp and softmax functions", 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import FLOATS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.reduction import Reduction, normalize_axis


class _OverAxes(Op):
    """Base class of what normalizes a float tensor over `axis`, a sorted tuple of axes, none negative."""

    __props__ = ("axis",)

    def __init__(self, axis: Sequence[int]) -> None:
        self.axis = tuple(sorted(axis))
        if not self.axis or len(set(self.axis)) != len(self.axis) or self.axis[0] < 0:
            raise ValueError(f"Normalizing over axes {self.axis}: each may occur once, none may be negative")

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.dtype not in FLOATS or self.axis[-1] >= x.type.ndim:
            raise TypeError(f"Applying {self} to {x.type}: it takes floats, and axes that there are")
        return Apply(self, [x], [x.type.make_variable()])

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axis={list(self.axis)}}}"

    __repr__ = __str__


class Softmax(_OverAxes):
    """exp(x) divided by its sum over `axis`."""

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x = inputs[0]
        with np.errstate(all="ignore"):
            powers = np.exp(x - _largest(x, self.axis))
            output_storage[0][0] = powers / np.sum(powers, axis=self.axis, keepdims=True)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        gradient = cotangents[0]
        if gradient is None:
            return [None]
        weighted = pt.mul(gradient, outputs[0])
        return [pt.sub(weighted, pt.mul(pt.sum(weighted, self.axis, keepdims=True), outputs[0]))]


class LogSoftmax(_OverAxes):
    """The logarithm of the softmax of x over `axis`."""

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        with np.errstate(all="ignore"):
            moved = inputs[0] - _largest(inputs[0], self.axis)
            output_storage[0][0] = moved - np.log(np.sum(np.exp(moved), axis=self.axis, keepdims=True))

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        gradient = cotangents[0]
        if gradient is None:
            return [None]
        return [pt.sub(gradient, pt.mul(pt.sum(gradient, self.axis, keepdims=True), pt.exp(outputs[0])))]


class LogSumExp(Reduction):
    """The logarithm of the sum of exp(x) over `axis`, of floats; -inf for the sum of nothing but exp(-inf).

    Refuses (ValueError) to reduce no elements.
    """

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.dtype not in FLOATS:
            raise TypeError(f"Applying {self} to {x.type}: it takes floats")
        return super().make_node(x)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x = inputs[0]
        with np.errstate(all="ignore"):
            largest = _largest(x, self.axis)
            shift = np.where(np.isinf(largest), x.dtype.type(0), largest)
            total = np.log(np.sum(np.exp(x - shift), axis=self.axis))
            output_storage[0][0] = np.asarray(total + np.squeeze(shift, self.axis))

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        ndim = inputs[0].type.ndim
        weights = pt.exp(pt.sub(inputs[0], self.expand(outputs[0], ndim)))
        return [pt.mul(self.expand(cotangents[0], ndim), weights)]


def _largest(x: np.ndarray, axis: tuple[int, ...]) -> Any:
    return np.max(x, axis=axis, keepdims=True)


def _as_floats(x: Any) -> Any:
    x = as_tensor_variable(x)
    return x if x.type.dtype in FLOATS else cast(x, "float64")


def _normalized(op: type[_OverAxes], x: Any, axis: Any) -> Any:
    x = _as_floats(x)
    return op(normalize_axis(axis, x.type.ndim)).make_node(x).outputs[0]


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) divided by its sum over `axis`: an axis, several, or all."""
    return _normalized(Softmax, x, axis)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of the softmax of `x` over `axis`: an axis, several, or all."""
    return _normalized(LogSoftmax, x, axis)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exp(x) over `axis`: an axis, several, or all."""
    x = _as_floats(x)
    op = LogSumExp(normalize_axis(axis, x.type.ndim))
    result = op.make_node(x).outputs[0]
    return op.expand(result, x.type.ndim) if keepdims else result
