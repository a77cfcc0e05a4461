"""Bitwise operations on integers, logical ones on bools. Nothing differentiable flows through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ScalarOp
from engine.scalar.promotion import bits


class Bitwise(ScalarOp):
    """Base class of the operations on two bools or integers."""

    nin = 2
    rule = staticmethod(bits)


class And(Bitwise):
    """`a & b`."""

    name = "and_"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.bitwise_and(a, b)


class Or(Bitwise):
    """`a | b`."""

    name = "or_"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.bitwise_or(a, b)


class Xor(Bitwise):
    """`a ^ b`."""

    name = "xor"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.bitwise_xor(a, b)


class Invert(ScalarOp):
    """`~a`: all bits of an integer, `not` of a bool."""

    name = "invert"
    rule = staticmethod(bits)

    def _impl(self, a: Any) -> Any:
        return np.invert(a)


and_ = And()
or_ = Or()
xor = Xor()
invert = Invert()
