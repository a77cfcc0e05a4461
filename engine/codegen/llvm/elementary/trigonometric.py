"""arctan, in three intervals."""

from __future__ import annotations

import math

from engine.codegen.llvm.elementary.arithmetic import absolute, polynomial, with_sign
from engine.codegen.llvm.elementary.coefficients import ARCTAN
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

_QUARTER_PI = {
    DOUBLE: (math.pi / 4, float.fromhex("0x1.1a62633145c07p-55")),
    FLOAT: (float.fromhex("0x1.921fb6p-1"), float.fromhex("-0x1.777a5cp-26")),
}


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
