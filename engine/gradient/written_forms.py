"""Recognition of expressions in any notation: -x, 1 - x, quotients, squares, sigmoids and sums of
exponentials.

An expression with the largest exponent subtracted does not overflow and is not recognized. So the
inner graphs of Softmax and the like are not taken for these Ops themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from engine.graph.variables import Variable
from engine.scalar import arithmetic, comparison, conversion, exponential
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import DISCRETE
from engine.tensor.elemwise import DimShuffle, Elemwise, elemwise
from engine.tensor.matching import DEEPEST, dtype_of, is_alike, operands_of, scalar_value
from engine.tensor.math import neg
from engine.tensor.reduction import Max, Sum


def floats(v: Variable, op: ScalarOp) -> Any:
    """Return the operands if `v` is `op` of operands that all have its dtype; otherwise None."""
    operands = operands_of(v, op)
    if operands is None or any(dtype_of(operand) != dtype_of(v) for operand in operands):
        return None
    return operands


def only(v: Variable, op: ScalarOp) -> Any:
    """Return x if `v` is `op` of x and has its dtype; otherwise None."""
    operands = floats(v, op)
    return None if operands is None else operands[0]


def argument(v: Variable, op: ScalarOp) -> Any:
    """Return x if `v` is `op` of x, which has its dtype or is of whole numbers; otherwise None."""
    operands = operands_of(v, op)
    if operands is None or dtype_of(operands[0]) not in (dtype_of(v), *DISCRETE):
        return None
    return operands[0]


def beside(v: Variable, number: float, op: ScalarOp) -> Any:
    """Return x if `v` is `op` of `number` and x, in either order; otherwise None."""
    operands = floats(v, op)
    for one, other in () if operands is None else (operands, operands[::-1]):
        if scalar_value(one) == number:
            return other
    return None


def opposite(x: Any) -> Any:
    """Return -x as a new expression; y if x is -y."""
    negated = only(x, arithmetic.neg)
    return neg(x) if negated is None else negated


def negated(v: Variable) -> Any:
    """Return x if `v` is -x, -1 * x or 0 - x; otherwise None."""
    found = only(v, arithmetic.neg)
    if found is None:
        found = beside(v, -1, arithmetic.mul)
    if found is None:
        difference = floats(v, arithmetic.sub)
        found = difference[1] if difference is not None and scalar_value(difference[0]) == 0 else None
    return found


def one_minus(v: Variable) -> Any:
    """Return x if `v` is 1 - x; otherwise None."""
    difference = floats(v, arithmetic.sub)
    if difference is not None:
        return difference[1] if scalar_value(difference[0]) == 1 else None
    other = beside(v, 1, arithmetic.add)
    return None if other is None else negated(other)


def quotient(v: Variable) -> tuple[Any, Any]:
    """Return the numerator (None for 1) and the denominator (None if `v` is no quotient) of `v`."""
    operands = floats(v, arithmetic.true_div)
    if operands is not None:
        return (None if scalar_value(operands[0]) == 1 else operands[0]), operands[1]
    reciprocal = only(v, arithmetic.reciprocal)
    if reciprocal is not None:
        return None, reciprocal
    operands = floats(v, exponential.pow)
    return None, operands[0] if operands is not None and scalar_value(operands[1]) == -1 else None


def one_plus_exp(v: Variable | None) -> Any:
    """Return x if `v` is 1 + exp(x); otherwise None."""
    added = None if v is None else beside(v, 1, arithmetic.add)
    return None if added is None else exponent_of(added)


def log_odds(v: Variable, steps: int = DEEPEST) -> Any:
    """Return x if `v` is 1 / (1 + exp(-x)) in any notation, to a depth of `steps`; otherwise None."""
    found = only(v, exponential.sigmoid)
    if found is not None:
        return found
    other = one_minus(v)
    if other is not None:
        found = log_odds(other, steps - 1) if steps else None
        return None if found is None else opposite(found)
    above, below = quotient(v)
    x = one_plus_exp(below)
    if x is None:
        return None
    if above is None:
        return opposite(x)
    return x if is_alike(exponent_of(above), x) else None


def root_of_square(v: Variable) -> Any:
    """Return x if `v` is the square of x; otherwise None."""
    root = only(v, arithmetic.sqr)
    if root is not None:
        return root
    operands = floats(v, exponential.pow)
    if operands is not None:
        return operands[0] if scalar_value(operands[1]) == 2 else None
    operands = floats(v, arithmetic.mul)
    return operands[0] if operands is not None and is_alike(*operands) else None


def base_and_exponent(v: Variable) -> tuple[Any, float]:
    """Return x and k if `v` is x**k for a number k, in any notation; otherwise None and 1."""
    for found, exponent in ((only(v, arithmetic.sqr), 2.0), (only(v, exponential.sqrt), 0.5)):
        if found is not None:
            return found, exponent
    operands = floats(v, exponential.pow)
    value = None if operands is None else scalar_value(operands[1])
    return (None, 1.0) if operands is None or value is None else (operands[0], float(value))


def is_number(v: Any, holds: Callable[[float], bool]) -> bool:
    """Return True if `v` is a constant of one element for which `holds` is true."""
    value = None if v is None else scalar_value(v)
    return value is not None and bool(holds(value))


_FILL = elemwise(conversion.second)
_MAXIMUM, _WHERE = elemwise(comparison.maximum), elemwise(comparison.where)
_FURTHEST = 4
"""The largest number of operations between the maximum and its subtraction."""

_MOST_TERMS = 64
"""Sums of more terms are not searched."""

Order = tuple[int | str, ...]


def exponent_of(v: Variable) -> Any:
    """Return x if `v` is exp(x) in the dtype of x, or that repeated or with other axes; otherwise None."""
    node, operands = v.owner, operands_of(v, exponential.exp)
    if node is not None and (isinstance(node.op, DimShuffle) or node.op == _FILL):
        *template, power = node.inputs
        x = exponent_of(power)
        return None if x is None else node.op.make_node(*template, x).outputs[0]
    return operands[0] if operands is not None and dtype_of(operands[0]) == dtype_of(v) else None


def exponents_of_sum(v: Variable) -> list[Any] | None:
    """Return x, y, ... if `v` is exp(x) + exp(y) + ..., without a common shift; otherwise None."""
    terms = _terms(v)
    if len(terms) < 2:
        return None
    found = [exponent_of(term) for term in terms]
    return None if any(x is None for x in found) or is_shifted(found) else found


def is_shifted(exponents: Sequence[Any]) -> bool:
    """Return True if the largest of some variables is subtracted from each of them in `exponents`."""
    differences = [operands_of(x, arithmetic.sub) for x in exponents]
    found = [d for d in differences if d is not None]
    if len(found) < len(exponents) or len({shift for _, shift in found}) > 1:
        return False
    return _is_largest(found[0][1], [x for x, _ in found], _FURTHEST)


def _is_largest(variable: Variable, among: Collection[Variable], steps: int) -> bool:
    """Return True if `variable` is made of a choice of one of the variables `among`, within `steps`
    operations.
    """
    node = variable.owner
    if node is None or steps == 0 or not isinstance(node.op, DimShuffle | Elemwise):
        return False
    is_choice = node.op in (_MAXIMUM, _WHERE) and any(v in among for v in node.inputs)
    return is_choice or any(_is_largest(v, among, steps - 1) for v in node.inputs)


def _terms(v: Variable) -> list[Variable]:
    """Return the terms of the sum `v`, or an empty list if there are too many."""
    found: list[Variable] = []
    waiting = [v]
    while waiting and len(found) + len(waiting) <= _MOST_TERMS:
        term = waiting.pop()
        operands = operands_of(term, arithmetic.add)
        if operands is None or any(dtype_of(operand) != dtype_of(v) for operand in operands):
            found.append(term)
        else:
            waiting += operands[::-1]
    return [] if waiting else found


def summed_exponent(v: Variable) -> tuple[Any, tuple[int, ...], Order | None] | None:
    """Return x, the axes and the new order of axes (or None) if `v` is the sum of exp(x); otherwise None."""
    order = None
    if v.owner is not None and isinstance(v.owner.op, DimShuffle):
        order, v = v.owner.op.new_order, v.owner.inputs[0]
    if v.owner is None or not isinstance(v.owner.op, Sum):
        return None
    axis = v.owner.op.axis
    x = exponent_of(v.owner.inputs[0])
    if x is None or dtype_of(v) != dtype_of(x):
        return None
    difference = operands_of(x, arithmetic.sub)
    if difference is not None and _comes_from_largest(difference[1], difference[0], axis, _FURTHEST):
        return None
    return x, axis, order


def _comes_from_largest(variable: Variable, x: Variable, axis: tuple[int, ...], steps: int) -> bool:
    """Return True if `variable` is made of the largest elements of `x`, within `steps` operations."""
    node = variable.owner
    if node is None or steps == 0:
        return False
    if isinstance(node.op, Max):
        return node.inputs[0] is x and node.op.axis == axis
    if not isinstance(node.op, DimShuffle | Elemwise):
        return False
    return any(_comes_from_largest(v, x, axis, steps - 1) for v in node.inputs)
