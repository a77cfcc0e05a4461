"""sin, cos and tan, by the remainder of pi / 2; and arctan.

x = k pi/2 + r with an integer k and |r| <= pi / 4 (Cody and Waite, "Software Manual for the Elementary
Functions", 1980). The parts of pi / 2 are multiplied by k without error and what the subtractions lose is
kept, so numbers near a multiple of pi / 2 have exact remainders too. That holds for |k| < 2**20; for greater
numbers libm is called. Floats are computed as doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from engine.codegen.llvm.elementary.arithmetic import (
    absolute,
    fast_two_sum,
    is_odd,
    nearest_integer,
    polynomial,
    two_sum,
    with_sign,
)
from engine.codegen.llvm.elementary.coefficients import ARCTAN, COS, HALF_PI, SIN
from engine.codegen.llvm.elementary.large_numbers import call_for_large
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmType, LlvmValue

_LARGE = 1.6e6
_QUARTER_PI = {
    DOUBLE: (math.pi / 4, float.fromhex("0x1.1a62633145c07p-55")),
    FLOAT: (float.fromhex("0x1.921fb6p-1"), float.fromhex("-0x1.777a5cp-26")),
}


def emit_sin(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the sine, within 1.5 ulp."""
    return _or_libm(b, x, "sin", lambda number: _sine(b, number, x.type, 0))


def emit_cos(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the cosine, within 1.5 ulp."""
    return _or_libm(b, x, "cos", lambda number: _sine(b, number, x.type, 1))


def emit_tan(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the tangent, within 3 ulp."""
    return _or_libm(b, x, "tan", lambda number: _tangent(b, number, x.type))


def _or_libm(b: FunctionText, x: LlvmValue, name: str, emit: Callable[[LlvmValue], LlvmValue]) -> LlvmValue:
    """Return what `emit` gives for `x` as a double, or for large numbers the function of libm."""
    of = x.type
    number = x if of is DOUBLE else b.convert("fpext", x, DOUBLE)
    found = emit(number)
    if name != "cos":  # a zero keeps its sign
        found = b.select(b.compare("fcmp olt", absolute(b, number), DOUBLE(2.0**-30)), number, found)
    if of is FLOAT:
        found = b.convert("fptrunc", found, FLOAT)
    before, large, after = b.block, b.fresh("large"), b.fresh("reduced")
    b.cbranch(b.compare("fcmp ogt", absolute(b, x), of(_LARGE)), large, after)
    b.begin_block(large)
    called = call_for_large(b, name, x)
    b.branch(after)
    b.begin_block(after)
    result = LlvmValue(of, f"%{b.fresh()}")
    b.phi(result, [(found, before), (called, large)])
    return result


def _remainder(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue, LlvmValue]:
    """Return k, and r as a number and what it lacks."""
    first, second, third = HALF_PI[DOUBLE]
    k = nearest_integer(b, x, 2 / math.pi)
    minus_k = b.op("fneg", k)
    rest = b.muladd(minus_k, x.type(first), x)
    rest, lost = two_sum(b, rest, b.op("fmul", minus_k, x.type(second)))
    high, low = fast_two_sum(b, rest, b.muladd(minus_k, x.type(third), lost))
    return k, high, low


def _sine(b: FunctionText, x: LlvmValue, of: LlvmType, quarter: int) -> LlvmValue:
    """Return the sine of `x`, `quarter` quarters of a turn further on."""
    k, r, low = _remainder(b, x)
    sine, cosine = _sine_of(b, r, low, of), _cosine_of(b, r, low, of)
    turned = k if not quarter else b.op("fadd", k, x.type(float(quarter)))
    found = b.select(is_odd(b, turned), cosine, sine)
    return b.select(is_odd(b, turned, 1), b.op("fneg", found), found)


def _tangent(b: FunctionText, x: LlvmValue, of: LlvmType) -> LlvmValue:
    k, r, low = _remainder(b, x)
    sine, cosine = _sine_of(b, r, low, of), _cosine_of(b, r, low, of)
    odd = is_odd(b, k)
    numerator = b.select(odd, b.op("fneg", cosine), sine)
    return b.op("fdiv", numerator, b.select(odd, sine, cosine))


def _sine_of(b: FunctionText, r: LlvmValue, low: LlvmValue, of: LlvmType) -> LlvmValue:
    """Return sin(r + low) = r + (r**3 p(r**2) + low (1 - r**2 / 2)); minus 0 stays minus 0."""
    z = b.op("fmul", r, r)
    correction = b.muladd(b.op("fmul", z, r.type(-0.5)), low, low)
    return b.op("fadd", r, b.muladd(b.op("fmul", z, r), polynomial(b, z, SIN[of]), correction))


def _cosine_of(b: FunctionText, r: LlvmValue, low: LlvmValue, of: LlvmType) -> LlvmValue:
    """Return cos(r + low) = (1 - r**2 / 2) + (what that lost + r**4 p(r**2) - r low)."""
    one, z = r.type(1.0), b.op("fmul", r, r)
    half = b.op("fmul", z, r.type(0.5))
    main = b.op("fsub", one, half)
    lost = b.op("fsub", b.op("fsub", one, main), half)
    small = b.muladd(b.op("fneg", r), low, lost)
    return b.op("fadd", main, b.muladd(b.op("fmul", z, z), polynomial(b, z, COS[of]), small))


def emit_arctan(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the arc tangent, within 2 ulp.

    Above tan(pi / 8) it is pi / 4 more than that of (x - 1) / (x + 1), above tan(3 pi / 8) it is pi / 2 more
    than that of -1 / x.
    """
    of, size, one = x.type, absolute(b, x), x.type(1.0)
    is_middle = b.compare("fcmp ogt", size, of(math.tan(math.pi / 8)))
    is_large = b.compare("fcmp ogt", size, of(math.tan(3 * math.pi / 8)))
    numerator = b.select(is_middle, b.op("fsub", size, one), size)
    divisor = b.select(is_middle, b.op("fadd", size, one), one)
    numerator, divisor = b.select(is_large, of(-1.0), numerator), b.select(is_large, size, divisor)
    t = b.op("fdiv", numerator, divisor)
    high, low = (
        b.select(is_large, of(2 * part), b.select(is_middle, of(part), of(0.0))) for part in _QUARTER_PI[of]
    )
    z = b.op("fmul", t, t)
    small = b.muladd(b.op("fmul", z, t), polynomial(b, z, ARCTAN[of]), low)
    return with_sign(b, b.op("fadd", high, b.op("fadd", t, small)), x)
