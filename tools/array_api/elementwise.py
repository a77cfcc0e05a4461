"""The elementwise functions of the standard."""

from __future__ import annotations

from typing import Any

import engine.tensor as pt
from engine.scalar.promotion import COMPLEX


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """Return `x` limited to the range from `min` to `max`, in its dtype; None is no limit."""
    limited = x if min is None else pt.maximum(x, min)
    limited = limited if max is None else pt.minimum(limited, max)
    return pt.cast(limited, x.dtype) if limited is not x else pt.tensor_copy(x)


def positive(x: Any) -> Any:
    """Return `x`."""
    return pt.tensor_copy(x)


def real(x: Any) -> Any:
    """Return the real parts of `x`, a copy."""
    return pt.real(x) if x.dtype in COMPLEX else positive(x)


def conj(x: Any) -> Any:
    """Return the conjugates of `x`, a copy."""
    return pt.conj(x) if x.dtype in COMPLEX else positive(x)


_RENAMED = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "divide": "true_div",
    "floor_divide": "floor_div",
    "multiply": "mul",
    "negative": "neg",
    "remainder": "mod",
    "subtract": "sub",
}

_SAME = (
    "abs add bitwise_and bitwise_or bitwise_xor ceil copysign cos cosh equal exp expm1 floor greater "
    "greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp "
    "logical_and logical_not logical_or logical_xor maximum minimum nextafter not_equal pow reciprocal "
    "round sign signbit sin sinh square sqrt tan tanh trunc"
).split()

FUNCTIONS = {
    **{name: getattr(pt, name) for name in _SAME},
    **{name: getattr(pt, other) for name, other in _RENAMED.items()},
    "clip": clip,
    "conj": conj,
    "positive": positive,
    "real": real,
}
"""The functions by their names."""
