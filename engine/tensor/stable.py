"""Functions of several operations element by element, written so that they neither overflow nor cancel."""

from __future__ import annotations

import math
from typing import Any

import engine.tensor as pt

_LOG_HALF = -math.log(2)

TAIL_OF_ERFC = {"float64": 25.0, "float32": 9.0}
"""Where the complement of the error function is still a normal number, and its asymptotic series is as good."""


def clip(x: Any, min: Any, max: Any) -> Any:
    """`x`, but `min` where it is below and `max` where it is above."""
    return pt.minimum(pt.maximum(x, min), max)


def logit(p: Any) -> Any:
    """The logarithm of the odds `p / (1 - p)`: the inverse of `sigmoid`."""
    return pt.sub(pt.log(p), pt.log1p(pt.neg(p)))


def log1mexp(x: Any) -> Any:
    """`log(1 - exp(x))` of what is not above 0, exact near 0 and far from it.

    The branches are those of Maechler, "Accurately computing log(1 - exp(-|a|))", 2012; each is computed of numbers that
    are its own.
    """
    far, near = pt.minimum(x, _LOG_HALF), pt.maximum(x, _LOG_HALF)
    return pt.switch(pt.lt(x, _LOG_HALF), pt.log1p(pt.neg(pt.exp(far))), pt.log(pt.sub(0, pt.expm1(near))))


def log_erfc(x: Any) -> Any:
    """`log(erfc(x))`, also where the complement of the error function is too small for a float.

    There it is the asymptotic series, Abramowitz and Stegun 7.1.23.
    """
    tail = TAIL_OF_ERFC[x.type.dtype]
    z = pt.maximum(x, tail)
    t = pt.reciprocal(pt.sqr(z))
    series = pt.mul(
        t, pt.add(-1 / 2, pt.mul(t, pt.add(3 / 4, pt.mul(t, pt.add(-15 / 8, pt.mul(t, 105 / 16))))))
    )
    logs = pt.add(pt.log(z), 0.5 * math.log(math.pi))
    far = pt.sub(pt.sub(pt.log1p(series), logs), pt.sqr(z))
    return pt.switch(pt.lt(x, tail), pt.log(pt.erfc(pt.minimum(x, tail))), far)


def logaddexp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, without overflow; -inf of two -inf."""
    largest = pt.maximum(x, y)
    shift = pt.switch(pt.isinf(largest), 0.0, largest)
    return pt.add(pt.log(pt.add(pt.exp(pt.sub(x, shift)), pt.exp(pt.sub(y, shift)))), shift)
