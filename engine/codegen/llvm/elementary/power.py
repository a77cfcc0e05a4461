"""x to the power of y: 2**(y log2 |x|), with a sign.

The error of the logarithm is multiplied by y, so the logarithm has more digits than a number has: it is
k + 2 artanh(s) / log(2) with s = (m - 1) / (m + 1), whose first terms are sums and products in two parts
(Dekker, "A floating-point technique for extending the available precision", 1971; the series as in Sun's
fdlibm). Special numbers have the values of C's `pow` (C99, F.9.4.4).
"""

from __future__ import annotations

import math

from engine.codegen.llvm.elementary.arithmetic import (
    absolute,
    fast_two_sum,
    format_of,
    limited,
    minus_product,
    negated_if,
    only_if,
    polynomial,
    sign_bit,
    two_product,
)
from engine.codegen.llvm.elementary.coefficients import LOG_TAIL, THIRD_BY_LN2, TWO_BY_LN2
from engine.codegen.llvm.elementary.exponential import EXP2_LIMITS, exp2_of_sum
from engine.codegen.llvm.elementary.logarithm import or_of_special, split_any
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

_MOST = {DOUBLE: 1.7976931348623157e308, FLOAT: 3.4028234663852886e38}


def emit_pow(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Emit x to the power of `y`, within 1.5 ulp in float64 and 2 ulp in float32."""
    of = x.type
    rest = _rest_by_two(b, y)
    is_fraction = b.op("and", b.compare("fcmp ogt", rest, of(0.0)), b.compare("fcmp olt", rest, of(1.0)))
    is_no_number = b.op("and", is_fraction, b.compare("fcmp olt", x, of(0.0)))
    high, low = _log(b, absolute(b, x), is_no_number)
    exponent = limited(b, y, -_MOST[of], _MOST[of])  # its product with 0 is 0
    product, error = two_product(b, exponent, high)
    error = b.muladd(exponent, low, error)
    within = limited(b, product, *EXP2_LIMITS[of])
    found = exp2_of_sum(b, within, only_if(b, b.compare("fcmp oeq", product, within), error))
    is_odd = b.compare("fcmp oeq", rest, of(1.0))
    found = negated_if(b, found, b.select(is_odd, sign_bit(b, x), format_of(x).word(0)))
    is_one = b.op("or", b.compare("fcmp oeq", y, of(0.0)), b.compare("fcmp oeq", x, of(1.0)))
    return b.select(is_one, of(1.0), found)


def _rest_by_two(b: FunctionText, y: LlvmValue) -> LlvmValue:
    """Return the distance of `y` to an even number: 1 for an odd one, less for a fraction.

    A sum with 2**(digits + 1) drops what is no even number. From there on all numbers are even, and it may
    drop 2 or more.
    """
    high = 2.0 ** (format_of(y).digits + 1)
    size = absolute(b, y)
    even = b.op("fsub", b.op("fadd", size, y.type(high)), y.type(high))
    return absolute(b, b.op("fsub", size, even))


def _log(b: FunctionText, x: LlvmValue, is_no_number: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return log2(x) in two parts, for 0 <= x, or NaN: the first is infinite if x is 0 or infinite.

    It is within 2**-64, in float32 within 2**-31.
    """
    of = x.type
    k, m = split_any(b, x)
    k = or_of_special(b, x, b.select(is_no_number, of(math.nan), k))
    f = b.op("fsub", m, of(1.0))
    inverse = b.op("fdiv", of(1.0), b.op("fadd", f, of(2.0)))
    s = b.op("fmul", f, inverse)
    # f - s (2 + f): f - 2 s is exact, because 2 s is between half of f and twice f.
    rest = minus_product(b, b.muladd(s, of(-2.0), f), s, f)
    high, low = _artanh(b, s, b.op("fmul", rest, inverse))
    total, error = fast_two_sum(b, k, high)
    return total, b.op("fadd", error, low)


def _artanh(b: FunctionText, s: LlvmValue, s_low: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return c artanh(s + s_low) for c = 2 / log(2), in two parts.

    It is s (c + t) + s_low (c + c z + ...) with z = s**2.
    """
    constant, constant_low = (s.type(part) for part in TWO_BY_LN2[s.type])
    z, term, term_low = (_term_of_double if s.type is DOUBLE else _term_of_float)(b, s, constant_low)
    factor = b.op("fadd", constant, b.op("fadd", term, term_low))
    factor_low = b.op("fadd", b.op("fsub", term, b.op("fsub", factor, constant)), term_low)
    slope = b.muladd(z, constant, constant)
    slope = b.muladd(z, slope, constant) if s.type is DOUBLE else slope
    found, low = two_product(b, s, factor)
    return found, b.muladd(s_low, slope, b.muladd(s, factor_low, low))


def _term_of_float(b: FunctionText, s: LlvmValue, low: LlvmValue) -> tuple[LlvmValue, LlvmValue, LlvmValue]:
    """Return z, t = c z p(z), for which one part is enough, and `low`."""
    z = b.op("fmul", s, s)
    terms = [coefficient / math.log(2.0) for coefficient in LOG_TAIL[FLOAT]]
    return z, b.op("fmul", z, polynomial(b, z, terms)), low


def _term_of_double(b: FunctionText, s: LlvmValue, low: LlvmValue) -> tuple[LlvmValue, LlvmValue, LlvmValue]:
    """Return z, and t = c z (1/3 + z p(z)) in two parts, with `low` added."""
    third, third_low = (s.type(part) for part in THIRD_BY_LN2)
    z, z_low = two_product(b, s, s)
    term, term_low = two_product(b, z, third)
    terms = [coefficient / math.log(2.0) for coefficient in LOG_TAIL[DOUBLE]]
    tail = b.muladd(z, polynomial(b, z, terms), third_low)
    term_low = b.muladd(z, tail, b.op("fadd", term_low, low))
    return z, term, b.muladd(z_low, third, term_low)
