"""Sums of gradients, which keep the branches that both flow through.

A branch that is not taken makes a gradient 0, whatever is infinite or no number in it (decision 0070). A
condition that is written twice is two variables until the graph is merged, so conditions are compared as
computations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.scalar.arithmetic import add
from engine.tensor.elemwise import Branch, apply_elemwise, split, within
from engine.tensor.matching import is_alike


def added(first: Any, second: Any) -> Any:
    """Return the sum of two gradients, inside the branches that they share."""
    (branches, one), (others, other) = split(first), split(second)
    shared = [branch for branch in branches if _is_among(branch, others)]
    if not shared:
        return apply_elemwise(add, first, second)
    one = within([branch for branch in branches if branch not in shared], one)
    other = within([branch for branch in others if not _is_among(branch, shared)], other)
    return within(shared, apply_elemwise(add, one, other))


def _is_among(branch: Branch, branches: Sequence[Branch]) -> bool:
    return any(branch.taken == b.taken and is_alike(branch.condition, b.condition) for b in branches)
