"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.graph.variables import Constant
from engine.scalar.arithmetic import add, mul, neg, sub, true_div
from engine.scalar.comparison import eq, where
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import arithmetic, floating, inexact


class Exp(ScalarOp):
    """e to the power of `a`."""

    rule = staticmethod(inexact)
    ufunc = np.exp

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, output)


class Expm1(ScalarOp):
    """`exp(a) - 1`, exact near 0."""

    rule = staticmethod(inexact)
    ufunc = np.expm1

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(exp, inputs[0]))


class Log(ScalarOp):
    """The natural logarithm; NaN below 0."""

    rule = staticmethod(inexact)
    ufunc = np.log

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, inputs[0])


class Log1p(ScalarOp):
    """`log(1 + a)`, exact near 0."""

    rule = staticmethod(inexact)
    ufunc = np.log1p

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(add, 1, inputs[0]))


class Sigmoid(ScalarOp):
    """`1 / (1 + exp(-a))`, without overflow."""

    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        decayed = np.exp(-np.absolute(a))
        return np.where(a >= 0, 1 / (1 + decayed), decayed / (1 + decayed)).astype(a.dtype)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, output, apply(sigmoid, apply(neg, inputs[0]))))


class Softplus(ScalarOp):
    """`log(1 + exp(a))`, without overflow."""

    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.maximum(a, 0) + np.log1p(np.exp(-np.absolute(a)))

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sigmoid, inputs[0]))


class Log1mexp(ScalarOp):
    """`log(1 - exp(a))` for a <= 0, exact near 0 and far from it; NaN above 0.

    The branches are those of Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """

    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.where(a < -math.log(2), np.log1p(-np.exp(a)), np.log(-np.expm1(a))).astype(a.dtype)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        slope = apply(true_div, apply(exp, inputs[0]), apply(sub, 0, apply(expm1, inputs[0])))
        return apply(neg, apply(mul, cotangent, slope))


exp = Exp()
expm1 = Expm1()
log = Log()
log1mexp = Log1mexp()
log1p = Log1p()
sigmoid = Sigmoid()
softplus = Softplus()


class Exp2(ScalarOp):
    """2 to the power of `a`."""

    rule = staticmethod(inexact)
    ufunc = np.exp2

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, output, math.log(2)))


class Log2(ScalarOp):
    """The base-2 logarithm; NaN below 0."""

    rule = staticmethod(inexact)
    ufunc = np.log2

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(mul, inputs[0], math.log(2)))


class Log10(ScalarOp):
    """The base-10 logarithm; NaN below 0."""

    rule = staticmethod(inexact)
    ufunc = np.log10

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(mul, inputs[0], math.log(10)))


exp2 = Exp2()
log2 = Log2()
log10 = Log10()


class Pow(ScalarOp):
    """`a ** b`. As in numpy, an integer to a negative integer power raises ValueError when it is computed."""

    nin = 2
    rule = staticmethod(arithmetic)
    ufunc = np.power

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        """Return for `a` b * a ** (b - 1), 0 where b is 0; for `b` log(a) * a ** b, 0 where a is 0."""
        a, b = inputs
        if index == 1:
            return apply(where, apply(eq, a, 0), 0, apply(mul, cotangent, apply(mul, output, apply(log, a))))
        slope = apply(mul, b, apply(pow, a, apply(sub, b, 1)))
        if not (isinstance(b, Constant) and np.all(b.data)):
            slope = apply(where, apply(eq, b, 0), 0, slope)
        return apply(mul, cotangent, slope)


class Sqrt(ScalarOp):
    """The square root; NaN below 0."""

    rule = staticmethod(inexact)
    ufunc = np.sqrt

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, apply(mul, 0.5, cotangent), output)


pow = Pow()
sqrt = Sqrt()
