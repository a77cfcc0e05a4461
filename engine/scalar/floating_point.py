"""Operations on the representation of floats, signs and neighbours, and the length of a vector of two."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.arithmetic import mul, neg, true_div
from engine.scalar.comparison import eq, where
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import Signature, floating


def testing_floats(dtypes: tuple[str, ...]) -> Signature:
    """Return `floating` with a bool as result."""
    return floating(dtypes)[0], "bool"


class SignBit(ScalarOp):
    """True if `a` is negative; -0.0 and a NaN with the sign bit set are."""

    rule = staticmethod(testing_floats)
    ufunc = np.signbit


class CopySign(ScalarOp):
    """The magnitude of `a` with the sign of `b`, whose gradient is 0."""

    nin = 2
    rule = staticmethod(floating)
    ufunc = np.copysign

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if index == 1:
            return None
        is_same = apply(eq, *[apply(signbit, x) for x in inputs])
        return apply(where, is_same, cotangent, apply(neg, cotangent))


class NextAfter(ScalarOp):
    """The float next to `a` in the direction of `b`, whose gradient is 0."""

    nin = 2
    rule = staticmethod(floating)
    ufunc = np.nextafter

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent if index == 0 else None


class Hypot(ScalarOp):
    """The length of the vector of `a` and `b`, without overflow. Its gradient at the origin is 0."""

    nin = 2
    rule = staticmethod(floating)
    ufunc = np.hypot

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        direction = apply(where, apply(eq, output, 0), 0, apply(true_div, inputs[index], output))
        return apply(mul, cotangent, direction)


signbit = SignBit()
copysign = CopySign()
nextafter = NextAfter()
hypot = Hypot()
