"""Many quotients by one divisor: products with its reciprocal, corrected to what a division gives.

A division takes as long as eight multiplications. In a loop whose divisor is the same in each pass, the loop
computes the reciprocal once; a product with it is within a digit of the quotient, and one step of Newton's
with a fused remainder makes it the nearest number (Markstein, "Computation of elementary functions on the IBM
RISC System/6000 processor", 1990, theorem 6: for a reciprocal that is the nearest number itself).

Both operands are first scaled by a power of two. It makes the divisor a number of [1/2, 1); a divisor that is
0, infinite, subnormal or huge stays so. Then the remainder is exact, and nothing overflows but the quotient.
"""

from __future__ import annotations

import math

from engine.codegen.llvm.elementary.arithmetic import absolute, format_of, from_bits, to_bits
from engine.codegen.llvm.ir_text import DOUBLE, FunctionText, LlvmValue

_LEAST = 2.0**-900
"""Smaller quotients are not corrected: their remainder may have lost digits."""


def emit_quotient(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Emit x / y: the nearest number, or below 2**-900 one less than two ulp from the quotient.

    Float32, and levels without fused operations, divide.
    """
    if y.type is not DOUBLE or not b.has_fma:
        return b.op("fdiv", x, y)
    scale = _scale(b, y)
    divisor, dividend = b.op("fmul", y, scale), b.op("fmul", x, scale)
    reciprocal = b.op("fdiv", y.type(1.0), divisor)
    first = b.op("fmul", dividend, reciprocal)
    remainder = b.muladd(b.op("fneg", first), divisor, dividend)
    nearest = b.muladd(remainder, reciprocal, first)
    size = absolute(b, first)
    is_usual = b.op(
        "and", b.compare("fcmp ogt", size, x.type(_LEAST)), b.compare("fcmp olt", size, x.type(math.inf))
    )
    return b.select(is_usual, nearest, first)


def _scale(b: FunctionText, y: LlvmValue) -> LlvmValue:
    """Return 2**-e for a `y` from 2**(e - 1) to 2**e; the largest one for 0, the smallest for infinity."""
    form = format_of(y)
    word, most = form.word, 2 * form.bias + 1
    exponent = b.op("and", b.op("lshr", to_bits(b, y), word(form.digits)), word(most))
    wanted = b.op("sub", word(most - 2), exponent)
    biased = b.select(b.compare("icmp slt", wanted, word(1)), word(1), wanted)
    return from_bits(b, b.op("shl", biased, word(form.digits)), y.type)
