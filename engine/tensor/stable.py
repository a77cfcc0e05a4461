"""Functions of several operations element by element, written so that they neither overflow nor cancel."""

from __future__ import annotations

import math
from typing import Any

import engine.tensor as pt


def clip(x: Any, min: Any, max: Any) -> Any:
    """`x`, but `min` where it is below and `max` where it is above."""
    return pt.minimum(pt.maximum(x, min), max)


def logit(p: Any) -> Any:
    """The logarithm of the odds `p / (1 - p)`: the inverse of `sigmoid`."""
    return pt.sub(pt.log(p), pt.log1p(pt.neg(p)))


def log1mexp(x: Any) -> Any:
    """`log(1 - exp(x))` of what is not above 0, exact near 0 and far from it.

    The branches are those of Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    return pt.switch(pt.lt(x, -math.log(2)), pt.log1p(pt.neg(pt.exp(x))), pt.log(pt.neg(pt.expm1(x))))


def logaddexp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, without overflow; -inf of two -inf."""
    largest = pt.maximum(x, y)
    shift = pt.switch(pt.isinf(largest), 0.0, largest)
    return pt.add(pt.log(pt.add(pt.exp(pt.sub(x, shift)), pt.exp(pt.sub(y, shift)))), shift)
