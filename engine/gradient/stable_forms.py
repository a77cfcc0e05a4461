"""Stable forms: other expressions for the same elementwise values, which neither overflow nor cancel.

`stable_form` recognizes what people write, as log(1 - exp(x)) or 1 / (1 + exp(-x)), before and
after rewriting. Derivatives are taken of the stable form, so that they are as accurate as the
values; rewrites replace the expression by it. A stable form has no stable form itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from engine.gradient.stable_inverses import UNDOING, inverse_of_inverse, is_not_negative
from engine.gradient.stable_logs import (
    first_of,
    log1p_of,
    log_of,
    made_of,
    normalized,
    odds_of,
    softmax_ops,
)
from engine.gradient.stable_products import (
    cancelled,
    determinant,
    exponential_power,
    exponential_product,
    exponential_quotient,
    exponential_share,
    over_erfc,
    reciprocal_of_sigmoid,
    without_exponential,
)
from engine.gradient.written_forms import (
    argument,
    base_and_exponent,
    floats,
    is_number,
    one_plus_exp,
    opposite,
    quotient,
    root_of_square,
)
from engine.graph.apply import Apply
from engine.graph.variables import Variable
from engine.scalar import arithmetic, exponential
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import Elemwise, cast
from engine.tensor.matching import dtype_of, scalar_value
from engine.tensor.math import abs as absolute
from engine.tensor.math import exp, mul, sigmoid, sign, switch, true_div


def stable_form(node: Apply) -> Any:
    """Return the stable form of the output of `node`, or None if it has none.

    All operations must compute in one float dtype, so that nothing is rounded or wraps in between.
    """
    if type(node.op) is not Elemwise:
        return None
    recognise = _FORMS.get(type(node.op.scalar_op), inverse_of_inverse)
    if not isinstance(node.op.scalar_op, STABILIZED_TYPES):
        return None
    output = node.outputs[0]
    if dtype_of(output) not in COMPILED_FLOATS or any(dtype_of(v) != dtype_of(output) for v in node.inputs):
        return None
    form = recognise(output)
    if form is not None and dtype_of(form) != dtype_of(output):  # x of log(exp(x)) may be of whole numbers
        form = cast(form, dtype_of(output))
    return form if form is not None and output.type.is_super(form.type) else None


def leaves_of(
    form: Variable, node: Apply, nodes: Collection[Apply], asked: Collection[Variable]
) -> list[Variable] | None:
    """Return the variables from which the stable `form` of `node` is computed in the graph of `nodes`.

    Returns None if a variable in `asked` lies between these and `node`, where the form skips it. An input
    of the graph that the form does not need cancels: its derivative is 0.
    """
    leaves = list(_upwards([form], lambda v: v.owner is None or v.owner in nodes or v in asked))
    skipped = next(_upwards(node.inputs, lambda v: v in asked and v.owner is not None, leaves), None)
    return leaves if skipped is None else None


def _upwards(
    variables: Iterable[Variable], is_found: Callable[[Variable], bool], ends: Collection[Variable] = ()
) -> Iterator[Variable]:
    """Yield the first variables found on each way from `variables` to their ancestors, stopping at `ends`."""
    waiting = list(variables)[::-1]
    seen: set[Variable] = set()
    while waiting:
        variable = waiting.pop()
        if variable in seen or variable in ends:
            continue
        seen.add(variable)
        if is_found(variable):
            yield variable
        elif variable.owner is not None:
            waiting.extend(variable.owner.inputs[::-1])


def _log(v: Variable) -> Any:
    return log_of(_argument(v))


def _log1p(v: Variable) -> Any:
    return log1p_of(_argument(v))


def _argument(v: Variable) -> Variable:
    assert v.owner is not None
    return v.owner.inputs[0]


def _quotient(v: Variable) -> Any:
    """Return the form of 1 / (1 / x), c / (1 + exp(x)),
    c * exp(x) / (1 + exp(x)), c * exp(x) / ((1 + exp(x)) * y), sigmoid(x) / (1 - sigmoid(x)),
    exp(x) / sum(exp(x)), or one of stable_products.
    """
    above, below = quotient(v)
    if below is None:
        return None
    if above is None and quotient(below)[0] is None and quotient(below)[1] is not None:
        return quotient(below)[1]
    x = one_plus_exp(below)
    if x is not None:
        return _multiple_of_sigmoid(above, x)
    for form in _QUOTIENTS:
        found = form(above, below)
        if found is not None:
            return found
    if above is None:
        return None
    found = normalized(v)
    if found is not None:
        return softmax_ops().softmax(*found)
    return made_of(odds_of(above, below), exp)


def _multiple_of_sigmoid(above: Variable | None, x: Variable) -> Any:
    """Return the form of `above` / (1 + exp(x))."""
    if above is None:
        return sigmoid(opposite(x))
    found = without_exponential(above, x)
    return mul(above, sigmoid(opposite(x))) if found is None else _times(found[0], sigmoid(x))


def _multiple_of_sigmoids(above: Variable | None, below: Variable) -> Any:
    """Return the form of `above` / (y * (1 + exp(x))) where exp(x) is a factor of `above`, or None."""
    root = root_of_square(below)
    for factor, other in _orders(below) if root is None else [(root, root)]:
        x = one_plus_exp(factor)
        found = None if above is None or x is None else without_exponential(above, x)
        if found is not None:
            product, y = _times(found[0], sigmoid(x)), one_plus_exp(other)
            return true_div(product, other) if y is None else _multiple_of_sigmoid(product, y)
    return None


def _times(factor: Variable | None, other: Variable) -> Any:
    return other if factor is None else mul(factor, other)


def _orders(product: Variable) -> list[tuple[Variable, Variable]]:
    operands = floats(product, arithmetic.mul)
    return [] if operands is None else [(operands[0], operands[1]), (operands[1], operands[0])]


_QUOTIENTS = (
    exponential_quotient,
    exponential_share,
    reciprocal_of_sigmoid,
    over_erfc,
    cancelled,
    _multiple_of_sigmoids,
)


def _sqrt(v: Variable) -> Any:
    """Return the form of sqrt(x**2) or sqrt(exp(x))."""
    x = _argument(v)
    return first_of(made_of(root_of_square(x), absolute), exponential_power(x, 0.5))


def _sqr(v: Variable) -> Any:
    """Return the form of sqrt(x)**2 or exp(x)**2."""
    power = exponential_power(_argument(v), 2.0)
    if power is not None:
        return power
    base, exponent = base_and_exponent(_argument(v))
    x = first_of(base if exponent == 0.5 else None, argument(_argument(v), exponential.sqrt))
    return made_of(x, lambda x: switch(is_not_negative(x), x, float("nan")))


def _pow(v: Variable) -> Any:
    """Return the form of (1 + exp(x))**-1, (x**2)**0.5, sqrt(x)**2 or exp(x)**4."""
    assert v.owner is not None
    base, exponent = v.owner.inputs[0], scalar_value(v.owner.inputs[1])
    if exponent is None:
        return None
    if exponent == -1:
        return _quotient(v)
    return _sqrt(v) if exponent == 0.5 else _sqr(v) if exponent == 2 else exponential_power(base, exponent)


def _sign(v: Variable) -> Any:
    """Return the form of the sign of a determinant, or of c * x or x / c, which may underflow."""
    x = _argument(v)
    found = determinant(x)
    if found is not None:
        return found[0]
    for factor, other in _orders(x):
        if is_number(factor, lambda number: 0 < abs(number) < float("inf")):
            return mul(sign(factor), sign(other))
    above, below = quotient(x)
    if above is None or below is None or not is_number(below, lambda number: 0 < abs(number) < float("inf")):
        return None
    return mul(sign(below), sign(above))


_FORMS: dict[type[ScalarOp], Callable[[Variable], Any]] = {
    exponential.Log: _log,
    exponential.Log1p: _log1p,
    arithmetic.TrueDiv: _quotient,
    arithmetic.Reciprocal: _quotient,
    arithmetic.Mul: exponential_product,
    arithmetic.Sqr: _sqr,
    arithmetic.Sign: _sign,
    exponential.Sqrt: _sqrt,
    exponential.Pow: _pow,
}

STABILIZED_TYPES = tuple(dict.fromkeys((*_FORMS, *UNDOING)))
STABILIZED = tuple([type() for type in STABILIZED_TYPES])
"""The operations that may have a stable form."""
