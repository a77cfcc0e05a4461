"""Exponentials and logarithms to the bases 2 and 10."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.scalar.arithmetic import mul, true_div
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import floating


class Exp2(ScalarOp):
    """2 to the power of `a`."""

    name = "exp2"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.exp2(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, output, math.log(2)))


class Log2(ScalarOp):
    """The logarithm to the base 2; NaN below 0."""

    name = "log2"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.log2(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(mul, inputs[0], math.log(2)))


class Log10(ScalarOp):
    """The logarithm to the base 10; NaN below 0."""

    name = "log10"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.log10(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(mul, inputs[0], math.log(10)))


exp2 = Exp2()
log2 = Log2()
log10 = Log10()
