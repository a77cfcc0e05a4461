"""The tangent, and angles from what they have for a sine, a cosine or a tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import add, mul, neg, sqr, sub, true_div
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.power import sqrt
from engine.scalar.promotion import floating


class Tan(ScalarOp):
    """The tangent of an angle in radians."""

    name = "tan"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.tan(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(add, 1, apply(sqr, output)))


class ArcSin(ScalarOp):
    """The angle in radians whose sine is `a`; NaN outside of -1 to 1."""

    name = "arcsin"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.arcsin(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(true_div, cotangent, apply(sqrt, apply(sub, 1, apply(sqr, inputs[0]))))


class ArcCos(ScalarOp):
    """The angle in radians whose cosine is `a`; NaN outside of -1 to 1."""

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
    """The angle in radians of the point with the ordinate `a` and the abscissa `b`."""

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
