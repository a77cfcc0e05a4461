"""Powers and roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.variables import Constant
from engine.scalar.arithmetic import mul, sub, true_div
from engine.scalar.comparison import eq
from engine.scalar.exponential import log
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import arithmetic, floating
from engine.scalar.selection import where


class Pow(ScalarOp):
    """`a ** b`. An integer to a negative integer power is refused (ValueError) when it is computed, as by numpy."""

    name = "pow"
    nin = 2
    rule = staticmethod(arithmetic)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.power(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        """For `a`: `b * a ** (b - 1)`, and 0 where `b` is 0; for `b`: `log(a) * a ** b`, and 0 where `a` is 0."""
        a, b = inputs
        if index == 1:
            return apply(where, apply(eq, a, 0), 0, apply(mul, cotangent, apply(mul, output, apply(log, a))))
        slope = apply(mul, b, apply(pow, a, apply(sub, b, 1)))
        if not (isinstance(b, Constant) and np.all(b.data)):
            slope = apply(where, apply(eq, b, 0), 0, slope)
        return apply(mul, cotangent, slope)


class Sqrt(ScalarOp):
    """The square root; NaN below 0."""

    name = "sqrt"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.sqrt(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, apply(mul, 0.5, cotangent), output)


pow = Pow()
sqrt = Sqrt()
