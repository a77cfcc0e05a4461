"""Derivatives by parameters as functions of numbers, under PyTensor's names."""

from __future__ import annotations

from typing import Any

from engine.inner.parameter_slopes import parameter_slope
from engine.scalar.op import apply_scalar_op, as_scalar


def gammainc_grad(k: Any, x: Any) -> Any:
    """Return the derivative of gammainc(k, x) by k, a float64 number."""
    return _slope("gammainc", 0, k, x)


def gammaincc_grad(k: Any, x: Any) -> Any:
    """Return the derivative of gammaincc(k, x) by k, a float64 number."""
    return _slope("gammaincc", 0, k, x)


def betainc_grad(p: Any, q: Any, x: Any, wrtp: bool) -> Any:
    """Return the derivative of betainc(p, q, x) by p, or by q without `wrtp`, a float64 number."""
    return _slope("betainc", 0 if wrtp else 1, p, q, x)


def _slope(name: str, index: int, *arguments: Any) -> Any:
    slope = parameter_slope(name, index)
    assert slope is not None
    return slope(apply_scalar_op, None, *[as_scalar(argument) for argument in arguments])
