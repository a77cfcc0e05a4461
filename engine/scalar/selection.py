"""Operations that choose one of their arguments: where, maximum, minimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.comparison import eq
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import choosing, same


class Where(ScalarOp):
    """`a` where `condition` holds, `b` elsewhere."""

    name = "where"
    nin = 3
    rule = staticmethod(choosing)

    def _impl(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if index == 0:
            return None
        return _choose(index == 1, inputs[0], cotangent, apply)


class Extremum(ScalarOp):
    """Base class of maximum and minimum. The first argument gets all of the gradient where both are equal."""

    nin = 2
    rule = staticmethod(same)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return _choose(index == 0, apply(eq, output, inputs[0]), cotangent, apply)


class Maximum(Extremum):
    """The larger of `a` and `b`; NaN if one of them is."""

    name = "maximum"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.maximum(a, b)


class Minimum(Extremum):
    """The smaller of `a` and `b`; NaN if one of them is."""

    name = "minimum"

    def _impl(self, a: Any, b: Any) -> Any:
        return np.minimum(a, b)


def _choose(first: bool, condition: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
    """`cotangent` where `condition` holds (or, not `first`, where it does not), 0 elsewhere."""
    return apply(where, condition, cotangent, 0) if first else apply(where, condition, 0, cotangent)


where = Where()
maximum = Maximum()
minimum = Minimum()
