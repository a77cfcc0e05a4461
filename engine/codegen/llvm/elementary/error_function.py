"""erf and erfc.

Below 1, erf is x times a polynomial in x**2; above, in float32, a polynomial. Above 0.5, erfc is exp(-x**2),
with the rounding error of x**2 taken into account, times a polynomial in 1 / (x + 2) (after Schonfelder,
"Chebyshev expansions for the error and related functions", 1978), and so is 1 - erf in float64.
"""

from __future__ import annotations

from engine.codegen.llvm.elementary.arithmetic import absolute, limited, polynomial, two_product, with_sign
from engine.codegen.llvm.elementary.coefficients import (
    ABOVE_ONE,
    ERF,
    ERFC,
    ERFC_ABOVE_ONE,
    ERFC_SHIFT,
    ONE_FROM,
)
from engine.codegen.llvm.elementary.exponential import exp_of_sum
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

_ERFC_HIGH = {DOUBLE: 27.5, FLOAT: 10.1}


def emit_erf(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit the error function, within 3 ulp."""
    one, size = x.type(1.0), absolute(b, x)
    far = _erf_of_large_float(b, size) if x.type is FLOAT else b.op("fsub", one, _erfc_of_large(b, size))
    return b.select(b.compare("fcmp olt", size, one), _erf_of_small(b, x), with_sign(b, far, x))


def emit_erfc(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit 1 - erf(x), within 6 ulp."""
    of, size = x.type, absolute(b, x)
    far = _erfc_of_large(b, size)
    far = b.select(b.compare("fcmp olt", x, of(0.0)), b.op("fsub", of(2.0), far), far)
    near = b.op("fsub", of(1.0), _erf_of_small(b, x))
    return b.select(b.compare("fcmp olt", size, of(0.5)), near, far)


def _erf_of_small(b: FunctionText, x: LlvmValue) -> LlvmValue:
    z = b.op("fmul", x, x)
    return b.op("fmul", x, polynomial(b, z, ERF[x.type]))


def _erf_of_large_float(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Return erf(x) for x >= 1, in float32: even and odd powers are added up side by side."""
    t = b.op("fsub", limited(b, x, 1.0, ONE_FROM), x.type(ABOVE_ONE))
    square = b.op("fmul", t, t)
    even, odd = polynomial(b, square, ERFC_ABOVE_ONE[::2]), polynomial(b, square, ERFC_ABOVE_ONE[1::2])
    return b.op("fsub", x.type(1.0), b.muladd(t, odd, even))


def _erfc_of_large(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Return erfc(x) for x >= 0.5; from the greatest x on that has one, 0."""
    of = x.type
    x = limited(b, x, 0.5, _ERFC_HIGH[of])
    square, error = two_product(b, x, x)
    t = b.op("fdiv", of(1.0), b.op("fadd", x, of(ERFC_SHIFT)))
    factor = b.op("fmul", t, polynomial(b, t, ERFC[of]))
    return b.op("fmul", exp_of_sum(b, b.op("fneg", square), b.op("fneg", error)), factor)
