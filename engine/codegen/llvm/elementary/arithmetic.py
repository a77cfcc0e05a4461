"""The parts of elementary functions: polynomials, rounding, powers of two, and bits of floats.

Nothing here branches or calls a library, so the loop vectorizer can give a loop any width. A multiplication
and an addition are fused where the CPU level can (`FunctionText.muladd`), in scalar and vector code alike:
the result for a number is the same wherever it lies in an array.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, INT32, WORD, FunctionText, LlvmType, LlvmValue


class Format(Struct, frozen=True):
    """A binary floating-point format: the integer `word` of its size, the `digits` of its fraction."""

    word: LlvmType
    digits: int
    bias: int

    @property
    def sign(self) -> int:
        """The position of the sign's bit."""
        return int(self.word.scalar.name[1:]) - 1

    @property
    def rounder(self) -> float:
        """The number whose sum with a small one has the nearest integer in its last digits."""
        return 1.5 * 2.0**self.digits


_FORMATS = {DOUBLE: Format(WORD, 52, 1023), FLOAT: Format(INT32, 23, 127)}


def format_of(x: LlvmValue) -> Format:
    """Return the format of a float or a double, or of a vector of them."""
    form, lanes = _FORMATS[x.type.scalar], x.type.lanes
    return Format(form.word.vector(lanes), form.digits, form.bias) if lanes else form


def absolute(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Return |x|."""
    return b.call(x.type, f"llvm.fabs.{x.type.suffix}", [x])


def with_sign(b: FunctionText, x: LlvmValue, sign: LlvmValue) -> LlvmValue:
    """Return `x` with the sign of `sign`."""
    return b.call(x.type, f"llvm.copysign.{x.type.suffix}", [x, sign])


def rounded_product(
    b: FunctionText, x: LlvmValue, factor: float, bias: int = 0
) -> tuple[LlvmValue, LlvmValue]:
    """Return a number whose last digits are the integer k + bias, and k: `factor * x`, rounded.

    Its magnitude must be below 2**(digits - 1).
    """
    rounder = x.type(format_of(x).rounder + bias)
    rounded = b.muladd(x, x.type(factor), rounder)
    return rounded, b.op("fsub", rounded, rounder)


def polynomial(b: FunctionText, x: LlvmValue, coefficients: Sequence[float]) -> LlvmValue:
    """Return the polynomial of the coefficients (lowest first) at `x`, by Horner's rule."""
    found = x.type(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        found = b.muladd(found, x, x.type(coefficient))
    return found


def at_least(b: FunctionText, x: LlvmValue, low: float) -> LlvmValue:
    """Return the greater one of `x` and `low`; NaN stays NaN."""
    return b.select(b.compare("fcmp ogt", x.type(low), x), x.type(low), x)


def at_most(b: FunctionText, x: LlvmValue, high: float) -> LlvmValue:
    """Return the smaller one of `x` and `high`; NaN stays NaN."""
    return b.select(b.compare("fcmp olt", x.type(high), x), x.type(high), x)


def limited(b: FunctionText, x: LlvmValue, low: float, high: float) -> LlvmValue:
    """Return `x`, or the limit that it exceeds; NaN stays NaN."""
    return at_most(b, at_least(b, x, low), high)


def only_if(b: FunctionText, condition: LlvmValue, x: LlvmValue) -> LlvmValue:
    """Return `x` if the bit `condition` is set, else 0: one instruction, where other choices take several."""
    return b.select(condition, x, x.type(0.0))


def is_no_more(b: FunctionText, x: LlvmValue, limit: float) -> LlvmValue:
    """Return the bit of: |x| <= limit."""
    return b.compare("fcmp ole", absolute(b, x), x.type(limit))


def all_of(b: FunctionText, bits: LlvmValue) -> LlvmValue:
    """Return the bit of: `bits`, one of a number or several of a vector, are all set."""
    if not bits.type.lanes:
        return bits
    word = LlvmType(f"i{bits.type.lanes}")
    return b.compare("icmp eq", b.convert("bitcast", bits, word), word(-1))


def to_bits(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Return the bits of `x` as an integer."""
    return b.convert("bitcast", x, format_of(x).word)


def from_bits(b: FunctionText, bits: LlvmValue, of: LlvmType) -> LlvmValue:
    """Return the number of type `of` that has these bits."""
    return b.convert("bitcast", bits, of)


def power_of_two(b: FunctionText, k: LlvmValue, offset: int = 0) -> LlvmValue:
    """Return 2**(k + offset); the integer k + offset must be the exponent of a normal number."""
    form = format_of(k)
    shifted = b.op("fadd", k, k.type(form.rounder + form.bias + offset))
    return from_bits(b, b.op("shl", to_bits(b, shifted), form.word(form.digits)), k.type)


def sign_bit(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Return the bits of `x` without all but the sign."""
    word = format_of(x).word
    return b.op("and", to_bits(b, x), word(-(1 << format_of(x).sign)))


def negated_if(b: FunctionText, x: LlvmValue, sign: LlvmValue) -> LlvmValue:
    """Return `x`, negated if the bit of the sign is set in `sign`."""
    return from_bits(b, b.op("xor", to_bits(b, x), sign), x.type)


def two_sum(b: FunctionText, x: LlvmValue, y: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return x + y rounded, and its error (Knuth's TwoSum)."""
    total = b.op("fadd", x, y)
    part = b.op("fsub", total, x)
    error = b.op("fadd", b.op("fsub", x, b.op("fsub", total, part)), b.op("fsub", y, part))
    return total, error


def fast_two_sum(b: FunctionText, x: LlvmValue, y: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return x + y rounded, and its error, for |x| >= |y| (Dekker's Fast2Sum)."""
    total = b.op("fadd", x, y)
    return total, b.op("fsub", y, b.op("fsub", total, x))


def two_product(b: FunctionText, x: LlvmValue, y: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return x * y rounded, and its error: by a fused operation, or else by Dekker's splitting."""
    product = b.op("fmul", x, y)
    if b.has_fma:
        return product, b.muladd(x, y, b.op("fneg", product))
    (x_high, x_low), (y_high, y_low) = halves(b, x), halves(b, y)
    error = b.op("fsub", b.op("fmul", x_high, y_high), product)
    error = b.op("fadd", error, b.op("fmul", x_high, y_low))
    error = b.op("fadd", error, b.op("fmul", x_low, y_high))
    return product, b.op("fadd", error, b.op("fmul", x_low, y_low))


def minus_product(b: FunctionText, z: LlvmValue, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Return z - x * y, for an x * y so near to `z` that the difference is exact."""
    if b.has_fma:
        return b.muladd(b.op("fneg", x), y, z)
    product, error = two_product(b, x, y)
    return b.op("fsub", b.op("fsub", z, product), error)


def halves(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return `x` as the sum of two numbers that each have at most half of its digits."""
    form = format_of(x)
    kept = form.word(-(1 << (form.digits + 2) // 2))
    high = from_bits(b, b.op("and", to_bits(b, x), kept), x.type)
    return high, b.op("fsub", x, high)
