"""Stable forms of products, quotients and powers of exponentials, and of what cancels in quotients.

Sums and differences of exponents are taken only where that makes no larger array: exp(a) * exp(b) of a
column and a row would need an exponential for each element of the table.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from engine.gradient.written_forms import (
    base_and_exponent,
    exponent_of,
    exponents_of_sum,
    floats,
    is_number,
    negated,
    only,
    opposite,
    quotient,
    root_of_square,
)
from engine.graph.variables import Variable
from engine.scalar import arithmetic, exponential
from engine.scalar.comparison import minimum
from engine.scalar.gamma import erfc
from engine.tensor.elemwise import DimShuffle
from engine.tensor.joining import Join
from engine.tensor.linalg.factorizations import Det, SLogDet, slogdet
from engine.tensor.matching import DEEPEST, dtype_of, is_alike, operands_of, scalar_value, tensor_type_of
from engine.tensor.math import abs as absolute
from engine.tensor.math import (
    add,
    erfcx,
    exp,
    ge,
    log,
    logaddexp,
    maximum,
    mul,
    neg,
    reciprocal,
    sigmoid,
    sign,
    sqr,
    sub,
    switch,
    true_div,
)
from engine.tensor.math import erfc as erfc_of
from engine.tensor.math import minimum as lesser
from engine.tensor.reduction import Prod, prod
from engine.tensor.reduction import sum as total
from engine.tensor.shape import MakeVector, Reshape
from engine.tensor.slicing import Subtensor
from engine.tensor.subtensor import AdvancedSubtensor

PARTS = (Subtensor, AdvancedSubtensor, DimShuffle, Reshape)
"""Ops whose results are elements of their first input."""


def exponential_product(v: Variable) -> Any:
    """Return the form of exp(x) * exp(y), or None."""
    operands = floats(v, arithmetic.mul)
    exponents = None if operands is None else [exponent_of(operand) for operand in operands]
    if exponents is None or not are_of_one_shape(*exponents):
        return None
    return exp(add(*exponents))


def exponential_quotient(above: Variable | None, below: Variable) -> Any:
    """Return the form of 1 / exp(y) or exp(x) / exp(y), or None."""
    y = exponent_of(below)
    if y is None:
        return None
    if above is None:
        return exp(opposite(y))
    x = exponent_of(above)
    return exp(sub(x, y)) if are_of_one_shape(x, y) else None


def exponential_share(above: Variable | None, below: Variable) -> Any:
    """Return the form of exp(x) / (exp(x) + exp(y) + ...) or exp(x) / (exp(y) + exp(z) + ...), or None."""
    x = None if above is None else exponent_of(above)
    exponents = None if x is None else exponents_of_sum(below)
    if exponents is None:
        return None
    places = [place for place, exponent in enumerate(exponents) if is_alike(exponent, x)]
    if not places:
        return exp(sub(x, reduce(logaddexp, exponents)))
    others = [exponent for place, exponent in enumerate(exponents) if place != places[0]]
    return sigmoid(sub(x, reduce(logaddexp, others)))


def without_exponential(v: Variable, x: Variable, steps: int = DEEPEST) -> tuple[Any] | None:
    """Return y if `v` is y * exp(x), a product of a few factors with any signs, and None if it is not.

    y is in a tuple; it is None for exp(x) alone, and the number -1.0 for -exp(x).
    """
    if is_alike(exponent_of(v), x):
        return (None,)
    value, factors = negated(v), floats(v, arithmetic.mul) if steps else None
    if steps and value is not None:
        found = without_exponential(value, x, steps - 1)
        return None if found is None else (-1.0 if found[0] is None else -found[0],)
    for factor, other in () if factors is None else (factors, factors[::-1]):
        found = without_exponential(factor, x, steps - 1)
        if found is not None:
            return (other if found[0] is None else mul(found[0], other),)
    return None


def exponential_power(base: Variable, exponent: float) -> Any:
    """Return the form of exp(x)**k for k = 0.5, 2, 4, ..., whose product with x is exact; else None."""
    x = exponent_of(base)
    if x is None or math.frexp(exponent)[0] != 0.5 or not 0.5 <= exponent <= 64:
        return None
    return exp(mul(x, exponent))


def reciprocal_of_sigmoid(above: Variable | None, below: Variable) -> Any:
    """Return the form of 1 / sigmoid(x), or None."""
    x = only(below, exponential.sigmoid)
    return None if above is not None or x is None else add(1.0, exp(opposite(x)))


def cancelled(above: Variable | None, below: Variable) -> Any:
    """Return the form of x * y / y, or None. It is x even where y is 0, infinite or NaN, as in PyTensor."""
    operands = None if above is None else floats(above, arithmetic.mul)
    for factor, other in () if operands is None else (operands, operands[::-1]):
        if scalar_value(factor) is None and is_alike(factor, below) and are_of_one_shape(factor, other):
            return other
    return None


def over_erfc(above: Variable | None, below: Variable) -> Any:
    """Return the form of exp(-x**2) / erfc(x), or None.

    Where x is negative, erfc(x) is between 1 and 2. There the quotient stays, of numbers bounded by 0, by
    which it is told from what people write.
    """
    x = only(below, erfc)
    if x is None or any(is_number(v, lambda bound: bound <= 0) for v in operands_of(x, minimum) or ()):
        return None
    exponent = None if above is None else exponent_of(above)
    root = None if exponent is None else _root_of_negative_square(exponent)
    if root is None or not is_alike(root, x):
        return None
    positive, negative = maximum(x, 0.0), lesser(x, 0.0)
    return switch(ge(x, 0), reciprocal(erfcx(positive)), true_div(exp(neg(sqr(negative))), erfc_of(negative)))


def _root_of_negative_square(v: Variable) -> Any:
    """Return x if `v` is -(x**2) or -x * x; otherwise None."""
    square = negated(v)
    if square is not None:
        return root_of_square(square)
    operands = floats(v, arithmetic.mul)
    one = None if operands is None else negated(operands[0])
    return one if operands is not None and one is not None and is_alike(one, operands[1]) else None


def exponential_form(v: Variable) -> Any:
    """Return exp(x) if `v` is a product, a quotient or a power of exponentials, else None."""
    base, exponent = base_and_exponent(v)
    if base is not None:
        return exponential_power(base, exponent)
    above, below = quotient(v)
    return exponential_product(v) if below is None else exponential_quotient(above, below)


def determinant(v: Variable) -> tuple[Any, Any] | None:
    """Return the sign and the logarithm of the magnitude if `v` is a determinant, else None.

    It is `det(x)`, of one matrix or of a batch, or sign * exp(logarithm), which replaces that.
    """
    if v.owner is not None and isinstance(getattr(v.owner.op, "core_op", v.owner.op), Det):
        return slogdet(v.owner.inputs[0])
    operands = floats(v, arithmetic.mul)
    node = None if operands is None else operands[0].owner
    if operands is None or node is None or not isinstance(node.op, SLogDet):
        return None
    logarithm = exponent_of(operands[1])
    return None if logarithm is None or logarithm.owner is not node else (operands[0], logarithm)


def log_of_product(v: Variable) -> Any:
    """Return the form of log(prod(x)) or log(abs(prod(x))), a sum of logarithms, or None.

    It is NaN for a negative product.
    """
    magnitude = only(v, arithmetic.abs)
    node = v.owner if magnitude is None else magnitude.owner
    if node is None or not isinstance(node.op, Prod) or dtype_of(node.inputs[0]) != dtype_of(v):
        return None
    (x,), axis = node.inputs, node.op.axis
    exponents = _exponents_within(x)
    if exponents is not None:
        return total(exponents, axis)
    if only(x, arithmetic.abs) is not None or root_of_square(x) is not None:
        return total(log(x), axis)
    logarithms = total(log(absolute(x)), axis)
    if magnitude is not None:
        return logarithms
    return switch(ge(prod(sign(x), axis), 0), logarithms, float("nan"))


def _exponents_within(v: Variable, steps: int = DEEPEST) -> Any:
    """Return x if `v` is exp(x), or parts, reshapes and joins of exponentials, else None."""
    node, found = v.owner, exponent_of(v)
    if found is not None or node is None or not steps:
        return found
    if isinstance(node.op, Join | MakeVector):
        joined = [_exponents_within(item, steps - 1) for item in node.inputs]
        return None if any(x is None for x in joined) else node.op.make_node(*joined).outputs[0]
    if not isinstance(node.op, PARTS):
        return None
    x = _exponents_within(node.inputs[0], steps - 1)
    return None if x is None else node.op.make_node(x, *node.inputs[1:]).outputs[0]


def are_of_one_shape(first: Any, second: Any) -> bool:
    """Return True for two variables of which neither broadcasts to the other, as far as types tell."""
    if first is None or second is None:
        return False
    one, other = tensor_type_of(first).shape, tensor_type_of(second).shape
    return len(one) == len(other) and all((a == 1) == (b == 1) for a, b in zip(one, other, strict=True))
