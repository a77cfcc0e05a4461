"""Numbers of 4,000 bits and any range, with their derivatives: what exact arithmetic nearly gives.

`Wide` has the functions that random expressions are made of, under their public names. 1 + exp(-800) keeps
all its digits in so many bits, so expressions are computed as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

BITS = 4000
LARGEST = float(np.finfo("float64").max)

_mp = mpmath.MPContext()
_mp.prec = BITS
_NAN = _mp.mpf("nan")

number = np.frompyfunc(_mp.mpf, 1, 1)
"""The wide numbers of an array of float64."""


def _divided(x: Any, y: Any) -> Any:
    return x / y if y else _NAN


def _real(function: Callable[[Any], Any], least: float) -> Any:
    """Return `function` of arrays, which is NaN below `least`."""
    return np.frompyfunc(lambda x: function(x) if x >= least else _NAN, 1, 1)


def _exponential(x: Any) -> Any:
    # mpmath multiplies e with itself where x is whole, which takes fifty times as long as the sum of a series.
    return _mp.exp(x - _HALF) * _ROOT_OF_E if _mp.isint(x) and x else _mp.exp(x)


_HALF = _mp.mpf(0.5)
_ROOT_OF_E = _mp.exp(_HALF)
_exp = np.frompyfunc(_exponential, 1, 1)
# mpmath raises the precision of expm1 until exp(x) changes -1, without end where x is far below 0.
_expm1 = np.frompyfunc(lambda x: _exponential(x) - 1 if abs(x) > 1 else _mp.expm1(x), 1, 1)
_sin = np.frompyfunc(_mp.sin, 1, 1)
_cos = np.frompyfunc(_mp.cos, 1, 1)
_tanh = np.frompyfunc(_mp.tanh, 1, 1)
_log, _log1p, _sqrt = _real(_mp.log, 0), _real(_mp.log1p, -1), _real(_mp.sqrt, 0)
_over = np.frompyfunc(_divided, 2, 1)


class Dual:
    """An array of wide numbers, and its derivatives for every element of the inputs: along the first axis."""

    __array_ufunc__ = None

    def __init__(self, value: Any, slopes: Any = None) -> None:
        self.value = value
        self.slopes = np.zeros((1, 1), object) if slopes is None else slopes

    def through(self, value: Any, slope: Any) -> Dual:
        """Return a function of this: its value, and its derivative here."""
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
        value = _over(self.value, other.value)
        return Dual(value, _over(self.slopes - _times(value, other.slopes), other.value))

    def __rtruediv__(self, other: Any) -> Dual:
        return dual(other) / self

    def __pow__(self, power: int) -> Dual:
        return self.through(self.value**power, power * self.value ** (power - 1))

    __radd__, __rmul__ = __add__, __mul__


_times = np.frompyfunc(lambda factor, slope: factor * slope if slope else slope, 2, 1)
"""Products of derivatives. 0 times anything is 0: nothing that an input does not change is changed by it."""


def dual(value: Any) -> Dual:
    """`value` as a Dual; numbers do not change."""
    return value if isinstance(value, Dual) else Dual(np.full(1, _mp.mpf(value), object))


def inputs(values: Sequence[np.ndarray]) -> list[Dual]:
    """Vectors of one length, each element of which is an input of its own."""
    size, found = sum(value.size for value in values), []
    for place, value in enumerate(values):
        slopes = np.zeros((size, value.size), object)
        slopes[place * value.size + np.arange(value.size), np.arange(value.size)] = 1
        found.append(Dual(number(value), slopes))
    return found


class Wide:
    """The functions of `engine.tensor` on duals."""

    @staticmethod
    def watch(x: Dual) -> None:
        """Refuse (OverflowError) an `x` that is no number, or too large for a float64: nothing can be compared
        with what follows from it."""
        if not all(abs(value) <= LARGEST for value in x.value):
            raise OverflowError("No float64 holds a number of this expression")

    @staticmethod
    def exp(x: Dual) -> Dual:
        value = _exp(x.value)
        return x.through(value, value)

    @staticmethod
    def expm1(x: Dual) -> Dual:
        return x.through(_expm1(x.value), _exp(x.value))

    @staticmethod
    def log(x: Dual) -> Dual:
        return x.through(_log(x.value), _over(1, x.value))

    @staticmethod
    def log1p(x: Dual) -> Dual:
        return x.through(_log1p(x.value), _over(1, 1 + x.value))

    @staticmethod
    def sqrt(x: Dual) -> Dual:
        root = _sqrt(x.value)
        return x.through(root, _over(1, 2 * root))

    @staticmethod
    def sqr(x: Dual) -> Dual:
        return x * x

    @staticmethod
    def tanh(x: Dual) -> Dual:
        value = _tanh(x.value)
        return x.through(value, 1 - value * value)

    @staticmethod
    def sin(x: Dual) -> Dual:
        return x.through(_sin(x.value), _cos(x.value))

    @staticmethod
    def sigmoid(x: Dual) -> Dual:
        value = 1 / (1 + _exp(-x.value))
        return x.through(value, value / (1 + _exp(x.value)))

    @staticmethod
    def softplus(x: Dual) -> Dual:
        return x.through(_log1p(_exp(x.value)), 1 / (1 + _exp(-x.value)))

    @staticmethod
    def sum(x: Dual) -> Dual:
        return Dual(x.value.sum(keepdims=True), x.slopes.sum(-1, keepdims=True))

    @classmethod
    def softmax(cls, x: Dual) -> Dual:
        return cls.exp(x) / cls.sum(cls.exp(x))

    @staticmethod
    def positive(x: Dual, first: Any, second: Any) -> Dual:
        first, second = dual(first), dual(second)
        taken = x.value > 0
        return Dual(np.where(taken, first.value, second.value), np.where(taken, first.slopes, second.slopes))

    @staticmethod
    def repeated(x: Dual, like: Dual) -> Dual:
        """A number as often as `like` has elements."""
        ones = np.ones(like.value.shape, object)
        return Dual(x.value * ones, x.slopes * ones)
