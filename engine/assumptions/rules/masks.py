"""Masks of triangles: comparisons of the column with the row of each element."""

from __future__ import annotations

from math import inf
from typing import Any

from engine import scalar
from engine.assumptions.core import DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, AssumptionKey
from engine.graph.variables import Variable
from engine.tensor.constant_values import get_underlying_scalar_constant_value
from engine.tensor.creation import ARange
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.matching import operands_of, scalar_value

COMPARISONS = (scalar.le, scalar.lt, scalar.ge, scalar.gt, scalar.eq)


def is_within(mask: Variable, key: AssumptionKey) -> bool:
    """Return True if `mask`, `column - row <= k` or its like, is False wherever `key` says that a matrix is
    zero.
    """
    node = mask.owner
    assert node is not None
    assert isinstance(node.op, Elemwise)
    offset, bound = node.inputs
    k = scalar_value(bound)
    if k is None or not _is_column_less_row(offset):
        return False
    lowest, highest = _offsets(node.op.scalar_op, k)
    is_lower, is_upper = highest <= 0, lowest >= 0
    return {
        LOWER_TRIANGULAR: is_lower,
        UPPER_TRIANGULAR: is_upper,
        DIAGONAL: is_lower and is_upper,
    }[key]


def _offsets(op: Any, k: int) -> tuple[float, float]:
    """Return between which differences of column and row `op` with `k` is True."""
    if op in (scalar.le, scalar.lt):
        return -inf, k - (op == scalar.lt)
    return k + (op == scalar.gt), k if op == scalar.eq else inf


def _is_column_less_row(offset: Variable) -> bool:
    operands = operands_of(offset, scalar.sub)
    return operands is not None and _is_count(operands[0], ("x", 0)) and _is_count(operands[1], (0, "x"))


def _is_count(variable: Variable, order: tuple[int | str, ...]) -> bool:
    """Return True for the integers from 0 on along an axis, in the `order` of a DimShuffle."""
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle) or node.op.new_order != order:
        return False
    count = node.inputs[0].owner
    if count is None or not isinstance(count.op, ARange):
        return False
    start, _, step = [scalar_value(v) for v in count.inputs]
    return (start, step) == (0, 1)


def is_zero(variable: Variable) -> bool:
    """Return True if all elements of `variable` are known to be 0."""
    found = get_underlying_scalar_constant_value(variable, raise_not_constant=False)
    return not isinstance(found, Variable) and bool(found == 0)
