"""Rounding. No gradient flows through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ScalarOp
from engine.scalar.promotion import same


class Floor(ScalarOp):
    """The largest whole number that is not above `a`, in its dtype."""

    name = "floor"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.floor(a)


class Ceil(ScalarOp):
    """The smallest whole number that is not below `a`, in its dtype."""

    name = "ceil"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.ceil(a)


class Trunc(ScalarOp):
    """`a` without its fraction, in its dtype."""

    name = "trunc"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.trunc(a)


class Round(ScalarOp):
    """The whole number next to `a`, the even one of two, in its dtype."""

    name = "round"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.rint(a) if np.asarray(a).dtype.kind == "f" else a


floor = Floor()
ceil = Ceil()
trunc = Trunc()
round = Round()
