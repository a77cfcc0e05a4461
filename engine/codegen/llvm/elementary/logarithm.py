"""log and what is made of it: log1p, log2, log10, softplus, log1mexp.

x = 2**k m with sqrt(1/2) <= m < sqrt(2), and log(m) = 2 artanh(s) with s = (m - 1) / (m + 1), as a polynomial
in s**2 (Tang, "Table-driven implementation of the logarithm function", 1990, without the table; the sums
are ordered as in Sun's fdlibm).
"""

from __future__ import annotations

import math

from engine.codegen.llvm.elementary.arithmetic import (
    absolute,
    at_most,
    fast_two_sum,
    format_of,
    from_bits,
    only_if,
    polynomial,
    to_bits,
    two_product,
)
from engine.codegen.llvm.elementary.coefficients import INVERSE_LOGS, LN2, LOG, LOG_OF_SUM, LOGS_OF_TWO
from engine.codegen.llvm.elementary.exponential import TINY, emit_exp, emit_expm1, emit_small_exp
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

SMALLEST_NORMAL = {DOUBLE: 2.0**-1022, FLOAT: 2.0**-126}
_SQRT_HALF_BITS = {DOUBLE: 0x3FE6A09E667F3BCD, FLOAT: 0x3F3504F3}
_LOG1P_SMALL = 0.29  # below it, and above minus it, 1 + x is within sqrt(1/2) and sqrt(2)
_INVERSE_BITS = {DOUBLE: 0x7FDE623822835EEA, FLOAT: 0x7EF311C3}  # 1 / u within 12 %


