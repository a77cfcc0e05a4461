"""Arithmetic: sums, products, quotients, remainders, signs and rounding (which has no gradient)."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.comparison import eq, where
from engine.scalar.complex_numbers import conj, real
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import (
    COMPLEX,
    arithmetic,
    dividing,
    in_parts,
    inexact,
    numbers,
    of_reals,
    same,
)


class Add(ScalarOp):
    """`a + b`; `or` for bools."""

    nin = 2
    rule = staticmethod(same)
    ufunc = np.add

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent


class Sub(ScalarOp):
    """`a - b`; raises TypeError for bools."""

    nin = 2
    rule = staticmethod(numbers)
    ufunc = np.subtract

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent if index == 0 else apply(neg, cotangent)


class Mul(ScalarOp):
    """`a * b`; `and` for bools."""

    nin = 2
    rule = staticmethod(same)
    ufunc = np.multiply

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, inputs[1 - index])


class TrueDiv(ScalarOp):
    """`a / b` in floating point."""

    name = "true_div"
    nin = 2
    rule = staticmethod(inexact)
    ufunc = np.true_divide

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        quotient = apply(true_div, cotangent, inputs[1])
        return quotient if index == 0 else apply(neg, apply(mul, quotient, output))


class FloorDiv(ScalarOp):
    """`a / b` rounded down; 0 for an integer division by 0. Its gradient is 0."""

    name = "floor_div"
    nin = 2
    rule = staticmethod(dividing)
    ufunc = np.floor_divide


IntDiv = FloorDiv  # PyTensor's name


class Mod(ScalarOp):
    """`a - b * floor_div(a, b)`, with the sign of `b`; 0 for an integer modulo 0."""

    nin = 2
    rule = staticmethod(dividing)
    ufunc = np.remainder

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if index == 0:
            return cotangent
        return apply(neg, apply(mul, cotangent, apply(floor_div, *inputs)))


class Neg(ScalarOp):
    """`-a`; raises TypeError for bools."""

    rule = staticmethod(numbers)
    ufunc = np.negative

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, cotangent)


class Reciprocal(ScalarOp):
    """`1 / a` in floating point."""

    rule = staticmethod(inexact)
    ufunc = np.reciprocal

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, apply(mul, cotangent, apply(sqr, output)))


class Sqr(ScalarOp):
    """`a * a`."""

    rule = staticmethod(arithmetic)
    ufunc = np.square

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, 2, inputs[0]))


class Abs(ScalarOp):
    """The absolute value; of a complex number, a real one."""

    is_holomorphic = False

    rule = staticmethod(in_parts)
    ufunc = np.absolute

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if inputs[0].type.dtype in COMPLEX:
            return apply(mul, cotangent, _direction(inputs[0], output, apply))
        return apply(mul, cotangent, apply(sign, inputs[0]))


class Sign(ScalarOp):
    """-1, 0, 1 or NaN, with gradient 0; of a complex number `a / abs(a)`. Raises TypeError for bools."""

    is_holomorphic = False
    rule = staticmethod(numbers)
    ufunc = np.sign

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if inputs[0].type.dtype not in COMPLEX:
            return None
        # Along its direction the number changes its magnitude only.
        along = apply(mul, output, apply(real, apply(mul, apply(conj, output), cotangent)))
        magnitude = apply(abs, inputs[0])
        across = apply(true_div, apply(sub, cotangent, along), magnitude)
        return apply(where, apply(eq, magnitude, 0), 0, across)


def _direction(a: Any, magnitude: Any, apply: ApplyScalarOp) -> Any:
    """Return `a` divided by its `magnitude`, and 0 for 0."""
    return apply(where, apply(eq, magnitude, 0), 0, apply(true_div, a, magnitude))


add = Add()
sub = Sub()
mul = Mul()
true_div = TrueDiv()
floor_div = int_div = FloorDiv()
mod = Mod()
neg = Neg()
reciprocal = Reciprocal()
sqr = Sqr()
abs = Abs()
sign = Sign()


class Floor(ScalarOp):
    """`a` rounded down, in its dtype."""

    rule = staticmethod(of_reals)
    ufunc = np.floor


class Ceil(ScalarOp):
    """`a` rounded up, in its dtype."""

    rule = staticmethod(of_reals)
    ufunc = np.ceil


class Trunc(ScalarOp):
    """`a` rounded towards 0, in its dtype."""

    rule = staticmethod(of_reals)
    ufunc = np.trunc


class Round(ScalarOp):
    """`a` rounded to the nearest whole number, ties to even, in its dtype; both parts of a complex one."""

    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.rint(a) if np.asarray(a).dtype.kind in "fc" else a


floor = Floor()
ceil = Ceil()
trunc = Trunc()
round = Round()
