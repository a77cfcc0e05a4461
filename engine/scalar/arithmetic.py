"""Arithmetic: sums, products, quotients, remainders, signs and rounding. No gradient flows through rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import arithmetic, floating, numbers, same


class Add(ScalarOp):
    """`a + b`; `or` for bools."""

    name = "add"
    nin = 2
    rule = staticmethod(same)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.add(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent


class Sub(ScalarOp):
    """`a - b`; raises TypeError for bools."""

    name = "sub"
    nin = 2
    rule = staticmethod(numbers)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.subtract(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return cotangent if index == 0 else apply(neg, cotangent)


class Mul(ScalarOp):
    """`a * b`; `and` for bools."""

    name = "mul"
    nin = 2
    rule = staticmethod(same)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.multiply(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, inputs[1 - index])


class TrueDiv(ScalarOp):
    """`a / b` in floating point."""

    name = "true_div"
    nin = 2
    rule = staticmethod(floating)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.true_divide(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        quotient = apply(true_div, cotangent, inputs[1])
        return quotient if index == 0 else apply(neg, apply(mul, quotient, output))


class FloorDiv(ScalarOp):
    """`a / b` rounded down; 0 for an integer division by 0. Its gradient is 0."""

    name = "floor_div"
    nin = 2
    rule = staticmethod(arithmetic)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.floor_divide(a, b)


class Mod(ScalarOp):
    """`a - b * floor_div(a, b)`, with the sign of `b`; 0 for an integer modulo 0."""

    name = "mod"
    nin = 2
    rule = staticmethod(arithmetic)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.remainder(a, b)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        if index == 0:
            return cotangent
        return apply(neg, apply(mul, cotangent, apply(floor_div, *inputs)))


class Neg(ScalarOp):
    """`-a`; raises TypeError for bools."""

    name = "neg"
    rule = staticmethod(numbers)

    def _impl(self, a: Any) -> Any:
        return np.negative(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, cotangent)


class Reciprocal(ScalarOp):
    """`1 / a` in floating point."""

    name = "reciprocal"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return np.reciprocal(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(neg, apply(mul, cotangent, apply(sqr, output)))


class Sqr(ScalarOp):
    """`a * a`."""

    name = "sqr"
    rule = staticmethod(arithmetic)

    def _impl(self, a: Any) -> Any:
        return np.square(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, 2, inputs[0]))


class Abs(ScalarOp):
    """The absolute value."""

    name = "abs"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.absolute(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(sign, inputs[0]))


class Sign(ScalarOp):
    """-1, 0, 1 or NaN; raises TypeError for bools. Its gradient is 0."""

    name = "sign"
    rule = staticmethod(numbers)

    def _impl(self, a: Any) -> Any:
        return np.sign(a)


add = Add()
sub = Sub()
mul = Mul()
true_div = TrueDiv()
floor_div = FloorDiv()
mod = Mod()
neg = Neg()
reciprocal = Reciprocal()
sqr = Sqr()
abs = Abs()
sign = Sign()


class Floor(ScalarOp):
    """`a` rounded down, in its dtype."""

    name = "floor"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.floor(a)


class Ceil(ScalarOp):
    """`a` rounded up, in its dtype."""

    name = "ceil"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.ceil(a)


class Trunc(ScalarOp):
    """`a` rounded towards 0, in its dtype."""

    name = "trunc"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.trunc(a)


class Round(ScalarOp):
    """`a` rounded to the nearest whole number, ties to even, in its dtype."""

    name = "round"
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return np.rint(a) if np.asarray(a).dtype.kind == "f" else a


floor = Floor()
ceil = Ceil()
trunc = Trunc()
round = Round()
