"""Numbers of 4,000 bits and any range, with their derivatives: what exact arithmetic nearly gives.

`Wide` has the functions that random expressions are made of, under their public names. 1 + exp(-800) keeps
all its digits in so many bits, so expressions are computed as they are written. tests/engine/balls.py has
them for numbers of another kind, which take a tenth of the time.
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


def _divided(x: Any, y: Any) -> Any:
    return _NAN if y == 0 else x / y


def _real(function: Callable[[Any], Any], least: float) -> Any:
    """Return `function` of arrays, which is NaN below `least`."""
    return np.frompyfunc(lambda x: function(x) if x >= least else _NAN, 1, 1)


def _exponential(x: Any) -> Any:
    # mpmath multiplies e with itself where x is whole, which takes fifty times as long as the sum of a series.
    return _mp.exp(x - _HALF) * _ROOT_OF_E if _mp.isint(x) and x else _mp.exp(x)


_HALF = _mp.mpf(0.5)
_ROOT_OF_E = _mp.exp(_HALF)


class Dual:
    """An array of wide numbers, and its derivatives for every element of the inputs: along the first axis."""

    __array_ufunc__ = None

    def __init__(self, value: Any, slopes: Any, over: Any) -> None:
        self.value = value
        self.slopes = slopes
        self._over = over

    def through(self, value: Any, slope: Any) -> Dual:
        """Return a function of this: its value, and its derivative here."""
        return self.made(value, _times(slope, self.slopes))

    def made(self, value: Any, slopes: Any) -> Dual:
        """Return a dual of numbers of the same kind."""
        return Dual(value, slopes, self._over)

    def dual(self, value: Any) -> Dual:
        """Return `value` as a Dual; numbers do not change."""
        if isinstance(value, Dual):
            return value
        number = type(self.value.flat[0])
        return self.made(np.full(1, number(value), object), np.zeros((1, 1), object))

    def __add__(self, other: Any) -> Dual:
        other = self.dual(other)
        return self.made(self.value + other.value, self.slopes + other.slopes)

    def __mul__(self, other: Any) -> Dual:
        other = self.dual(other)
        slopes = _times(other.value, self.slopes) + _times(self.value, other.slopes)
        return self.made(self.value * other.value, slopes)

    def __neg__(self) -> Dual:
        return self.made(-self.value, -self.slopes)

    def __sub__(self, other: Any) -> Dual:
        return self + -self.dual(other)

    def __rsub__(self, other: Any) -> Dual:
        return self.dual(other) - self

    def __truediv__(self, other: Any) -> Dual:
        other = self.dual(other)
        value = self._over(self.value, other.value)
        return self.made(value, self._over(self.slopes - _times(value, other.slopes), other.value))

    def __rtruediv__(self, other: Any) -> Dual:
        return self.dual(other) / self

    def __pow__(self, power: int) -> Dual:
        return self.through(self.value**power, power * self.value ** (power - 1))

    __radd__, __rmul__ = __add__, __mul__


_times = np.frompyfunc(lambda factor, slope: slope if slope == 0 else factor * slope, 2, 1)
"""Products of derivatives. 0 times anything is 0: nothing that an input does not change is changed by it."""


ROUNDING = float(np.finfo("float64").eps)
SMALLEST = float(np.finfo("float64").smallest_subnormal)

_rounded = np.frompyfunc(lambda x, way: x if x == 0 else x * (1 + ROUNDING * way) + SMALLEST * way, 2, 1)
"""Numbers one bit up or down, of a double's."""


