"""Sine, cosine and the hyperbolic tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import mul, neg, sqr, sub
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
