"""LLVM IR of psi and tri_gamma, the first two derivatives of the logarithm of the gamma function.

For a number y above 0, the recurrence leads to z = y + 10, where the asymptotic series is exact to the
last digits (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964: 6.3.6, 6.3.18, 6.4.6 and
6.4.12). For other numbers, the reflection formula (6.3.7, 6.4.7) is used, with the angle reduced to
half a turn. All of it is in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from engine.codegen.llvm.ir_text import DOUBLE, FunctionText, LlvmValue

Call = Callable[[str, LlvmValue], LlvmValue]
"""`call(name, x)` of the function `name` of LLVM or libm."""

_SHIFT = 10
# Bernoulli's numbers over the factors of the two series.
_PSI_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRI_GAMMA_TERMS = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def emit_psi(b: FunctionText, x: LlvmValue, call: Call) -> LlvmValue:
    """Emit the derivative of the logarithm of gamma; NaN for negative integers."""
    y, is_reflected = _reflected(b, x)
    found, z = x.type(0.0), b.op("fadd", y, x.type(_SHIFT))
    for number in reversed(range(_SHIFT)):
        found = b.op("fsub", found, b.op("fdiv", x.type(1.0), b.op("fadd", y, x.type(float(number)))))
    inverse = b.op("fdiv", x.type(1.0), z)
    square = b.op("fmul", inverse, inverse)
    series = b.op(
        "fadd", b.op("fmul", inverse, x.type(0.5)), b.op("fmul", _polynomial(b, square, _PSI_TERMS), square)
    )
    found = b.op("fadd", found, b.op("fsub", call("log", z), series))
    part = _fraction(b, x, call)
    angle = b.op("fmul", part, x.type(math.pi))
    reflected = b.op("fsub", found, b.op("fdiv", x.type(math.pi), call("tan", angle)))
    is_pole = b.op("and", b.compare("fcmp oeq", part, x.type(0.0)), b.compare("fcmp olt", x, x.type(0.0)))
    return b.select(is_reflected, b.select(is_pole, x.type(math.nan), reflected), found)


def emit_tri_gamma(b: FunctionText, x: LlvmValue, call: Call) -> LlvmValue:
    """Emit the derivative of psi; infinite for integers not above 0 and, as in SciPy, for -inf."""
    y, is_reflected = _reflected(b, x)
    found, z = x.type(0.0), b.op("fadd", y, x.type(_SHIFT))
    for number in reversed(range(_SHIFT)):
        inverse = b.op("fdiv", x.type(1.0), b.op("fadd", y, x.type(float(number))))
        found = b.op("fadd", found, b.op("fmul", inverse, inverse))
    inverse = b.op("fdiv", x.type(1.0), z)
    square = b.op("fmul", inverse, inverse)
    series = b.op("fmul", _polynomial(b, square, _TRI_GAMMA_TERMS), b.op("fmul", square, inverse))
    tail = b.op("fadd", b.op("fadd", inverse, b.op("fmul", square, x.type(0.5))), series)
    found = b.op("fadd", tail, found)
    ratio = b.op("fdiv", x.type(math.pi), call("sin", b.op("fmul", _fraction(b, x, call), x.type(math.pi))))
    is_smallest = b.compare("fcmp oeq", x, x.type(-math.inf))
    reflected = b.select(is_smallest, x.type(math.inf), b.op("fsub", b.op("fmul", ratio, ratio), found))
    return b.select(is_reflected, reflected, found)


def in_float64(
    emit: Callable[[FunctionText, LlvmValue, Call], LlvmValue], b: FunctionText, x: LlvmValue, call: Call
) -> LlvmValue:
    """Return the value of `emit`, computed in float64, in the type of `x`."""
    if x.type is DOUBLE:
        return emit(b, x, call)
    return b.convert("fptrunc", emit(b, b.convert("fpext", x, DOUBLE), call), x.type)


def _reflected(b: FunctionText, x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return the positive number to compute with, and a bit: the reflection formula is needed."""
    is_reflected = b.compare("fcmp ole", x, x.type(0.0))
    return b.select(is_reflected, b.op("fsub", x.type(1.0), x), x), is_reflected


def _fraction(b: FunctionText, x: LlvmValue, call: Call) -> LlvmValue:
    """Return `x` minus the nearest integer, which has the same tangent and sine of half turns.

    A 0 keeps its sign.
    """
    is_zero = b.compare("fcmp oeq", x, x.type(0.0))
    return b.select(is_zero, x, b.op("fsub", x, call("round", x)))


def _polynomial(b: FunctionText, x: LlvmValue, coefficients: Sequence[float]) -> LlvmValue:
    found = x.type(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        found = b.op("fadd", b.op("fmul", found, x), x.type(coefficient))
    return found
