"""Comparisons: they compute in the common dtype and give bool. Nothing differentiable flows through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ScalarOp
from engine.scalar.promotion import comparing


class Comparison(ScalarOp):
    """Base class of the comparisons of two values."""

    nin = 2
    rule = staticmethod(comparing)


class LT(Comparison):
    """`a < b`."""

    name = "lt"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.less(a, b)


class LE(Comparison):
    """`a <= b`."""

    name = "le"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.less_equal(a, b)


class GT(Comparison):
    """`a > b`."""

    name = "gt"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.greater(a, b)


class GE(Comparison):
    """`a >= b`."""

    name = "ge"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.greater_equal(a, b)


class EQ(Comparison):
    """`a == b`."""

    name = "eq"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.equal(a, b)


class NEQ(Comparison):
    """`a != b`."""

    name = "neq"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.not_equal(a, b)


class IsNan(ScalarOp):
    """Whether `a` is not a number; never, for integers and bools."""

    name = "isnan"
    rule = staticmethod(comparing)

    def _impl(self, a: Any) -> Any:
        return np.isnan(a)


class IsInf(ScalarOp):
    """Whether `a` is infinite; never, for integers and bools."""

    name = "isinf"
    rule = staticmethod(comparing)

    def _impl(self, a: Any) -> Any:
        return np.isinf(a)


lt = LT()
le = LE()
gt = GT()
ge = GE()
eq = EQ()
neq = NEQ()
isnan = IsNan()
isinf = IsInf()
