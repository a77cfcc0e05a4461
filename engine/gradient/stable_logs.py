"""Stable forms of logarithms.

The forms are those that PyTensor's rewrites recognize, and parts and positive multiples of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from engine.gradient.stable_products import PARTS, determinant, exponential_form, log_of_product
from engine.gradient.written_forms import (
    argument,
    beside,
    exponent_of,
    exponents_of_sum,
    floats,
    is_number,
    is_shifted,
    log_odds,
    negated,
    one_minus,
    only,
    opposite,
    quotient,
    root_of_square,
    summed_exponent,
)
from engine.graph.apply import Apply
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Variable
from engine.scalar import arithmetic, comparison, exponential
from engine.scalar.gamma import erf, erfc, gamma
from engine.tensor.elemwise import dimshuffle
from engine.tensor.matching import DEEPEST, dtype_of, is_alike, operands_of, scalar_value, tensor_type_of
from engine.tensor.math import (
    TAIL_OF_ERFC,
    add,
    cosh,
    eq,
    gammaln,
    ge,
    gt,
    log,
    log1mexp,
    log_erfc,
    logaddexp,
    lt,
    mul,
    neg,
    power,
    softplus,
    sub,
    switch,
)
from engine.tensor.math import abs as absolute
from engine.tensor.math import minimum as lesser


def softmax_ops() -> Any:
    """Return the module of the softmax Ops.

    It is imported when it is needed: these Ops hold graphs, whose derivatives are taken of the forms
    made here.
    """
    from engine.inner import special

    return special


def made_of(x: Any, build: Callable[[Any], Any]) -> Any:
    """Return `build(x)`, or None if x is None."""
    return None if x is None else build(x)


def first_of(*found: Any) -> Any:
    """Return the first item that is not None, or None."""
    return next((form for form in found if form is not None), None)


def log_of(v: Variable, steps: int = DEEPEST) -> Any:
    """Return the stable form of log(v), or None if there is none within a depth of `steps`."""
    if not steps:
        return None
    for recognise in (_log_of_function, _log_of_sum, _log_of_part, _log_of_square, _log_of_power):
        form = recognise(v)
        if form is not None:
            return form
    return _log_of_multiple(v, steps - 1)


def _log_of_function(v: Variable) -> Any:
    """Return the form of log(exp(x)), log(expm1(x)), log(-expm1(x)), log(erfc(x)), log(sigmoid(x)),
    log(gamma(x)), log(det(x)), log(prod(x)), or of products, quotients and powers of exponentials.
    """
    x = only(v, exponential.expm1)
    if x is not None:
        return first_of(only(x, exponential.softplus), _log_expm1(x))
    minus = negated(v)
    x = None if minus is None else only(minus, exponential.expm1)
    if x is not None:
        return log1mexp(x)
    x = only(v, erfc)
    if x is not None:
        return _log_of_erfc(x)
    x = only(v, gamma)
    if x is not None:
        return switch(ge(v, 0), gammaln(x), float("nan"))
    return first_of(
        first_of(exponent_of(v), argument(v, exponential.exp)),
        made_of(exponential_form(v), exponent_of),
        made_of(log_odds(v), _log_sigmoid),
        _log_of_determinant(v),
        log_of_product(v),
    )


def _log_of_determinant(v: Variable) -> Any:
    """Return the form of log(det(x)) or log(abs(det(x))); a determinant is sign * exp(logarithm)."""
    magnitude = only(v, arithmetic.abs)
    found = determinant(v if magnitude is None else magnitude)
    if found is None:
        return None
    return found[1] if magnitude is not None else switch(ge(found[0], 0), found[1], float("nan"))


def _log_sigmoid(x: Any) -> Any:
    return neg(softplus(opposite(x)))


def _log_expm1(x: Any) -> Any:
    return add(x, log1mexp(opposite(x)))


def _log_of_erfc(x: Variable) -> Any:
    tail = TAIL_OF_ERFC[dtype_of(x)]
    return None if _is_bounded(x, comparison.minimum, lambda bound: bound <= tail) else made_of(x, log_erfc)


def _is_bounded(x: Variable, op: Any, holds: Callable[[float], bool]) -> bool:
    """Return True if `x` is the maximum or minimum of an expression and a number that makes it safe."""
    return any(is_number(v, holds) for v in operands_of(x, op) or ())


def _log_of_sum(v: Variable) -> Any:
    """Return the form of log(1 + x), log(1 - x), log(exp(x) + exp(y) + ...), log(exp(x) - exp(y)) or
    log(sum(exp(x))).
    """
    other = one_minus(v)
    if other is not None:
        return _log_of_one_minus(other)
    other = beside(v, 1, arithmetic.add)
    if other is not None:
        return log1p_of(other)
    difference = floats(v, arithmetic.sub)
    if difference is not None:
        return _log_of_difference(*difference)
    exponents = exponents_of_sum(v)
    return _log_of_reduced(v) if exponents is None else _log_of_exponentials(exponents)


def _log_of_exponentials(exponents: Sequence[Any]) -> Any:
    """Return the form of log(exp(x) + exp(y) + ...).

    The slope of log(exp(x) + exp(-x)) is tanh(x). Near 0 it is no difference of equals.
    """
    if len(exponents) != 2 or not _are_opposite(*exponents):
        return reduce(logaddexp, exponents)
    size = absolute(exponents[0])
    return switch(lt(size, 1), log(mul(2, cosh(exponents[0]))), add(size, softplus(mul(-2, size))))


def _are_opposite(first: Variable, second: Variable) -> bool:
    minus = [(negated(first), second), (negated(second), first)]
    return any(found is not None and is_alike(found, other) for found, other in minus)


def _log_of_difference(first: Variable, second: Variable) -> Any:
    x, y = exponent_of(first), exponent_of(second)
    if x is not None and is_number(second, lambda number: number == 1):
        return made_of(x, _log_expm1)
    if x is None or y is None or is_shifted([x, y]):
        return None
    # -inf - -inf would be NaN.
    return switch(eq(y, float("-inf")), x, add(x, log1mexp(sub(y, x))))


def _log_of_reduced(v: Variable) -> Any:
    found = summed_exponent(v)
    if found is None:
        return None
    x, axis, order = found
    result = softmax_ops().logsumexp(x, axis)
    return result if order is None else dimshuffle(result, order)


def _log_of_one_minus(w: Variable, steps: int = DEEPEST) -> Any:
    x = exponent_of(w)
    if x is not None:
        return log1mexp(x)
    minus = negated(w)
    if minus is not None:
        return log1p_of(minus, steps - 1)
    return first_of(made_of(only(w, erf), _log_of_erfc), made_of(log_odds(w), lambda x: neg(softplus(x))))


def log1p_of(w: Variable, steps: int = DEEPEST) -> Any:
    """Return the stable form of log(1 + w), or None if there is none within a depth of `steps`."""
    minus = negated(w)
    if minus is not None:
        return _log_of_one_minus(minus, steps) if steps else None
    return first_of(
        made_of(exponent_of(w), softplus),
        argument(w, exponential.expm1),
        made_of(only(w, erf), lambda x: log_erfc(opposite(x))),
    )


def _log_of_part(v: Variable) -> Any:
    """Return the form of the logarithm of a softmax or of its parts: the same parts of the log-softmax."""
    parts: list[Apply] = []
    while v.owner is not None and isinstance(v.owner.op, PARTS) and len(parts) < DEEPEST:
        parts.append(v.owner)
        v = v.owner.inputs[0]
    log = _log_of_softmax(v)
    for node in reversed(parts) if log is not None else ():
        log = node.op.make_node(log, *node.inputs[1:]).outputs[0]
    return log


def _log_of_softmax(v: Variable) -> Any:
    node = v.owner
    if node is None or is_user_op(node.op):
        return None
    logarithm = getattr(node.op, "logarithm", None)
    if logarithm is not None:
        return logarithm(*node.inputs)
    found = normalized(v)
    return None if found is None else softmax_ops().log_softmax(*found)


def normalized(v: Variable) -> tuple[Any, tuple[int, ...]] | None:
    """Return x and the axes if `v` is exp(x) / sum(exp(x), axes, keepdims=True); otherwise None."""
    above, below = quotient(v)
    x: Any = None if above is None else exponent_of(above)
    found = None if x is None else summed_exponent(below)
    if found is None or not is_alike(found[0], x):
        return None
    axis, ndim = found[1], tensor_type_of(x).ndim
    kept = iter(range(ndim))
    order = tuple(["x" if a in axis else next(kept) for a in range(ndim)])
    return (x, axis) if found[2] == order else None


def _log_of_square(v: Variable) -> Any:
    """Return the form of log(x**2) or log(sqrt(x))."""
    root = only(v, exponential.sqrt)
    if root is not None:
        return mul(0.5, first_of(log_of(root, 1), log(root)))
    return made_of(root_of_square(v), lambda x: mul(2, log(absolute(x))))


def _log_of_power(v: Variable) -> Any:
    """Return the form of log(x**y) for a y that is no number.

    Where x is not positive, the power stays, of numbers bounded by 0, by which it is told from what people
    write.
    """
    operands = floats(v, exponential.pow)
    if operands is None or scalar_value(operands[1]) is not None:
        return None
    x, y = operands
    if any(
        is_number(bound, lambda number: number <= 0) for bound in operands_of(x, comparison.minimum) or ()
    ):
        return None
    return switch(gt(x, 0), mul(y, log(x)), log(power(lesser(x, 0.0), y)))


def _log_of_multiple(v: Variable, steps: int) -> Any:
    """Return the form of log(c * w), log(w / c), log(c / w) for c > 0, of log(exp(x) * w), log(exp(x) / w)
    and log(w / exp(x)), or of log(sigmoid(x) / sigmoid(-x)).
    """
    operands = floats(v, arithmetic.mul)
    if operands is not None:
        return _log_of_product(operands[0], operands[1], steps)
    above, below = quotient(v)
    if below is None:
        return None
    if above is None:
        return neg(_plain_log(below, steps))
    if is_number(below, _is_positive):
        return made_of(log_of(above, steps), lambda log_above: sub(log_above, log(below)))
    if is_number(above, _is_positive):
        return sub(log(above), _plain_log(below, steps))
    x, y = exponent_of(above), exponent_of(below)
    if x is not None or y is not None:
        return sub(_plain_log(above, steps) if x is None else x, _plain_log(below, steps) if y is None else y)
    return odds_of(above, below)


def _plain_log(v: Variable, steps: int) -> Any:
    return first_of(log_of(v, steps), log(v))


def _log_of_product(first: Variable, second: Variable, steps: int) -> Any:
    if is_number(first, _is_positive):
        return made_of(log_of(second, steps), lambda log_second: add(log_second, log(first)))
    if is_number(second, _is_positive):
        return made_of(log_of(first, steps), lambda log_first: add(log_first, log(second)))
    return _log_of_exponential_product([*_factors(first, steps), *_factors(second, steps)], steps)


def _log_of_exponential_product(factors: Sequence[Variable], steps: int) -> Any:
    """Return the exponents of exponentials among `factors` plus the logarithm of the product of the rest."""
    exponents = [exponent_of(factor) for factor in factors]
    rest = [factor for factor, x in zip(factors, exponents, strict=True) if x is None]
    if len(rest) == len(factors):
        return None
    terms = [x for x in exponents if x is not None]
    if rest:
        place = 0 if rest[0] is factors[0] else len(terms)
        terms.insert(place, _plain_log(rest[0] if len(rest) == 1 else mul(*rest), steps))
    return add(*terms)


def _factors(v: Variable, steps: int) -> list[Any]:
    """Return the factors of `v`, a product of products."""
    operands = floats(v, arithmetic.mul) if steps else None
    if operands is None:
        return [v]
    return [factor for operand in operands for factor in _factors(operand, steps - 1)]


def _is_positive(number: float) -> bool:
    return 0 < number < float("inf")


def odds_of(above: Variable, below: Variable) -> Any:
    """Return x if `above` is sigmoid(x) and `below` is 1 - sigmoid(x), in any notation; otherwise None."""
    first = log_odds(above)
    second = None if first is None else log_odds(below)
    if second is None:
        return None
    return first if is_alike(negated(second), first) or is_alike(negated(first), second) else None
