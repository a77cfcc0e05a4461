"""Comparisons, bitwise operations, and the choice of one argument (where, maximum, minimum).

No gradient flows through comparisons and bitwise operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import bits, choosing, comparing, same, shifting


class Comparison(ScalarOp):
    """Base class of the comparisons of two values: computed in the common dtype, with a bool as result."""

    nin = 2
    rule = staticmethod(comparing)


class LT(Comparison):
    """`a < b`."""

    name = "lt"
    ufunc = np.less


class LE(Comparison):
    """`a <= b`."""

    name = "le"
    ufunc = np.less_equal


class GT(Comparison):
    """`a > b`."""

    name = "gt"
    ufunc = np.greater


class GE(Comparison):
    """`a >= b`."""

    name = "ge"
    ufunc = np.greater_equal


class EQ(Comparison):
    """`a == b`."""

    name = "eq"
    ufunc = np.equal


class NEQ(Comparison):
    """`a != b`."""

    name = "neq"
    ufunc = np.not_equal


class IsNan(ScalarOp):
    """True if `a` is NaN; false for integers and bools."""

    rule = staticmethod(comparing)
    ufunc = np.isnan


class IsInf(ScalarOp):
    """True if `a` is infinite; false for integers and bools."""

    rule = staticmethod(comparing)
    ufunc = np.isinf


lt = LT()
le = LE()
gt = GT()
ge = GE()
eq = EQ()
neq = NEQ()
isnan = IsNan()
isinf = IsInf()


class Bitwise(ScalarOp):
    """Base class of the operations on two bools or integers."""

    nin = 2
    rule = staticmethod(bits)


class And(Bitwise):
    """`a & b`."""

    name = "and_"
    ufunc = np.bitwise_and


class Or(Bitwise):
    """`a | b`."""

    name = "or_"
    ufunc = np.bitwise_or


class Xor(Bitwise):
    """`a ^ b`."""

    name = "xor"
    ufunc = np.bitwise_xor


class Invert(ScalarOp):
    """`~a`: all bits of an integer inverted, `not` for a bool."""

    rule = staticmethod(bits)
    ufunc = np.invert


class LeftShift(ScalarOp):
    """`a << b`: 0 for a `b` that is negative or at least the number of bits."""

    name = "left_shift"
    nin = 2
    rule = staticmethod(shifting)
    ufunc = np.left_shift


class RightShift(ScalarOp):
    """`a >> b`: 0, or -1 for a negative `a`, for a `b` that is negative or at least the number of bits."""

    name = "right_shift"
    nin = 2
    rule = staticmethod(shifting)
    ufunc = np.right_shift


AND, OR, XOR = And, Or, Xor  # PyTensor's names
and_ = And()
or_ = Or()
xor = Xor()
invert = Invert()
left_shift = LeftShift()
right_shift = RightShift()


class Where(ScalarOp):
    """`a` where `condition` is true, `b` elsewhere."""

    nin = 3
    rule = staticmethod(choosing)

    def _impl(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if index == 0:
            return None
        return _choose(index == 1, inputs[0], cotangent, apply)


class Extremum(ScalarOp):
    """Base class of maximum and minimum. Of two equal arguments the first gets the whole gradient."""

    nin = 2
    rule = staticmethod(same)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return _choose(index == 0, apply(eq, output, inputs[0]), cotangent, apply)


class Maximum(Extremum):
    """The larger of `a` and `b`, or NaN if one of them is NaN."""

    name = "maximum"
    ufunc = np.maximum


class Minimum(Extremum):
    """The smaller of `a` and `b`, or NaN if one of them is NaN."""

    name = "minimum"
    ufunc = np.minimum


def _choose(first: bool, condition: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
    """Return `cotangent` where `condition` equals `first`, and 0 elsewhere."""
    return apply(where, condition, cotangent, 0) if first else apply(where, condition, 0, cotangent)


Switch = Where  # PyTensor's name
where = switch = Where()
maximum = Maximum()
minimum = Minimum()