class Wide:
    """The functions of `engine.tensor` on duals.

    With `noise`, what they watch is rounded at random, value and derivatives, as doubles are.
    """

    def __init__(self, noise: np.random.Generator | None = None) -> None:
        self._noise = noise

    number = staticmethod(np.frompyfunc(_mp.mpf, 1, 1))
    _over = staticmethod(np.frompyfunc(_divided, 2, 1))
    _exp = staticmethod(np.frompyfunc(_exponential, 1, 1))
    # mpmath raises the precision of expm1 until exp(x) changes -1, without end where x is far below 0.
    _expm1 = staticmethod(np.frompyfunc(lambda x: _exponential(x) - 1 if abs(x) > 1 else _mp.expm1(x), 1, 1))
    _sin = staticmethod(np.frompyfunc(_mp.sin, 1, 1))
    _cos = staticmethod(np.frompyfunc(_mp.cos, 1, 1))
    _tanh = staticmethod(np.frompyfunc(_mp.tanh, 1, 1))
    _log = staticmethod(_real(_mp.log, 0))
    _log1p = staticmethod(_real(_mp.log1p, -1))
    _sqrt = staticmethod(_real(_mp.sqrt, 0))

    def inputs(self, values: Sequence[np.ndarray]) -> list[Dual]:
        """Vectors of one length, each element of which is an input of its own."""
        size, found = sum(value.size for value in values), []
        for place, value in enumerate(values):
            slopes = np.zeros((size, value.size), object)
            slopes[place * value.size + np.arange(value.size), np.arange(value.size)] = 1
            found.append(Dual(self.number(value), slopes, self._over))
        return found

    def watch(self, x: Dual) -> None:
        """Refuse (OverflowError) an `x` that is no number, or too large for a float64: nothing can be compared
        with what follows from it. With noise, round `x`."""
        self.check(x)
        if self._noise is not None:
            x.value, x.slopes = self._rounded(x.value), self._rounded(x.slopes)

    def check(self, x: Dual) -> None:
        """Refuse what `watch` refuses."""
        if not all(abs(value) <= LARGEST for value in x.value):
            raise OverflowError("No float64 holds a number of this expression")

    def _rounded(self, numbers: Any) -> Any:
        assert self._noise is not None
        return _rounded(numbers, self._noise.choice([-1.0, 1.0], size=numbers.shape).astype(object))

    def exp(self, x: Dual) -> Dual:
        value = self._exp(x.value)
        return x.through(value, value)

    def expm1(self, x: Dual) -> Dual:
        return x.through(self._expm1(x.value), self._exp(x.value))

    def log(self, x: Dual) -> Dual:
        return x.through(self._log(x.value), self._over(1, x.value))

    def log1p(self, x: Dual) -> Dual:
        return x.through(self._log1p(x.value), self._over(1, 1 + x.value))

    def sqrt(self, x: Dual) -> Dual:
        root = self._sqrt(x.value)
        return x.through(root, self._over(1, 2 * root))

    def sqr(self, x: Dual) -> Dual:
        return x * x

    def tanh(self, x: Dual) -> Dual:
        value = self._tanh(x.value)
        return x.through(value, 1 - value * value)

    def sin(self, x: Dual) -> Dual:
        return x.through(self._sin(x.value), self._cos(x.value))

    def sigmoid(self, x: Dual) -> Dual:
        value = 1 / (1 + self._exp(-x.value))
        return x.through(value, value / (1 + self._exp(x.value)))

    def softplus(self, x: Dual) -> Dual:
        return x.through(self._log1p(self._exp(x.value)), 1 / (1 + self._exp(-x.value)))

    def sum(self, x: Dual) -> Dual:
        return x.made(x.value.sum(keepdims=True), x.slopes.sum(-1, keepdims=True))

    def softmax(self, x: Dual) -> Dual:
        return self.exp(x) / self.sum(self.exp(x))

    def positive(self, x: Dual, first: Any, second: Any) -> Dual:
        first, second = x.dual(first), x.dual(second)
        taken = x.value > 0
        return x.made(
            np.where(taken, first.value, second.value), np.where(taken, first.slopes, second.slopes)
        )

    def repeated(self, x: Dual, like: Dual) -> Dual:
        """A number as often as `like` has elements."""
        ones = np.ones(like.value.shape, object)
        return x.made(x.value * ones, x.slopes * ones)


def split_by_input(result: Dual, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the value, and the derivatives of its sum by each of the inputs, as they are."""
    slopes = np.broadcast_to(result.slopes.sum(-1), sum(value.size for value in values))
    return [result.value, *np.split(slopes, np.cumsum([value.size for value in values])[:-1])]


def exact_results(
    expression: Any, values: Sequence[np.ndarray], noise: np.random.Generator | None = None
) -> list[np.ndarray] | None:
    """Return the value of an expression, and the derivatives of its sum, as float64; NaN where there is no
    number. Return None if something within has no number that a float64 holds."""
    library = Wide(noise)
    try:
        found = split_by_input(expression(library, library.inputs(values)), values)
    except OverflowError:
        return None
    return [result.astype("float64") for result in found]
