"""Balls: numbers with a bound of their error, which tell when they have digits enough (python-flint).

Most expressions have twelve digits with 128 bits, nearly all others with 1,300, which hold 1 + exp(-745).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flint
import numpy as np

from tests.engine.wide_numbers import BITS, LARGEST, Dual, Wide, split_by_input

PRECISIONS = (128, 1300, BITS)
TWELVE_DIGITS = 40
"""The bits of a result that are certain."""
NOTHING = flint.arb(2) ** -1300
"""A float64 has no number between this and 0."""


class Imprecise(ArithmeticError):
    """Refuses a ball that does not tell whether a float64 holds its number."""


class Balls(Wide):
    """The functions of `engine.tensor` on duals of balls."""

    number = staticmethod(np.frompyfunc(flint.arb, 1, 1))
    _over = staticmethod(np.frompyfunc(lambda x, y: x / y, 2, 1))
    _exp = staticmethod(np.frompyfunc(flint.arb.exp, 1, 1))
    _expm1 = staticmethod(np.frompyfunc(flint.arb.expm1, 1, 1))
    _sin = staticmethod(np.frompyfunc(flint.arb.sin, 1, 1))
    _cos = staticmethod(np.frompyfunc(flint.arb.cos, 1, 1))
    _tanh = staticmethod(np.frompyfunc(flint.arb.tanh, 1, 1))
    _log = staticmethod(np.frompyfunc(flint.arb.log, 1, 1))
    _log1p = staticmethod(np.frompyfunc(flint.arb.log1p, 1, 1))
    _sqrt = staticmethod(np.frompyfunc(flint.arb.sqrt, 1, 1))

    def check(self, x: Dual) -> None:
        """Refuse (OverflowError) an `x` that is too large for a float64, and (Imprecise) one that may be."""
        for value in x.value:
            if not abs(value) <= LARGEST:
                if abs(value) > LARGEST:
                    raise OverflowError("No float64 holds a number of this expression")
                raise Imprecise("More bits are needed to tell whether a float64 holds this number")


def exact_results(
    expression: Any, values: Sequence[np.ndarray], noise: np.random.Generator | None = None
) -> list[np.ndarray] | None:
    """Return the value of an expression, and the derivatives of its sum, as float64; NaN where there is no
    number. Return None if something within has no number that a float64 holds."""
    found = None
    for count in PRECISIONS:
        try:
            found = _computed(expression, values, Balls(noise), count)
        except OverflowError:
            return None
        except Imprecise:
            continue
        if not any(np.isnan(result).any() for result in found):
            break
    return found


def _computed(expression: Any, values: Sequence[np.ndarray], library: Balls, count: int) -> list[np.ndarray]:
    before = flint.ctx.prec
    flint.ctx.prec = count
    try:
        found = split_by_input(expression(library, library.inputs(values)), values)
        return [_as_floats(result) for result in found]
    finally:
        flint.ctx.prec = before


def _as_float(number: Any) -> float:
    """Return the float of a number, or of a ball of twelve digits or so near to 0 that it is 0; otherwise NaN."""
    if (
        isinstance(number, int | float)
        or number.rel_accuracy_bits() >= TWELVE_DIGITS
        or abs(number) < NOTHING
    ):
        return float(number)
    return np.nan


_as_floats = np.vectorize(_as_float, otypes=["float64"])
