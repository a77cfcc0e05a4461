"""The number that a length is known to be when a graph is built: so a type knows it, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.graph.apply import Apply
from engine.graph.reference import run_node
from engine.graph.user_ops import needs_python
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import INTEGERS

_DEEPEST = 8
"""The depth to which an expression is searched for its number."""


def known_length(length: Variable, steps: int = _DEEPEST) -> int | None:
    """Return the number that an integer of 0 dimensions is known to be, found to a depth of `steps`, or None.

    It is a constant, or what an Op tells by its `known_number(node, steps)`: the length of an axis that a
    type has, an element of a vector that was made of such lengths, and what is computed of them.
    """
    if isinstance(length, Constant):
        return int(length.data)
    node = length.owner
    if node is None or not steps:
        return None
    find = getattr(node.op, "known_number", None)
    return None if find is None else find(node, steps - 1)


def computed_length(node: Apply, steps: int) -> int | None:
    """Return the integer that `node` computes of integers that are known, or None; no function of a user
    is called."""
    if needs_python(node.op) or not all(v.type.dtype in INTEGERS for v in (*node.inputs, *node.outputs)):
        return None
    values: list[int] = []
    for variable in node.inputs:
        value = known_length(variable, steps)
        if value is None:
            return None
        values.append(value)
    return _computed(node, values)


def _computed(node: Apply, values: Sequence[int]) -> int:
    arrays = [np.asarray(value, v.type.dtype) for value, v in zip(values, node.inputs, strict=True)]
    return int(run_node(node, arrays)[0])
