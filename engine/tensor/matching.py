"""Expressions taken apart: which operation computes a variable, element by element, and which number a constant is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine.graph.variables import Constant, Variable
from engine.scalar.op import ScalarOp
from engine.tensor.elemwise import Elemwise
from engine.tensor.type import TensorType


def operands_of(variable: Variable, op: ScalarOp) -> Sequence[Variable] | None:
    """The arguments of which `variable` is `op`, element by element; None if something else computes it."""
    node = variable.owner
    if node is None or not isinstance(node.op, Elemwise) or node.op.scalar_op != op:
        return None
    return node.inputs


def scalar_value(variable: Variable) -> Any:
    """The number that `variable`, a constant of one element, holds; None if it is anything else."""
    if not isinstance(variable, Constant) or variable.data.size != 1:
        return None
    return variable.data.item()


DEEPEST = 8
"""In how many steps an expression is recognised at most: what is written in more is left as it is."""


def is_alike(first: Any, second: Any, steps: int = DEEPEST) -> bool:
    """Whether two variables are computed alike, of the same variables, in so many steps at most: what is written twice
    is two variables until a graph is merged."""
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
    """The dtype of a tensor."""
    return tensor_type_of(variable).dtype


def tensor_type_of(variable: Variable) -> TensorType:
    """The type of a tensor."""
    return cast(TensorType, variable.type)
