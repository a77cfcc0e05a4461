"""exp and what is made of it: exp2, expm1, sigmoid, tanh, sinh, cosh.

x = k ln(2) + r with an integer k and |r| <= ln(2) / 2 (Cody and Waite, "Software Manual for the Elementary
Functions", 1980), and exp(x) = 2**k exp(r), where a polynomial gives exp(r) - 1.
"""

from __future__ import annotations

from engine.codegen.llvm.elementary.arithmetic import (
    absolute,
    at_least,
    at_most,
    format_of,
    from_bits,
    limited,
    polynomial,
    power_of_two,
    rounded_product,
    to_bits,
    with_sign,
)
from engine.codegen.llvm.elementary.coefficients import EXP, EXP2, LN2, LOG2_E
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

EXP_LIMITS = {DOUBLE: (-746.0, 710.0), FLOAT: (-104.0, 89.0)}
EXP2_LIMITS = {DOUBLE: (-1076.0, 1025.0), FLOAT: (-151.0, 129.0)}
_EXPM1_LOW = {DOUBLE: -38.0, FLOAT: -18.0}
_HYPERBOLIC_HIGH = {DOUBLE: 710.6, FLOAT: 89.6}
TINY = {DOUBLE: 2.0**-54, FLOAT: 2.0**-25}  # x is the rounded value of expm1(x) and sinh(x)
_TANH_HIGH = {DOUBLE: 40.0, FLOAT: 20.0}


