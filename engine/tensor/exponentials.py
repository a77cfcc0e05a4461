"""Sums of exponentials, as they are written: of several terms, or over axes.

What is written with the largest exponent subtracted does not overflow, and is nothing that these find. So the graphs
that Softmax and its kin hold, which are written so, are not recognised as these Ops themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.variables import Variable
from engine.scalar import arithmetic, exponential
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.matching import dtype_of, operands_of
from engine.tensor.reduction import Max, Sum

_FURTHEST = 4
"""How many operations may lie between the largest element and what is subtracted."""

_MOST_TERMS = 64
"""A sum of more terms is left as it is written."""

Order = tuple[int | str, ...]


def exponent_of(v: Variable) -> Any:
    """x, if `v` is exp(x), of the dtype of x."""
    operands = operands_of(v, exponential.exp)
    return operands[0] if operands is not None and dtype_of(operands[0]) == dtype_of(v) else None


def exponents_of_sum(v: Variable) -> list[Any] | None:
    """x, y, ..., if `v` is exp(x) + exp(y) + ..., and not all have the same number subtracted."""
    terms = _terms(v)
    if len(terms) < 2:
        return None
    found = [exponent_of(term) for term in terms]
    return None if any(x is None for x in found) or is_shifted(found) else found


def is_shifted(exponents: Sequence[Any]) -> bool:
    """Whether the same variable is subtracted in all `exponents`."""
    differences = [operands_of(x, arithmetic.sub) for x in exponents]
    return len({None if d is None else d[1] for d in differences}) == 1 and differences[0] is not None


def _terms(v: Variable) -> list[Variable]:
    """What is added up in `v`, up to so many terms."""
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
    """x, the axes and the order of axes, if `v` is the sum of exp(x) over axes, reordered unless the order is None."""
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
    """Whether `variable` is made of the largest elements of `x`, by operations that keep their number."""
    node = variable.owner
    if node is None or steps == 0:
        return False
    if isinstance(node.op, Max):
        return node.inputs[0] is x and node.op.axis == axis
    if not isinstance(node.op, DimShuffle | Elemwise):
        return False
    return any(_comes_from_largest(v, x, axis, steps - 1) for v in node.inputs)