def emit_log(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the natural logarithm, within 1 ulp; minus infinity at 0, NaN below."""
    k, m = split_any(b, x)
    return _or_of_any(b, x, _sum(b, k, b.op("fsub", m, x.type(1.0))))


def emit_log1p(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit log(1 + x), within 1 ulp; minus infinity at -1, NaN below.

    What 1 + x loses by rounding is added, divided by 1 + x, in the end.
    """
    of, one, size = x.type, x.type(1.0), absolute(b, x)
    u = b.op("fadd", one, x)
    k, m = split(b, u)
    lost = b.op("fsub", x, b.op("fsub", u, one))  # nothing for large numbers
    is_small = b.compare("fcmp olt", size, of(_LOG1P_SMALL))
    f = b.select(is_small, x, b.op("fsub", m, one))
    is_large = b.compare("fcmp oge", size, of(_LOG1P_SMALL))
    correction = only_if(b, is_large, b.op("fmul", lost, _rough_inverse(b, at_most(b, u, 2.0**60))))
    found = _or_of_any(b, u, _sum(b, only_if(b, is_large, k), f, correction))
    return b.select(b.compare("fcmp olt", size, of(TINY[of])), x, found)


def emit_softplus(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit log(1 + exp(x)) = max(x, 0) + log(1 + e) with e = exp(-|x|), within 2 ulp, without overflow.

    1 + e is at most 2: it is 1 + f, or 2 (1 + f) with f = (e - 1) / 2, which is exact.
    """
    of = x.type
    e = emit_small_exp(b, x)
    is_large = b.compare("fcmp ogt", e, of(math.sqrt(2.0) - 1.0))
    f = b.select(is_large, b.muladd(e, of(0.5), of(-0.5)), e)
    found = _sum(b, only_if(b, is_large, of(1.0)), f)
    return b.op("fadd", only_if(b, b.compare("fcmp ogt", x, of(0.0)), x), found)


def emit_log1mexp(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit log(1 - exp(x)), within 2.5 ulp; minus infinity at 0, NaN above.

    Next to 0 it is the logarithm of -expm1(x). Elsewhere e = exp(x) is at most about 1/2; what 1 - e loses by
    rounding is added, divided by 1 - e, in the end.
    """
    of, one = x.type, x.type(1.0)
    e = emit_exp(b, x)
    is_far = b.compare("fcmp olt", x, of(-math.log(2.0)))
    u = b.select(is_far, b.op("fsub", one, e), b.op("fneg", emit_expm1(b, x)))
    k, m = split_any(b, u)
    is_small = b.op("and", is_far, b.compare("fcmp olt", e, of(_LOG1P_SMALL)))
    f = b.select(is_small, b.op("fneg", e), b.op("fsub", m, one))
    lost = b.op("fsub", b.op("fsub", one, u), e)
    correction = b.op("fmul", b.select(is_far, lost, of(0.0)), _rough_inverse(b, b.select(is_far, u, one)))
    kept = b.select(is_small, of(0.0), k), f, b.select(is_small, of(0.0), correction)
    return _or_of_any(b, u, _sum(b, *kept))


def emit_log2(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the logarithm to base 2, within 2 ulp; exact for powers of two."""
    return _to_base(b, x, 2)


def emit_log10(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the logarithm to base 10, within 2 ulp."""
    return _to_base(b, x, 10)


def split_any(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return k and m with x = 2**k m, for a positive finite `x`."""
    number, shift = normalized(b, x)
    k, m = split(b, number)
    return b.op("fadd", k, shift), m


def normalized(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return a normal number and n, an integer, with x = 2**n times the number, for a positive finite `x`."""
    of, digits = x.type, format_of(x).digits
    is_subnormal = b.compare("fcmp olt", x, of(SMALLEST_NORMAL[of.scalar]))
    number = b.op("fmul", x, b.select(is_subnormal, of(2.0**digits), of(1.0)))
    return number, b.select(is_subnormal, of(-digits), of(0.0))


def split(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return k and m with x = 2**k m, for a normal positive `x`."""
    of, form, root = x.type, format_of(x), _SQRT_HALF_BITS[x.type.scalar]
    # Few CPU levels have an instruction that makes a double of an integer: it gets a bias, to be positive.
    bias = form.bias << form.digits if of.scalar is DOUBLE else 0
    moved = b.op("add", to_bits(b, x), form.word(bias - root))
    fraction = b.op("and", moved, form.word((1 << form.digits) - 1))
    m = from_bits(b, b.op("add", fraction, form.word(root)), of)
    if of.scalar is FLOAT:
        return b.convert("sitofp", b.op("ashr", moved, form.word(form.digits)), of), m
    biased = b.op("lshr", moved, form.word(form.digits))
    # The integer becomes the last digits of a number as large as 2**digits.
    whole = from_bits(b, b.op("or", biased, form.word((form.bias + form.digits) << form.digits)), of)
    return b.op("fsub", whole, of(2.0**form.digits + form.bias)), m


def _series(b: FunctionText, f: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return s = f / (2 + f), and t with log(1 + f) = f - s t."""
    s = b.op("fdiv", f, b.op("fadd", f.type(2.0), f))
    z = b.op("fmul", s, s)
    return s, b.muladd(b.op("fneg", z), polynomial(b, z, LOG[f.type]), f)


def _sum(b: FunctionText, k: LlvmValue, f: LlvmValue, correction: LlvmValue | None = None) -> LlvmValue:
    """Return k ln(2) + log(1 + f) + correction, the smallest parts first."""
    high, low = LN2[k.type]
    s, t = _series(b, f)
    small = b.op("fmul", k, k.type(low)) if correction is None else b.muladd(k, k.type(low), correction)
    rest = b.op("fadd", f, b.muladd(b.op("fneg", s), t, small))
    return b.muladd(k, k.type(high), rest)


def _rough_inverse(b: FunctionText, u: LlvmValue) -> LlvmValue:
    """Return 1 / u within 2 %: the bits of `u` taken from a constant, and one step of Newton's."""
    form = format_of(u)
    rough = from_bits(b, b.op("sub", form.word(_INVERSE_BITS[u.type]), to_bits(b, u)), u.type)
    return b.op("fmul", rough, b.muladd(b.op("fneg", rough), u, u.type(2.0)))


def or_of_special(b: FunctionText, x: LlvmValue, found: LlvmValue) -> LlvmValue:
    """Return `found`, or the logarithm of an `x` that is 0, infinite or NaN."""
    found = b.select(b.compare("fcmp oeq", x, x.type(0.0)), x.type(-math.inf), found)
    return b.select(b.compare("fcmp uge", x, x.type(math.inf)), x, found)


def _or_of_any(b: FunctionText, x: LlvmValue, found: LlvmValue) -> LlvmValue:
    """Return `found`, or the logarithm of an `x` that is not positive and finite."""
    found = or_of_special(b, x, found)
    return b.select(b.compare("fcmp olt", x, x.type(0.0)), x.type(math.nan), found)


def _to_base(b: FunctionText, x: LlvmValue, base: int) -> LlvmValue:
    """Return log(m) / log(base) plus k log(2) / log(base)."""
    k, m = split_any(b, x)
    f = b.op("fsub", m, x.type(1.0))
    return _or_of_any(b, x, (_double_to_base if x.type is DOUBLE else _float_to_base)(b, k, f, base))


def _double_to_base(b: FunctionText, k: LlvmValue, f: LlvmValue, base: int) -> LlvmValue:
    """Return log(1 + f) / log(base), computed in two parts, plus k log(2) / log(base)."""
    s, t = _series(b, f)
    (factor, rest), (of_two, of_two_rest) = INVERSE_LOGS[f.type][base], LOGS_OF_TWO[f.type][base]
    log, lost = fast_two_sum(b, f, b.op("fneg", b.op("fmul", s, t)))
    high, low = two_product(b, log, f.type(factor))
    low = b.op("fadd", low, b.muladd(log, f.type(rest), b.op("fmul", lost, f.type(factor))))
    total, error = fast_two_sum(b, b.op("fmul", k, f.type(of_two)), high)
    small = b.op("fadd", error, b.muladd(k, f.type(of_two_rest), low))
    return b.op("fadd", total, small)


def _float_to_base(b: FunctionText, k: LlvmValue, f: LlvmValue, base: int) -> LlvmValue:
    """Return f c + (f**2 p(f) c) for c = 1 / log(base) in two parts, plus k log(2) / log(base)."""
    (factor, rest), (of_two, of_two_rest) = INVERSE_LOGS[f.type][base], LOGS_OF_TWO[f.type][base]
    terms = polynomial(b, f, [coefficient * (factor + rest) for coefficient in LOG_OF_SUM])
    low = b.muladd(f, f.type(rest), b.op("fmul", b.op("fmul", f, f), terms))
    if base == 2:
        return b.op("fadd", k, b.muladd(f, f.type(factor), low))
    found = b.muladd(f, f.type(factor), b.muladd(k, f.type(of_two_rest), low))
    return b.muladd(k, f.type(of_two), found)
