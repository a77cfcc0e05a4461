"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import add, mul, neg, sqr, sub, true_div
from engine.scalar.exponential import sqrt
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import floating, inexact


class Sin(ScalarOp):
    """The sine of an angle in radians."""

    rule = staticmethod(inexact)
    ufunc = np.sin

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(cos, inputs[0]))


class Cos(ScalarOp):
    """The cosine of an angle in radians."""

    rule = staticmethod(inexact)
    ufunc = np.cos

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, apply(mul, cotangent, apply(sin, inputs[0])))


class Tanh(ScalarOp):
    """The hyperbolic tangent."""

    rule = staticmethod(inexact)
    ufunc = np.tanh

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sub, 1, apply(sqr, output)))


sin = Sin()
cos = Cos()
tanh = Tanh()


class Tan(ScalarOp):
    """The tangent of an angle in radians."""

    rule = staticmethod(inexact)
    ufunc = np.tan

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(add, 1, apply(sqr, output)))


class ArcSin(ScalarOp):
    """The angle in radians whose sine is `a`; NaN outside -1 to 1."""

    rule = staticmethod(inexact)
    ufunc = np.arcsin

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(sub, 1, apply(sqr, inputs[0]))))


class ArcCos(ScalarOp):
    """The angle in radians whose cosine is `a`; NaN outside -1 to 1."""

    rule = staticmethod(inexact)
    ufunc = np.arccos

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, apply(true_div, cotangent, apply(sqrt, apply(sub, 1, apply(sqr, inputs[0])))))


class ArcTan(ScalarOp):
    """The angle in radians whose tangent is `a`."""

    rule = staticmethod(inexact)
    ufunc = np.arctan

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(add, 1, apply(sqr, inputs[0])))


class ArcTan2(ScalarOp):
    """The angle in radians of the point with y-coordinate `a` and x-coordinate `b`."""

    nin = 2
    rule = staticmethod(floating)
    ufunc = np.arctan2

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

    rule = staticmethod(inexact)
    ufunc = np.sinh

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(cosh, inputs[0]))


class Cosh(ScalarOp):
    """The hyperbolic cosine."""

    rule = staticmethod(inexact)
    ufunc = np.cosh

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sinh, inputs[0]))


class ArcSinh(ScalarOp):
    """The number whose hyperbolic sine is `a`."""

    rule = staticmethod(inexact)
    ufunc = np.arcsinh

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(add, 1, apply(sqr, inputs[0]))))


class ArcCosh(ScalarOp):
    """The nonnegative number whose hyperbolic cosine is `a`; NaN below 1."""

    rule = staticmethod(inexact)
    ufunc = np.arccosh

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(sub, apply(sqr, inputs[0]), 1)))


class ArcTanh(ScalarOp):
    """The number whose hyperbolic tangent is `a`; NaN outside -1 to 1."""

    rule = staticmethod(inexact)
    ufunc = np.arctanh

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sub, 1, apply(sqr, inputs[0])))


sinh = Sinh()
cosh = Cosh()
arcsinh = ArcSinh()
arccosh = ArcCosh()
arctanh = ArcTanh()
