"""Gradients that are 0 where another branch was taken: `where(condition, gradient, 0)`.

What is computed from such a gradient is computed from the gradient of the branch everywhere, and 0 is put in its place
afterwards. The other way round, where the slope of a branch that was not taken is infinite or no number, 0 times that
slope would be no number either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import engine.tensor as pt
from engine.graph.variables import Constant, Variable
from engine.scalar.arithmetic import Mul
from engine.scalar.selection import Where


class Branch(NamedTuple):
    """Where `condition` is `taken`, a gradient flows; elsewhere it is 0."""

    condition: Variable
    taken: bool


def split(gradient: Any) -> tuple[list[Branch], Any]:
    """The branches that `gradient` flows through, outermost first, and the gradient without them. Through what a factor of
    it flows it flows, too."""
    branches: list[Branch] = []
    while gradient is not None and gradient.owner is not None:
        operation = type(getattr(gradient.owner.op, "scalar_op", None))
        if operation is Where:
            found = _choice(gradient)
        elif operation is Mul:
            found = _product(*gradient.owner.inputs)
        else:
            found = None
        if found is None:
            break
        branch, gradient = found
        branches.append(branch)
    return branches, gradient


def _choice(variable: Any) -> tuple[Branch, Any] | None:
    """The branch and what is chosen there, of the same dtype, if `variable` is 0 elsewhere."""
    node = variable.owner
    if node is None or type(getattr(node.op, "scalar_op", None)) is not Where:
        return None
    condition, first, second = node.inputs
    taken = _is_zero(second)
    chosen = first if taken else second
    if not (taken or _is_zero(first)) or chosen.type.dtype != variable.type.dtype:
        return None
    return Branch(condition, taken), chosen


def _product(first: Any, second: Any) -> tuple[Branch, Any] | None:
    for factor, other in ((first, second), (second, first)):
        found = _choice(factor)
        if found is not None:
            return found[0], pt.mul(found[1], other)
    return None


def within(branches: Sequence[Branch], gradient: Any) -> Any:
    """`gradient` where all `branches` are taken, 0 elsewhere; None for None."""
    if gradient is None:
        return None
    for condition, taken in reversed(branches):
        gradient = pt.where(condition, gradient, 0) if taken else pt.where(condition, 0, gradient)
    return gradient


def rearranged(gradient: Any, arrange: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Any:
    """`gradient` with its elements in other places: its branches' conditions by `arrange`, the rest by `inner`."""
    branches, found = split(gradient)
    return within([Branch(arrange(condition), taken) for condition, taken in branches], inner(found))


def added(first: Any, second: Any) -> Any:
    """The sum of two gradients, within the branches that both flow through."""
    branches, common = split(first)[0], 0
    for branch, other in zip(branches, split(second)[0], strict=False):
        if branch != other:
            break
        common += 1
    first, second = (_without(common, gradient) for gradient in (first, second))
    return within(branches[:common], pt.add(first, second))


def _without(number: int, gradient: Any) -> Any:
    branches, found = split(gradient)
    return within(branches[number:], found)


def _is_zero(variable: Variable) -> bool:
    while variable.owner is not None and isinstance(variable.owner.op, pt.DimShuffle):
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and variable.data.size == 1 and variable.data.item() == 0
