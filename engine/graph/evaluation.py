"""The outputs of one node, computed by its Op's `perform` from the values of its inputs.

A user's Op is trusted with nothing: it is shown copies, which it may keep or overwrite, and of what it gives, that is
copied which it or anybody else still holds, or which is a part of another array.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.user_ops import needs_python

_NOT_SHARED = 2
"""References to what a list alone holds, while they are counted."""


def computed(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    """A value for each output of `node`, of just the type that the output has.

    What a user's Op gives may also be a number or a list of numbers that the type holds exactly. Raises TypeError for any
    other result, and what `perform` raises, of a user's Op with a note that names it.
    """
    if needs_python(node.op):
        return _computed_by_user(node, inputs)
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    node.op.perform(node, inputs, storage)
    return [
        output.type.filter(value, strict=True) for output, (value,) in zip(node.outputs, storage, strict=True)
    ]


def _computed_by_user(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    shown = [np.array(value) if isinstance(value, np.ndarray) else value for value in inputs]
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, shown, storage)
    except Exception as error:
        error.add_note(f"This was raised by the perform() of {node.op}.")
        raise
    return [taken(node, position, cell) for position, cell in enumerate(storage)]


def taken(node: Apply, position: int, cell: list[Any]) -> Any:
    """The result in `cell`, as the output's type has it, and nobody else's."""
    if cell[0] is None:
        raise TypeError(
            f"Running {node.op}: output {position} was not given; perform() must put it into output_storage[{position}][0]"
        )
    is_shared = sys.getrefcount(cell[0]) > _NOT_SHARED
    try:
        value = node.outputs[position].type.filter(cell[0], strict=isinstance(cell[0], np.ndarray))
    except (TypeError, ValueError) as error:
        raise type(error)(f"Running {node.op}: output {position}: {error}") from error
    if value is not cell[0]:
        is_shared = False
    if isinstance(value, np.ndarray) and (is_shared or value.base is not None):
        return value.copy()
    return value
