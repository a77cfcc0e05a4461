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
    all_of,
    fast_two_sum,
    format_of,
    is_no_more,
    limited,
    minus_product,
    negated_if,
    only_if,
    polynomial,
    sign_bit,
    two_product,
)
from engine.codegen.llvm.elementary.coefficients import LOG_TAIL, THIRD_BY_LN2, TWO_BY_LN2
from engine.codegen.llvm.elementary.exponential import EXP2_LIMITS, exp2_of_sum, normal_exp2_of_sum
from engine.codegen.llvm.elementary.logarithm import SMALLEST_NORMAL, normalized, or_of_special, split
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

_MOST = {DOUBLE: 1.7976931348623157e308, FLOAT: 3.4028234663852886e38}
_MOST_EXPONENT = {DOUBLE: 1021.0, FLOAT: 125.0}
"""Two to the power of it, and of minus it, is a normal number, and stays one if it is a little less."""


def emit_pow(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Emit x to the power of `y`, within 1.5 ulp in float64 and 2 ulp in float32.

    What only unusual numbers need is in branches. A vector takes them if any of its elements must; they
    change nothing for the others. Usual are a normal positive `x` and a normal result.
    """
    of, start = x.type, b.block
    is_positive = b.compare("fcmp oge", x, of(SMALLEST_NORMAL[of.scalar]))
    is_finite = b.compare("fcmp ole", x, of(_MOST[of.scalar]))
    is_usual = b.op("and", is_positive, is_finite)
    unusual, usual = b.fresh("unusual"), b.fresh("usual")
    b.cbranch(all_of(b, is_usual), usual, unusual)
    b.begin_block(unusual)
    base, shift, exponent = _made_usual(b, x, y)
    b.branch(usual)
    b.begin_block(usual)
    base = b.arriving((x, start), (base, unusual))
    shift = b.arriving((of(0.0), start), (shift, unusual))
    exponent = b.arriving((y, start), (exponent, unusual))
    k, m = split(b, base)
    product, error = _product_with_log(b, exponent, b.op("fadd", k, shift), m)
    is_normal = b.op("and", is_usual, is_no_more(b, product, _MOST_EXPONENT[of.scalar]))
    return _power(b, x, y, product, error, is_normal)


def _made_usual(b: FunctionText, x: LlvmValue, y: LlvmValue) -> tuple[LlvmValue, LlvmValue, LlvmValue]:
    """Return a positive number and a shift, for which log2|x| is the shift more than the logarithm of the
    number, and a finite exponent.

    The shift of 0 and of infinity is infinite; that of NaN, and of a negative `x` without power, is NaN.
    """
    rest, size = _rest_by_two(b, y), absolute(b, x)
    is_fraction = b.op(
        "and", b.compare("fcmp ogt", rest, y.type(0.0)), b.compare("fcmp olt", rest, y.type(1.0))
    )
    is_no_number = b.op("and", is_fraction, b.compare("fcmp olt", x, x.type(0.0)))
    base, shift = normalized(b, size)
    shift = or_of_special(b, size, b.select(is_no_number, x.type(math.nan), shift))
    most = _MOST[y.type.scalar]
    return base, shift, limited(b, y, -most, most)  # its product with 0 is 0


def _power(
    b: FunctionText, x: LlvmValue, y: LlvmValue, product: LlvmValue, error: LlvmValue, is_normal: LlvmValue
) -> LlvmValue:
    """Emit 2**(product + error), the power of `x` if it `is_normal` and of |x| otherwise, as that of `x`."""
    normal, unusual, done = b.fresh("normal"), b.fresh("unusual"), b.fresh("done")
    b.cbranch(all_of(b, is_normal), normal, unusual)
    b.begin_block(normal)
    found = normal_exp2_of_sum(b, product, error)
    b.branch(done)
    b.begin_block(unusual)
    corrected = _unusual_power(b, x, y, product, error)
    b.branch(done)
    b.begin_block(done)
    return b.arriving((found, normal), (corrected, unusual))


def _unusual_power(
    b: FunctionText, x: LlvmValue, y: LlvmValue, product: LlvmValue, error: LlvmValue
) -> LlvmValue:
    """Emit 2**(product + error), which may overflow or be subnormal, with its sign; or 1."""
    of, rest = x.type, _rest_by_two(b, y)
    within = limited(b, product, *EXP2_LIMITS[of.scalar])
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


def _product_with_log(
    b: FunctionText, y: LlvmValue, k: LlvmValue, m: LlvmValue
) -> tuple[LlvmValue, LlvmValue]:
    """Return y log2(2**k m) in two parts."""
    high, low = _log(b, k, m)
    product, error = two_product(b, y, high)
    return product, b.muladd(y, low, error)


def _log(b: FunctionText, k: LlvmValue, m: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return log2(2**k m) in two parts, of which the first is infinite or NaN if k is.

    It is within 2**-64, in float32 within 2**-31.
    """
    of = m.type
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
    constant, constant_low = (s.type(part) for part in TWO_BY_LN2[s.type.scalar])
    z, term, term_low = (_term_of_double if s.type.scalar is DOUBLE else _term_of_float)(b, s, constant_low)
    factor = b.op("fadd", constant, b.op("fadd", term, term_low))
    factor_low = b.op("fadd", b.op("fsub", term, b.op("fsub", factor, constant)), term_low)
    slope = b.muladd(z, constant, constant)
    slope = b.muladd(z, slope, constant) if s.type.scalar is DOUBLE else slope
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
