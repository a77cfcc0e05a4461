"""Numbers of a wider range and more digits than float64, with their derivatives: what exact arithmetic nearly gives.

`Wide` has the functions that random expressions are made of, under their public names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Dual:
    """An array of long doubles, and its derivatives for every element of the inputs: along the first axis."""

    __array_ufunc__ = None

    def __init__(self, value: Any, slopes: Any = None) -> None:
        self.value = np.asarray(value, np.longdouble)
        self.slopes = np.longdouble(0) if slopes is None else slopes

    def through(self, value: Any, slope: Any) -> Dual:
        return Dual(value, _times(slope, self.slopes))

    def __add__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value + other.value, self.slopes + other.slopes)

    def __mul__(self, other: Any) -> Dual:
        other = dual(other)
        slopes = _times(other.value, self.slopes) + _times(self.value, other.slopes)
        return Dual(self.value * other.value, slopes)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slopes)

    def __sub__(self, other: Any) -> Dual:
        return self + -dual(other)

    def __rsub__(self, other: Any) -> Dual:
        return dual(other) - self

    def __truediv__(self, other: Any) -> Dual:
        other = dual(other)
        value = self.value / other.value
        return Dual(value, (self.slopes - _times(value, other.slopes)) / other.value)

    def __rtruediv__(self, other: Any) -> Dual:
        return dual(other) / self

    def __pow__(self, power: float) -> Dual:
        return self.through(self.value**power, power * self.value ** (power - 1))

    __radd__, __rmul__ = __add__, __mul__


def _times(factor: Any, slopes: Any) -> Any:
    """0 times anything is 0: nothing that an input does not change is changed by it."""
    return np.where(np.asarray(slopes) == 0, np.longdouble(0), factor * slopes)


def dual(value: Any) -> Dual:
    """`value` as a Dual; numbers do not change."""
    return value if isinstance(value, Dual) else Dual(value)


def inputs(values: Sequence[np.ndarray]) -> list[Dual]:
    """Vectors of one length, each element of which is an input of its own."""
    size, found = sum(value.size for value in values), []
    for number, value in enumerate(values):
        slopes = np.zeros((size, value.size), np.longdouble)
        slopes[number * value.size + np.arange(value.size), np.arange(value.size)] = 1
        found.append(Dual(value, slopes))
    return found


class Wide:
    """The functions of `engine.tensor` on duals. `overflows` tells whether a number that was watched is too large for a
    float64: what follows from it there is nothing to compare with."""

    is_wide = True

    def __init__(self) -> None:
        self.overflows = False

    def watch(self, x: Dual) -> None:
        self.overflows |= bool(np.any(np.abs(x.value) > np.finfo("float64").max))

    @staticmethod
    def exp(x: Dual) -> Dual:
        return x.through(np.exp(x.value), np.exp(x.value))

    @staticmethod
    def expm1(x: Dual) -> Dual:
        return x.through(np.expm1(x.value), np.exp(x.value))

    @staticmethod
    def log(x: Dual) -> Dual:
        return x.through(np.log(x.value), 1 / x.value)

    @staticmethod
    def log1p(x: Dual) -> Dual:
        return x.through(np.log1p(x.value), 1 / (1 + x.value))

    @staticmethod
    def sqrt(x: Dual) -> Dual:
        return x.through(np.sqrt(x.value), 0.5 / np.sqrt(x.value))

    @staticmethod
    def sqr(x: Dual) -> Dual:
        return x * x

    @staticmethod
    def tanh(x: Dual) -> Dual:
        return x.through(np.tanh(x.value), 1 / np.cosh(x.value) ** 2)

    @staticmethod
    def sin(x: Dual) -> Dual:
        return x.through(np.sin(x.value), np.cos(x.value))

    @staticmethod
    def sigmoid(x: Dual) -> Dual:
        value = 1 / (1 + np.exp(-x.value))
        return x.through(value, value / (1 + np.exp(x.value)))

    @staticmethod
    def softplus(x: Dual) -> Dual:
        return x.through(np.logaddexp(np.longdouble(0), x.value), 1 / (1 + np.exp(-x.value)))

    @staticmethod
    def sum(x: Dual) -> Dual:
        return Dual(np.sum(x.value), x.slopes.sum(-1) if np.ndim(x.slopes) else x.slopes)

    @staticmethod
    def positive(x: Dual, first: Any, second: Any) -> Dual:
        first, second = dual(first), dual(second)
        taken = x.value > 0
        return Dual(np.where(taken, first.value, second.value), np.where(taken, first.slopes, second.slopes))

    @staticmethod
    def repeated(x: Dual, like: Dual) -> Dual:
        """A number as often as `like` has elements."""
        slopes = x.slopes[:, None] * np.ones(like.value.shape) if np.ndim(x.slopes) else x.slopes
        return Dual(x.value * np.ones(like.value.shape), slopes)