def emit_exp(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit exp(x), within 1.5 ulp."""
    return exp_of_sum(b, limited(b, x, *EXP_LIMITS[x.type]))


def exp_of_sum(b: FunctionText, x: LlvmValue, y: LlvmValue | None = None) -> LlvmValue:
    """Return exp(x + y), for `y` tiny beside 1 and `x` between the limits of overflow and underflow."""
    form = format_of(x)
    rounded, k = rounded_product(b, x, LOG2_E, 2 * form.bias)
    r = _rest(b, x, k)
    if y is not None:
        r = b.op("fadd", r, y)
    return _scaled(b, b.op("fadd", x.type(1.0), _expm1_of_reduced(b, r)), rounded)


def emit_exp2(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit 2**x, within 1.5 ulp; exact for integers."""
    return exp2_of_sum(b, limited(b, x, *EXP2_LIMITS[x.type]))


def exp2_of_sum(b: FunctionText, x: LlvmValue, y: LlvmValue | None = None) -> LlvmValue:
    """Return 2**(x + y), for `y` tiny beside 1 and `x` between the limits of overflow and underflow."""
    return _scaled(b, *_exp2_of_reduced(b, x, y))


def normal_exp2_of_sum(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Return what `exp2_of_sum` does, if that is a normal number."""
    found, rounded = _exp2_of_reduced(b, x, y)
    form = format_of(x)
    exponent = b.op("sub", to_bits(b, rounded), form.word(form.bias))
    return b.op("fmul", found, from_bits(b, b.op("shl", exponent, form.word(form.digits)), x.type))


def _exp2_of_reduced(b: FunctionText, x: LlvmValue, y: LlvmValue | None) -> tuple[LlvmValue, LlvmValue]:
    """Return 2**(x + y - k), and a number whose last digits are k and twice the bias: `x` rounded to k."""
    of = x.type
    rounded, k = rounded_product(b, x, 1.0, 2 * format_of(x).bias)
    r = b.op("fsub", x, k)
    if y is not None:
        r = b.op("fadd", r, y)
    return b.muladd(r, polynomial(b, r, EXP2[of.scalar]), of(1.0)), rounded


def emit_expm1(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit exp(x) - 1, within 2.5 ulp.

    2**(k - 1) is used, which does not overflow, and the last step doubles.
    """
    of = x.type
    half, _, r = _reduced(b, limited(b, x, _EXPM1_LOW[of], EXP_LIMITS[of][1]), -1)
    part = b.muladd(half, _expm1_of_reduced(b, r), b.op("fsub", half, of(0.5)))
    is_tiny = b.compare("fcmp olt", absolute(b, x), of(TINY[of]))
    return b.select(is_tiny, x, b.op("fadd", part, part))


def emit_sigmoid(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit 1 / (1 + exp(-x)), within 3 ulp, without overflow."""
    one = x.type(1.0)
    small = emit_small_exp(b, x)
    numerator = b.select(b.compare("fcmp olt", x, x.type(0.0)), small, one)
    return b.op("fdiv", numerator, b.op("fadd", one, small))


def emit_small_exp(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit exp(-|x|), which does not overflow, and keeps small numbers."""
    return emit_exp(b, b.op("fneg", absolute(b, x)))


def emit_tanh(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit tanh(x) = e / (e + 2) with e = expm1(2 |x|) and the sign of x, within 3 ulp."""
    size, two = absolute(b, x), x.type(2.0)
    power, _, r = _reduced(b, at_most(b, b.op("fadd", size, size), _TANH_HIGH[x.type]))
    e = b.muladd(power, _expm1_of_reduced(b, r), b.op("fsub", power, x.type(1.0)))
    return with_sign(b, b.op("fdiv", e, b.op("fadd", e, two)), x)


def emit_sinh(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit (exp(x) - exp(-x)) / 2, within 3 ulp."""
    is_tiny = b.compare("fcmp olt", absolute(b, x), x.type(TINY[x.type]))
    return b.select(is_tiny, x, with_sign(b, _hyperbolic(b, absolute(b, x), "fsub"), x))


def emit_cosh(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit (exp(x) + exp(-x)) / 2, within 2.5 ulp."""
    return _hyperbolic(b, absolute(b, x), "fadd")


def _hyperbolic(b: FunctionText, size: LlvmValue, sign: str) -> LlvmValue:
    """Return half of exp(size), with half of exp(-size) added or subtracted.

    Quarters are computed, which do not overflow, and the last step doubles.
    """
    of = size.type
    high, k, r = _reduced(b, at_most(b, size, _HYPERBOLIC_HIGH[of]), -2)
    least = float(1 - format_of(size).bias)  # the second number is negligible long before
    low = power_of_two(b, at_least(b, b.op("fneg", k), least + 2.0), -2)
    part = b.muladd(high, _expm1_of_reduced(b, r), b.op(sign, high, low))
    other = b.op("fmul", low, _expm1_of_reduced(b, b.op("fneg", r)))
    quarter = b.op(sign, part, other)
    return b.op("fadd", quarter, quarter)


def _reduced(b: FunctionText, x: LlvmValue, offset: int = 0) -> tuple[LlvmValue, LlvmValue, LlvmValue]:
    """Return 2**(k + offset), k and r, with x = k ln(2) + r."""
    form = format_of(x)
    rounded, k = rounded_product(b, x, LOG2_E, form.bias + offset)
    power = b.op("shl", to_bits(b, rounded), form.word(form.digits))
    return from_bits(b, power, x.type), k, _rest(b, x, k)


def _rest(b: FunctionText, x: LlvmValue, k: LlvmValue) -> LlvmValue:
    """Return x - k ln(2)."""
    minus_k = b.op("fneg", k)
    for part in LN2[x.type]:
        x = b.muladd(minus_k, x.type(part), x)
    return x


def _expm1_of_reduced(b: FunctionText, r: LlvmValue) -> LlvmValue:
    """Return exp(r) - 1 for |r| <= ln(2) / 2."""
    return b.muladd(b.op("fmul", r, r), polynomial(b, r, EXP[r.type]), r)


def _scaled(b: FunctionText, x: LlvmValue, rounded: LlvmValue) -> LlvmValue:
    """Return x 2**k, for a number whose last digits are k and twice the bias.

    Half of k makes one factor, the rest of it another: both are normal numbers, so a subnormal result is
    rounded once.
    """
    form = format_of(x)
    whole, digits = to_bits(b, rounded), form.word(form.digits)
    half = b.op("lshr", whole, form.word(1))
    for part in (half, b.op("sub", whole, half)):
        x = b.op("fmul", x, from_bits(b, b.op("shl", part, digits), x.type))
    return x
