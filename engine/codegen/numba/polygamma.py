"""LLVM IR of psi and tri_gamma, the first two derivatives of the logarithm of the gamma function.

For a number y above 0, the recurrence leads to z = y + 10, where the asymptotic series is exact to the
last digits (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964: 6.3.6, 6.3.18, 6.4.6 and
6.4.12). For other numbers, the reflection formula (6.3.7, 6.4.7) is used, with the angle reduced to
half a turn. All of it is in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

Value = Any
Call = Callable[..., Value]
"""`call(name, x)` of the function `name` of LLVM or libm."""

_SHIFT = 10
# Bernoulli's numbers over the factors of the two series.
_PSI_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRI_GAMMA_TERMS = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def emit_psi(b: Any, x: Value, call: Call) -> Value:
    """Emit the derivative of the logarithm of gamma; NaN for negative integers."""
    y, is_reflected = _reflected(b, x)
    found, z = x.type(0.0), b.fadd(y, x.type(_SHIFT))
    for number in reversed(range(_SHIFT)):
        found = b.fsub(found, b.fdiv(x.type(1.0), b.fadd(y, x.type(float(number)))))
    inverse = b.fdiv(x.type(1.0), z)
    square = b.fmul(inverse, inverse)
    series = b.fadd(b.fmul(inverse, x.type(0.5)), b.fmul(_polynomial(b, square, _PSI_TERMS), square))
    found = b.fadd(found, b.fsub(call("log", z), series))
    part = _fraction(b, x, call)
    angle = b.fmul(part, x.type(math.pi))
    reflected = b.fsub(found, b.fdiv(x.type(math.pi), call("tan", angle)))
    is_pole = b.and_(b.fcmp_ordered("==", part, x.type(0.0)), b.fcmp_ordered("<", x, x.type(0.0)))
    return b.select(is_reflected, b.select(is_pole, x.type(math.nan), reflected), found)


def emit_tri_gamma(b: Any, x: Value, call: Call) -> Value:
    """Emit the derivative of psi; infinite for integers not above 0 and, as in SciPy, for -inf."""
    y, is_reflected = _reflected(b, x)
    found, z = x.type(0.0), b.fadd(y, x.type(_SHIFT))
    for number in reversed(range(_SHIFT)):
        inverse = b.fdiv(x.type(1.0), b.fadd(y, x.type(float(number))))
        found = b.fadd(found, b.fmul(inverse, inverse))
    inverse = b.fdiv(x.type(1.0), z)
    square = b.fmul(inverse, inverse)
    series = b.fmul(_polynomial(b, square, _TRI_GAMMA_TERMS), b.fmul(square, inverse))
    tail = b.fadd(b.fadd(inverse, b.fmul(square, x.type(0.5))), series)
    found = b.fadd(tail, found)
    ratio = b.fdiv(x.type(math.pi), call("sin", b.fmul(_fraction(b, x, call), x.type(math.pi))))
    is_smallest = b.fcmp_ordered("==", x, x.type(-math.inf))
    reflected = b.select(is_smallest, x.type(math.inf), b.fsub(b.fmul(ratio, ratio), found))
    return b.select(is_reflected, reflected, found)


def in_float64(emit: Callable[[Any, Value, Call], Value], b: Any, x: Value, call: Call) -> Value:
    """Return the value of `emit`, computed in float64, in the type of `x`."""
    double = ir.DoubleType()
    if x.type == double:
        return emit(b, x, call)
    return b.fptrunc(emit(b, b.fpext(x, double), call), x.type)


def _reflected(b: Any, x: Value) -> tuple[Value, Value]:
    """Return the positive number to compute with, and a bool: the reflection formula is needed."""
    is_reflected = b.fcmp_ordered("<=", x, x.type(0.0))
    return b.select(is_reflected, b.fsub(x.type(1.0), x), x), is_reflected


def _fraction(b: Any, x: Value, call: Call) -> Value:
    """Return `x` minus the nearest integer: the tangent and sine of its half turns are those of `x`.

    A 0 keeps its sign.
    """
    is_zero = b.fcmp_ordered("==", x, x.type(0.0))
    return b.select(is_zero, x, b.fsub(x, call("round", x)))


def _polynomial(b: Any, x: Value, coefficients: Sequence[float]) -> Value:
    found = x.type(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        found = b.fadd(b.fmul(found, x), x.type(coefficient))
    return found
