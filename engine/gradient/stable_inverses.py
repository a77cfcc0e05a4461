"""Stable forms of functions of their inverses: exp(log(x)), tanh(arctanh(x)), arcsinh(sinh(x)) and the like.

What is written rounds twice, and overflows or saturates where the result does not: arctanh(tanh(40)) is
infinite. The forms are NaN where the inner function is.

Where something reads it, exp(softplus(x)) stays (passes/exponentials.py): 1 + exp(x) would hide the
exponential from exp(y) / (1 + exp(y)), and overflow there.
So does expm1(log1mexp(x)): a logarithm of 1 plus -exp(x) would have no digits left where x is next to 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.gradient.stable_logs import log1p_of, log_of
from engine.gradient.written_forms import argument
from engine.graph.variables import Variable
from engine.scalar import exponential, trigonometric
from engine.scalar.op import ScalarOp
from engine.tensor.elemwise import Elemwise, cast
from engine.tensor.matching import dtype_of
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, exp, ge, le, log1p, neg, sub, switch

Form = Callable[[Any], Any]


def _where(holds: Callable[[Any], Any], form: Form) -> Form:
    return lambda x: switch(holds(x), form(x), float("nan"))


def _same(x: Any) -> Any:
    return x


_ZERO = np.int8(0)
"""Compared with x as it is, in PyTensor's dtype."""


def is_not_negative(x: Any) -> Any:
    """Return whether x >= 0."""
    return ge(x, _ZERO)


def _is_not_positive(x: Any) -> Any:
    return le(x, _ZERO)


def _is_not_below_minus_one(x: Any) -> Any:
    return ge(x, -1)


def _log1p(w: Any, x: Any) -> Any:
    """Return log(1 + w), where it is written by log(x), in a form of its own if there is one.

    Without one, None if log(x) has a form: softplus(log(1 + exp(y))) overflows as log1p(1 + exp(y)).
    """
    found = log1p_of(w)
    if found is None and log_of(x) is not None:
        return None
    return switch(is_not_negative(x), log1p(w) if found is None else found, float("nan"))


_INVERSES: dict[ScalarOp, tuple[tuple[ScalarOp, Form], ...]] = {
    exponential.exp: (
        (exponential.log, _where(is_not_negative, _same)),
        (exponential.log1p, _where(_is_not_below_minus_one, lambda x: add(1.0, x))),
    ),
    exponential.expm1: (
        (exponential.softplus, exp),
        (exponential.log, _where(is_not_negative, lambda x: sub(x, 1.0))),
        (exponential.log1p, _where(_is_not_below_minus_one, _same)),
    ),
    exponential.softplus: ((exponential.log, lambda x: _log1p(x, x)),),
    exponential.log1mexp: (
        (exponential.log, lambda x: _log1p(neg(x), x)),
        (exponential.log1mexp, _where(_is_not_positive, _same)),
    ),
    trigonometric.sinh: ((trigonometric.arcsinh, _same),),
    trigonometric.arcsinh: ((trigonometric.sinh, _same),),
    trigonometric.cosh: ((trigonometric.arccosh, _where(lambda x: ge(x, 1), _same)),),
    trigonometric.arccosh: ((trigonometric.cosh, absolute),),
    trigonometric.tanh: ((trigonometric.arctanh, _where(lambda x: le(absolute(x), 1), _same)),),
    trigonometric.arctanh: ((trigonometric.tanh, _same),),
}

UNDOING = tuple([type(op) for op in _INVERSES])
"""The operations whose argument may be their inverse."""


def inverse_of_inverse(v: Variable) -> Any:
    """Return the form of `v`, a function of its inverse, or None."""
    assert v.owner is not None
    assert isinstance(v.owner.op, Elemwise)
    for inner, form in _INVERSES.get(v.owner.op.scalar_op, ()):
        x = argument(v.owner.inputs[0], inner)
        if x is not None:
            return form(cast(x, dtype_of(v)))
    return None
