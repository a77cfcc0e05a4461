"""sin, cos and tan, by the remainder of pi / 2; and arctan.

x = k pi/2 + r with an integer k and |r| <= pi / 4 (Cody and Waite, "Software Manual for the Elementary
Functions", 1980). The parts of pi / 2 are multiplied by k without error and what the subtractions lose is
kept, so numbers near a multiple of pi / 2 have exact remainders too. That holds for |k| < 2**20, and in
float32 for |k| < 2**17; for greater numbers libm is called. Without fused operations, floats are computed as
doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from engine.codegen.llvm.elementary.arithmetic import (
    absolute,
    fast_two_sum,
    format_of,
    negated_if,
    only_if,
    polynomial,
    rounded_product,
    sign_bit,
    to_bits,
    two_sum,
    with_sign,
)
from engine.codegen.llvm.elementary.coefficients import ARCTAN, COS, HALF_PI, HALF_PI_FUSED, SIN
from engine.codegen.llvm.elementary.large_numbers import call_for_large
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmType, LlvmValue

_LARGE = {DOUBLE: 1.6e6, FLOAT: 2.0e5}
_LEAST_REST = 2.0**-6
"""From here on what a fused subtraction loses is known; below it is at most half a unit of the last place."""
_QUARTER_PI = {
    DOUBLE: (math.pi / 4, float.fromhex("0x1.1a62633145c07p-55")),
    FLOAT: (float.fromhex("0x1.921fb6p-1"), float.fromhex("-0x1.777a5cp-26")),
}


def emit_sin(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the sine, within 1.5 ulp."""
    return _or_libm(b, x, "sin", lambda number: _sine(b, number, x.type))


def emit_cos(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the cosine, within 1.5 ulp."""
    return _or_libm(b, x, "cos", lambda number: _cosine(b, number, x.type))


def emit_tan(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the tangent, within 3 ulp."""
    return _or_libm(b, x, "tan", lambda number: _tangent(b, number, x.type))


def _or_libm(b: FunctionText, x: LlvmValue, name: str, emit: Callable[[LlvmValue], LlvmValue]) -> LlvmValue:
    """Return what `emit` gives for |x|, or for large numbers the function of libm for `x`.

    What is odd gets the sign of `x`, so a zero keeps its sign.
    """
    of, size = x.type, absolute(b, x)
    is_widened = of is FLOAT and not b.has_fma
    found = emit(b.convert("fpext", size, DOUBLE) if is_widened else size)
    if is_widened:
        found = b.convert("fptrunc", found, FLOAT)
    if name != "cos":
        found = negated_if(b, found, sign_bit(b, x))
    before, large, after = b.block, b.fresh("large"), b.fresh("reduced")
    b.cbranch(b.compare("fcmp ogt", size, of(_LARGE[of])), large, after)
    b.begin_block(large)
    called = call_for_large(b, name, x)
    b.branch(after)
    b.begin_block(after)
    result = LlvmValue(of, f"%{b.fresh()}")
    b.phi(result, [(found, before), (called, large)])
    return result


def _remainder(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue, LlvmValue]:
    """Return the integer k in the last bits of a word, and r as a number and what it lacks."""
    rounded, k = rounded_product(b, x, 2 / math.pi)
    minus_k, bits = b.op("fneg", k), to_bits(b, rounded)
    first, second, third = (x.type(part) for part in (HALF_PI_FUSED[x.type] if b.has_fma else HALF_PI))
    rest = b.muladd(minus_k, first, x)  # exact
    if b.has_fma:
        high = b.muladd(minus_k, second, rest)
        lost = b.muladd(minus_k, second, b.op("fsub", rest, high))
        lost = only_if(b, b.compare("fcmp ogt", absolute(b, rest), x.type(_LEAST_REST)), lost)
        return bits, high, b.muladd(minus_k, third, lost)
    rest, lost = two_sum(b, rest, b.op("fmul", minus_k, second))
    high, low = fast_two_sum(b, rest, b.muladd(minus_k, third, lost))
    return bits, high, low


def _sine(b: FunctionText, x: LlvmValue, of: LlvmType) -> LlvmValue:
    k, r, low = _remainder(b, x)
    return _turned(b, k, _cosine_of(b, r, low, of), _sine_of(b, r, low, of))


def _cosine(b: FunctionText, x: LlvmValue, of: LlvmType) -> LlvmValue:
    k, r, low = _remainder(b, x)
    word = format_of(x).word
    return _turned(b, b.op("add", k, word(1)), _cosine_of(b, r, low, of), _sine_of(b, r, low, of))


def _turned(b: FunctionText, k: LlvmValue, of_odd: LlvmValue, of_even: LlvmValue) -> LlvmValue:
    """Return the value for the last bit of `k`, negated if the bit before is set."""
    form = format_of(of_odd)
    sign = b.op("shl", b.op("and", k, form.word(2)), form.word(form.sign - 1))
    return negated_if(b, b.select(_is_odd(b, k), of_odd, of_even), sign)


def _is_odd(b: FunctionText, k: LlvmValue) -> LlvmValue:
    return b.compare("icmp ne", b.op("and", k, k.type(1)), k.type(0))


def _tangent(b: FunctionText, x: LlvmValue, of: LlvmType) -> LlvmValue:
    k, r, low = _remainder(b, x)
    sine, cosine = _sine_of(b, r, low, of), _cosine_of(b, r, low, of)
    odd = _is_odd(b, k)
    numerator = b.select(odd, b.op("fneg", cosine), sine)
    return b.op("fdiv", numerator, b.select(odd, sine, cosine))


def _sine_of(b: FunctionText, r: LlvmValue, low: LlvmValue, of: LlvmType) -> LlvmValue:
    """Return sin(r + low) = r + (r**3 p(r**2) + low (1 - r**2 / 2))."""
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
