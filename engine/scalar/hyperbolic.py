"""Hyperbolic sine and cosine, and the inverses of these and of the hyperbolic tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import add, mul, sqr, sub, true_div
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.power import sqrt
from engine.scalar.promotion import floating


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
    """The number of at least 0 whose hyperbolic cosine is `a`; NaN below 1."""

    name = "arccosh"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arccosh(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(sub, apply(sqr, inputs[0]), 1)))


class ArcTanh(ScalarOp):
    """The number whose hyperbolic tangent is `a`; NaN outside of -1 to 1."""

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
