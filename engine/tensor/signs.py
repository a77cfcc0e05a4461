"""Expressions whose elements are all known to be above 0, or none below it, before a function runs."""

from __future__ import annotations

from typing import Any

from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable
from engine.scalar import (
    Cast,
    add,
    cosh,
    exp,
    maximum,
    minimum,
    mul,
    sigmoid,
    softplus,
    sqrt,
    true_div,
)
from engine.scalar.promotion import COMPLEX, INEXACT, INTEGERS, integer_range
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.matching import DEEPEST
from engine.tensor.shape import MakeVector, Shape_i
from engine.tensor.single_numbers import ScalarFromTensor, TensorFromScalar
from engine.tensor.slicing import Subtensor
from engine.tensor.type import is_data

_ALWAYS = (exp, sigmoid, softplus, cosh)
_OF_POSITIVE = (add, mul, true_div, sqrt)
_OF_SAME_ELEMENTS = (Alloc, DimShuffle, Subtensor, ScalarFromTensor, TensorFromScalar)
_MOST_OPERANDS = 32


def is_positive(variable: Variable, strict: bool = True, steps: int = DEEPEST) -> bool:
    """Return True if all elements of `variable` that are not NaN are known to be above 0, or, unless
    `strict`, not to be below; found to a depth of `steps`.

    Functions that may underflow to 0 count as positive. Data is never read.
    """
    if not strict and _has_no_sign(variable):
        return True
    if isinstance(variable, Constant):
        return not is_data(variable) and _is_above(variable.data, strict)
    node = variable.owner
    return node is not None and steps > 0 and _makes_positive(node, strict, steps - 1)


def is_non_negative(variable: Variable) -> bool:
    """Return True if it is known that no element of `variable` is below 0: `is_positive`, not strict."""
    return is_positive(variable, strict=False)


def _has_no_sign(variable: Any) -> bool:
    dtype = getattr(variable.type, "dtype", "")
    return dtype == "bool" or dtype.startswith("uint")


def _is_above(data: Any, strict: bool) -> bool:
    if data.dtype.kind == "c":
        return False
    return bool((data > 0 if strict else data >= 0).all())


def _makes_positive(node: Apply, strict: bool, steps: int) -> bool:
    op = node.op
    if isinstance(op, Shape_i):
        return not strict
    if isinstance(op, MakeVector):
        return all(is_positive(v, strict, steps) for v in node.inputs)
    if isinstance(op, _OF_SAME_ELEMENTS):
        return is_positive(node.inputs[0], strict, steps)
    return isinstance(op, Elemwise) and _makes_each_positive(node, op.scalar_op, strict, steps)


def _makes_each_positive(node: Apply, operation: Any, strict: bool, steps: int) -> bool:
    if operation in _ALWAYS:
        return True
    if operation in (minimum, maximum):
        found = [is_positive(v, strict, steps) for v in node.inputs]
        return all(found) if operation == minimum else any(found)
    if isinstance(operation, Cast):
        (x,) = node.inputs
        return not strict and _is_held(x, operation.dtype) and is_positive(x, False, steps)
    if operation in _OF_POSITIVE and all(is_positive(v, True, steps) for v in node.inputs):
        return True
    return not strict and operation in (add, mul) and _is_of_lengths(node.outputs[0])


def _is_held(x: Any, dtype: str) -> bool:
    """Return True if a cast of `x` to `dtype` makes no number negative that is not."""
    if dtype in INEXACT:
        return dtype not in COMPLEX
    largest = integer_range(dtype)[-1]
    if x.type.dtype in INTEGERS:
        return integer_range(x.type.dtype)[-1] <= largest
    # As a float, the largest int64 is rounded to the number above it.
    is_small = isinstance(x, Constant) and not is_data(x) and bool((x.data < largest).all())
    return is_small or x.type.dtype == "bool"


def _is_of_lengths(variable: Variable) -> bool:
    """Return True for sums and products of lengths and constants that are not negative."""
    waiting, seen = [variable], 0
    while waiting and seen < _MOST_OPERANDS:
        operand, seen = waiting.pop(), seen + 1
        node = operand.owner
        if node is not None and isinstance(node.op, Elemwise) and node.op.scalar_op in (add, mul):
            waiting += node.inputs
        elif (
            not isinstance(operand, Constant) and (node is None or not isinstance(node.op, Shape_i))
        ) or not is_non_negative(operand):
            return False
    return not waiting
