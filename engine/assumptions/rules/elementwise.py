"""Properties of matrices computed element by element."""

from __future__ import annotations

from engine.assumptions.core import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    POSITIVE_DEFINITE,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
)
from engine.assumptions.rules.masks import COMPARISONS, is_within, is_zero
from engine.assumptions.rules.rule import (
    Facts,
    RuleTable,
    core_of,
    has_square_matrices,
    inputs_of,
    is_whole_matrix,
    rules_for,
    true_if,
)
from engine.graph.variables import Variable
from engine.scalar import abs as absolute
from engine.scalar import (
    add,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    ceil,
    erf,
    expm1,
    floor,
    log1p,
    mul,
    neg,
    pow,
    sign,
    sin,
    sinh,
    sqr,
    sqrt,
    sub,
    switch,
    tan,
    tanh,
    true_div,
    trunc,
)
from engine.scalar.conversion import Cast
from engine.tensor.elemwise import Elemwise
from engine.tensor.matching import tensor_type_of
from engine.tensor.signs import is_positive

_KEEP_ZERO = (
    *(neg, absolute, sqr, sqrt, sign, floor, ceil, trunc, expm1, log1p, erf),
    *(sin, tan, arcsin, arctan, sinh, tanh, arcsinh, arctanh),
)
_TRIANGLES = (DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR)


def _zeros_stay(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    """Return that elements which must be 0 stay so."""
    op, inputs = core_of(variable).scalar_op, inputs_of(variable)

    def has_it(v: Variable) -> bool:
        return is_whole_matrix(v) and facts.check(v, key)

    if op == mul:
        return true_if(any(has_it(v) for v in inputs))
    if op in (add, sub):
        return true_if(all(has_it(v) for v in inputs))
    if op == true_div:
        # A matrix may have zeros where the first has them: 0 / 0.
        return true_if(has_it(inputs[0]) and not is_whole_matrix(inputs[1]))
    if op == pow:
        return true_if(has_it(inputs[0]) and is_positive(inputs[1]))
    if op == switch:
        mask, chosen, other = inputs
        is_zero_outside = has_it(other) or is_zero(other)
        return true_if(is_zero_outside and (has_it(mask) or has_it(chosen)))
    if op in COMPARISONS:
        return true_if(has_square_matrices(variable) and is_within(variable, key))
    return true_if((op in _KEEP_ZERO or isinstance(op, Cast)) and has_it(inputs[0]))


def _symmetry_stays(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    if tensor_type_of(variable).ndim < 2:
        return FactState.UNKNOWN
    return true_if(all(_is_symmetric(facts, v) for v in inputs_of(variable)))


def _is_symmetric(facts: Facts, v: Variable) -> bool:
    """Return True if `v` is one number for each matrix, or a symmetric matrix."""
    if all(tensor_type_of(v).broadcastable[-2:]):
        return True
    return is_whole_matrix(v) and facts.check(v, SYMMETRIC)


def _positive_definite(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    """Return that sums and positive multiples of positive definite matrices are so."""
    op, inputs = core_of(variable).scalar_op, inputs_of(variable)
    are = [is_whole_matrix(v) and facts.check(v, key) for v in inputs]
    if op == add:
        return true_if(all(are))
    if op != mul:
        return FactState.UNKNOWN
    # The elementwise product of two is positive definite too (Schur).
    return true_if(
        any(are)
        and all(
            one or (all(tensor_type_of(v).broadcastable[-2:]) and is_positive(v))
            for one, v in zip(are, inputs, strict=True)
        )
    )


RULES: RuleTable = {
    **rules_for(_TRIANGLES, [Elemwise], _zeros_stay),
    **rules_for((SYMMETRIC,), [Elemwise], _symmetry_stays),
    **rules_for((POSITIVE_DEFINITE,), [Elemwise], _positive_definite),
}
