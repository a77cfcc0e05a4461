"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import add, mul, neg, sqr, sub, true_div
from engine.scalar.exponential import sqrt
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import floating


class Sin(ScalarOp):
    """The sine of an angle in radians."""

    name = "sin"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.sin(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(cos, inputs[0]))


class Cos(ScalarOp):
    """The cosine of an angle in radians."""

    name = "cos"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.cos(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, apply(mul, cotangent, apply(sin, inputs[0])))


class Tanh(ScalarOp):
    """The hyperbolic tangent."""

    name = "tanh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.tanh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sub, 1, apply(sqr, output)))


sin = Sin()
cos = Cos()
tanh = Tanh()


class Tan(ScalarOp):
    """The tangent of an angle in radians."""

    name = "tan"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.tan(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(add, 1, apply(sqr, output)))


class ArcSin(ScalarOp):
    """The angle in radians whose sine is `a`; NaN outside -1 to 1."""

    name = "arcsin"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arcsin(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(sub, 1, apply(sqr, inputs[0]))))


class ArcCos(ScalarOp):
    """The angle in radians whose cosine is `a`; NaN outside -1 to 1."""

    name = "arccos"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arccos(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, apply(true_div, cotangent, apply(sqrt, apply(sub, 1, apply(sqr, inputs[0])))))


class ArcTan(ScalarOp):
    """The angle in radians whose tangent is `a`."""

    name = "arctan"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arctan(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(add, 1, apply(sqr, inputs[0])))


class ArcTan2(ScalarOp):
    """The angle in radians of the point with y-coordinate `a` and x-coordinate `b`."""

    name = "arctan2"
    nin = 2
    rule = staticmethod(floating)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.arctan2(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        squared = apply(add, apply(sqr, inputs[0]), apply(sqr, inputs[1]))
        slope = apply(true_div, inputs[1 - index], squared)
        return apply(mul, cotangent, slope if index == 0 else apply(neg, slope))


tan = Tan()
arcsin = ArcSin()
arccos = ArcCos()
arctan = ArcTan()
arctan2 = ArcTan2()


class Sinh(ScalarOp):
    """The hyperbolic sine."""

    name = "sinh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.sinh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(cosh, inputs[0]))


class Cosh(ScalarOp):
    """The hyperbolic cosine."""

    name = "cosh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.cosh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sinh, inputs[0]))


class ArcSinh(ScalarOp):
    """The number whose hyperbolic sine is `a`."""

    name = "arcsinh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arcsinh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(add, 1, apply(sqr, inputs[0]))))


class ArcCosh(ScalarOp):
    """The nonnegative number whose hyperbolic cosine is `a`; NaN below 1."""

    name = "arccosh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arccosh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(sub, apply(sqr, inputs[0]), 1)))


class ArcTanh(ScalarOp):
    """The number whose hyperbolic tangent is `a`; NaN outside -1 to 1."""

    name = "arctanh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arctanh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sub, 1, apply(sqr, inputs[0])))


sinh = Sinh()
cosh = Cosh()
arcsinh = ArcSinh()
arccosh = ArcCosh()
arctanh = ArcTanh()
