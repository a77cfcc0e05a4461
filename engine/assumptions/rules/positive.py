"""Expressions whose elements are all known to be positive."""

from __future__ import annotations

from engine.graph.variables import Constant, Variable
from engine.scalar import add, cosh, exp, mul, sigmoid, softplus, sqrt, true_div
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.matching import DEEPEST
from engine.tensor.type import is_data

_ALWAYS = (exp, sigmoid, softplus, cosh)
_OF_POSITIVE = (add, mul, true_div, sqrt)


def is_positive(variable: Variable, steps: int = DEEPEST) -> bool:
    """Return True if all elements of `variable` are known to be above 0, found to a depth of `steps`.

    Functions that may underflow to 0 count as positive.
    """
    if isinstance(variable, Constant):
        return not is_data(variable) and bool((variable.data > 0).all())
    node = variable.owner
    if node is None or not steps:
        return False
    if isinstance(node.op, Alloc | DimShuffle):
        return is_positive(node.inputs[0], steps - 1)
    if not isinstance(node.op, Elemwise):
        return False
    if node.op.scalar_op in _ALWAYS:
        return True
    return node.op.scalar_op in _OF_POSITIVE and all(is_positive(v, steps - 1) for v in node.inputs)
