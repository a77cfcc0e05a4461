"""Comparisons with tolerance, tests for infinities and NaN, and numpy's names of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.scalar.promotion import INEXACT
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import full, ones_like
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, and_, eq, ge, gt, invert, isinf_, isnan_, le, lt, mul, neq, or_, sub, xor
from engine.tensor.quantifiers import all as all_over

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

equal, not_equal, less, less_equal, greater, greater_equal = eq, neq, lt, le, gt, ge
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = and_, or_, xor, invert


def logical_and(x: Any, y: Any) -> TensorVariable:
    """Return True where both are not 0."""
    return and_(_is_true(x), _is_true(y))


def logical_or(x: Any, y: Any) -> TensorVariable:
    """Return True where one of them, or both, are not 0."""
    return or_(_is_true(x), _is_true(y))


def logical_xor(x: Any, y: Any) -> TensorVariable:
    """Return True where one of them alone is not 0."""
    return xor(_is_true(x), _is_true(y))


def logical_not(x: Any) -> TensorVariable:
    """Return True where `x` is 0."""
    return invert(_is_true(x))


def _is_true(x: Any) -> Any:
    x = as_tensor_variable(x)
    return x if x.type.dtype == "bool" else neq(x, 0)


def isnan(a: Any) -> TensorVariable:
    """Return True for each element that is NaN; no bool or integer is, and none is looked at."""
    a = as_tensor_variable(a)
    return isnan_(a) if a.type.dtype in INEXACT else full(a.shape, False)


def isinf(a: Any) -> TensorVariable:
    """Return True for each element that is infinite; no bool or integer is, and none is looked at."""
    a = as_tensor_variable(a)
    return isinf_(a) if a.type.dtype in INEXACT else full(a.shape, False)


def isfinite(a: Any) -> TensorVariable:
    """Return True for each element that is neither infinite nor NaN."""
    a = as_tensor_variable(a)
    if a.type.dtype not in INEXACT:
        return ones_like(a, "bool")
    return and_(invert(isnan_(a)), invert(isinf_(a)))


def isposinf(x: Any) -> TensorVariable:
    """Return True for each element that is positive infinity."""
    return eq(x, np.inf)


def isneginf(x: Any) -> TensorVariable:
    """Return True for each element that is negative infinity."""
    return eq(x, -np.inf)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> TensorVariable:
    """Return True where `a` differs from `b` by no more than `atol + rtol * abs(b)`, or both are the same
    infinity; with `equal_nan` also where both are NaN.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    near = le(absolute(sub(a, b)), add(atol, mul(rtol, absolute(b))))
    found = or_(and_(near, isfinite(b)), eq(a, b))
    return or_(found, and_(isnan(a), isnan(b))) if equal_nan else found


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> TensorVariable:
    """Return a 0-d bool: True if `isclose` is for all elements."""
    return all_over(isclose(a, b, rtol, atol, equal_nan))


def values_eq_approx_always_true(a: object, b: object) -> bool:
    """Return True: for values of which no comparison tells whether they are right, as draws."""
    return True
