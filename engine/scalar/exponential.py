"""Exponentials, logarithms, and the functions made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import add, mul, neg, true_div
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import floating


class Exp(ScalarOp):
    """e to the power of `a`."""

    name = "exp"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.exp(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, output)


class Expm1(ScalarOp):
    """`exp(a) - 1`, exact near 0."""

    name = "expm1"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.expm1(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(exp, inputs[0]))


class Log(ScalarOp):
    """The natural logarithm; NaN below 0."""

    name = "log"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.log(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, inputs[0])


class Log1p(ScalarOp):
    """`log(1 + a)`, exact near 0."""

    name = "log1p"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.log1p(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(add, 1, inputs[0]))


class Sigmoid(ScalarOp):
    """`1 / (1 + exp(-a))`, without overflow."""

    name = "sigmoid"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        decayed = np.exp(-np.absolute(a))
        return np.where(a >= 0, 1 / (1 + decayed), decayed / (1 + decayed)).astype(a.dtype)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, output, apply(sigmoid, apply(neg, inputs[0]))))


class Softplus(ScalarOp):
    """`log(1 + exp(a))`, without overflow."""

    name = "softplus"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.maximum(a, 0) + np.log1p(np.exp(-np.absolute(a)))

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sigmoid, inputs[0]))


exp = Exp()
expm1 = Expm1()
log = Log()
log1p = Log1p()
sigmoid = Sigmoid()
softplus = Softplus()
