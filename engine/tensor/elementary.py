"""Elementwise functions that are a few of engine.tensor.math: roundings, angles, parts of numbers, and
special functions given by others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import scalar
from engine.scalar.promotion import COMPLEX, FLOATS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros_like
from engine.tensor.elemwise import apply_elemwise, cast
from engine.tensor.elemwise import conjugate as of_complex
from engine.tensor.math import abs as absolute
from engine.tensor.math import (
    add,
    arctan2,
    complex,
    cos,
    eq,
    exp,
    floor_div,
    gamma,
    gammainc,
    gammaincc,
    ge,
    identity,
    isnan_,
    ive,
    kve,
    maximum,
    minimum,
    mod,
    mul,
    neg,
    neq,
    round_half_to_even,
    sign,
    sin,
    softplus,
    sqr,
    sub,
    switch,
    true_div,
    trunc,
)

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

square, sgn, int_div, log1pexp = sqr, sign, floor_div, softplus
tensor_copy = identity

_DEGREE = math.pi / 180
_ROUNDINGS = ("half_to_even", "half_away_from_zero")


def variadic_add(*terms: Any) -> Any:
    """Return the sum of any number of `terms`: 0 of none."""
    return add(*terms) if terms else as_tensor_variable(0)


def variadic_mul(*factors: Any) -> Any:
    """Return the product of any number of `factors`: 1 of none."""
    return mul(*factors) if factors else as_tensor_variable(1)


def round_half_away_from_zero(x: Any) -> TensorVariable:
    """Return `x` rounded to whole numbers, halves away from zero."""
    x = as_tensor_variable(x)
    whole = trunc(x)
    return switch(ge(absolute(sub(x, whole)), 0.5), add(whole, sign(x)), whole)


def round(a: Any, mode: str | None = None) -> TensorVariable:
    """Return `a` rounded to whole numbers as `mode` says: "half_to_even", which is the default, or
    "half_away_from_zero". Raises NotImplementedError for another mode.
    """
    if mode not in (None, *_ROUNDINGS):
        raise NotImplementedError(f"Rounding: mode is {mode!r}; it must be one of {', '.join(_ROUNDINGS)}")
    return round_half_away_from_zero(a) if mode == "half_away_from_zero" else round_half_to_even(a)


def iround(a: Any, mode: str | None = None) -> TensorVariable:
    """Return `round(a, mode)` as int64."""
    return cast(round(a, mode), "int64")


def deg2rad(a: Any) -> TensorVariable:
    """Return degrees as radians."""
    return mul(a, _DEGREE)


def rad2deg(a: Any) -> TensorVariable:
    """Return radians as degrees."""
    return mul(a, 180 / math.pi)


def divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the quotient, rounded down, and the remainder, which has the sign of `y`."""
    return floor_div(x, y), mod(x, y)


def ceil_intdiv(a: Any, b: Any) -> TensorVariable:
    """Return the quotient of two integers, rounded up."""
    quotient = floor_div(a, b)
    return add(quotient, cast(neq(mod(a, b), 0), quotient.type.dtype))


def real(x: Any) -> TensorVariable:
    """Return the real part of `x`: `x` itself if it is not complex."""
    x = as_tensor_variable(x)
    return apply_elemwise(scalar.real, x) if x.type.dtype in COMPLEX else x


def conj(x: Any) -> TensorVariable:
    """Return the complex conjugate of `x`: `x` itself if it is not complex."""
    return of_complex(as_tensor_variable(x))


conjugate = conj


def imag(x: Any) -> TensorVariable:
    """Return the imaginary part of `x`: zeros if it is not complex."""
    x = as_tensor_variable(x)
    return apply_elemwise(scalar.imag, x) if x.type.dtype in COMPLEX else zeros_like(x)


def angle(z: Any) -> TensorVariable:
    """Return the angle of `z` in the complex plane, between -pi and pi; of real numbers 0 or pi."""
    z = as_tensor_variable(z)
    return arctan2(imag(z), real(z))


def complex_from_polar(abs: Any, angle: Any) -> TensorVariable:
    """Return the complex numbers of these magnitudes and angles."""
    return complex(mul(abs, cos(angle)), mul(abs, sin(angle)))


def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> TensorVariable:
    """Return `x` with NaNs and infinities replaced, by default by 0 and the largest and lowest number."""
    x = as_tensor_variable(x)
    if x.type.dtype in COMPLEX:
        return complex(*[nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x))])
    if x.type.dtype not in FLOATS:
        return x
    limits = np.finfo(x.type.dtype)
    x = switch(isnan_(x), nan, x)
    x = switch(eq(x, np.inf), float(limits.max) if posinf is None else posinf, x)
    return switch(eq(x, -np.inf), float(limits.min) if neginf is None else neginf, x)


def smallest(*args: Any) -> TensorVariable:
    """Return the smallest of the arguments, element by element."""
    return _extreme(minimum, args)


def largest(*args: Any) -> TensorVariable:
    """Return the largest of the arguments, element by element."""
    return _extreme(maximum, args)


def _extreme(choose: Any, args: tuple[Any, ...]) -> Any:
    if not args:
        raise TypeError("Taking an extreme of arguments: none was given")
    found = as_tensor_variable(args[0])
    for other in args[1:]:
        found = choose(found, other)
    return found


def gammau(k: Any, x: Any) -> TensorVariable:
    """Return the upper incomplete gamma function, not regularized."""
    return mul(gammaincc(k, x), gamma(k))


def gammal(k: Any, x: Any) -> TensorVariable:
    """Return the lower incomplete gamma function, not regularized."""
    return mul(gammainc(k, x), gamma(k))


def chi2sf(x: Any, k: Any) -> TensorVariable:
    """Return the probability that a chi-squared variable with `k` degrees of freedom is above `x`."""
    return gammaincc(true_div(k, 2), true_div(x, 2))


def kv(v: Any, x: Any) -> TensorVariable:
    """Return the modified Bessel function of the second kind of real order `v`."""
    return mul(kve(v, x), exp(neg(x)))


kn = kv


def iv(v: Any, x: Any) -> TensorVariable:
    """Return the modified Bessel function of the first kind of real order `v`."""
    return mul(ive(v, x), exp(absolute(x)))
