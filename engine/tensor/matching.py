"""Queries on expressions: the operation that computes a variable, and the number that a constant holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine.graph.variables import Constant, Variable
from engine.scalar.op import ScalarOp
from engine.tensor.elemwise import Elemwise
from engine.tensor.type import TensorType


def operands_of(variable: Variable, op: ScalarOp) -> Sequence[Variable] | None:
    """Return the operands if `variable` is `op` applied element by element; otherwise None."""
    node = variable.owner
    if node is None or not isinstance(node.op, Elemwise) or node.op.scalar_op != op:
        return None
    return node.inputs


def scalar_value(variable: Variable) -> Any:
    """Return the number in `variable` if it is a constant of one element; otherwise None."""
    if not isinstance(variable, Constant) or getattr(variable.data, "size", None) != 1:
        return None  # a constant of a user's type may hold anything
    return variable.data.item()


DEEPEST = 8
"""The depth to which an expression is searched for a known form."""


def is_alike(first: Any, second: Any, steps: int = DEEPEST) -> bool:
    """Return True if two variables are the same computation of the same variables, compared to a depth
    of `steps`.

    An expression that is written twice is two variables until the graph is merged.
    """
    if first is second:
        return True
    if first is None or second is None or first.type != second.type:
        return False
    value = scalar_value(first)
    if value is not None:
        return value == scalar_value(second)
    one, other = first.owner, second.owner
    if one is None or other is None or not steps or one.op != other.op or first.index != second.index:
        return False
    return all(is_alike(a, b, steps - 1) for a, b in zip(one.inputs, other.inputs, strict=True))


def dtype_of(variable: Variable) -> str:
    """Return the dtype of a tensor."""
    return tensor_type_of(variable).dtype


def tensor_type_of(variable: Variable) -> TensorType:
    """Return the type of a tensor."""
    return cast(TensorType, variable.type)
