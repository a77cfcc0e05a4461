"""The buffers of PyTensor's Scan, in terms of the engine's: filled in circularly, or behind what is given.

PyTensor's Scan is given a buffer for each recurrent output, with the initial rows in front, and returns it
filled in: circularly if it is short, with zeros behind the last row if it is long. The engine's is given the
initial rows and returns these and the computed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.scalar.basic import Add
from pytensor.tensor.basic import AllocEmpty, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import IncSubtensor

import engine.tensor as pt
from engine.inner.scan_building import State
from engine.tensor.shape import folded_shape_i


def cut(rows: Any, length: Any, may_be_longer: bool) -> Any:
    """Return the last `length` of `rows`; if there are fewer, all, and zeros if it `may_be_longer`."""
    found = folded_shape_i(rows, 0)
    last = rows[pt.maximum(pt.sub(found, length), 0) :]
    if not may_be_longer:
        return last
    missing = pt.maximum(pt.sub(length, found), 0)
    shape = [missing, *[folded_shape_i(rows, axis) for axis in range(1, rows.type.ndim)]]
    return pt.join(0, last, pt.zeros(tuple(shape), rows.type.dtype))


def length_of(buffer: Any) -> Any:
    """Return PyTensor's variable for the length of a buffer that it allocated, or None if it is another."""
    node = buffer.owner
    while node is not None and isinstance(node.op, IncSubtensor):
        node = node.inputs[0].owner
    return node.inputs[0] if node is not None and isinstance(node.op, AllocEmpty) else None


def difference(length: Any, steps: Any) -> int | None:
    """Return `length` - `steps`, two variables of PyTensor's, if it is known before they are."""
    length, steps = _plain(length), _plain(steps)
    if isinstance(length, Constant) and isinstance(steps, Constant):
        return int(length.data) - int(steps.data)
    if length is steps:
        return 0
    node = getattr(length, "owner", None)
    if node is None or not isinstance(node.op, Elemwise) or type(node.op.scalar_op) is not Add:
        return None
    rest = [_plain(variable) for variable in node.inputs]
    if steps not in rest:
        return None
    rest.remove(steps)
    return sum(int(v.data) for v in rest) if all(isinstance(v, Constant) for v in rest) else None


def _plain(variable: Any) -> Any:
    """Return the variable that `variable` is, between scalars and tensors."""
    while variable is not None and variable.owner is not None:
        if not isinstance(variable.owner.op, ScalarFromTensor | TensorFromScalar):
            break
        variable = variable.owner.inputs[0]
    return variable


class Window:
    """A mit-mot buffer: each step reads and writes some of its rows, counted from the oldest that it uses.

    All of these rows but the last are states of the engine's loop; the last is a row of the buffer, read as
    a sequence. The row that leaves the window after a step is final.
    """

    def __init__(self, buffer: Any, reads: Sequence[int], writes: Sequence[int]) -> None:
        self.buffer = buffer
        self.writes = tuple(writes)
        self.size = max((*reads, *writes))
        row = buffer.type.clone(shape=buffer.type.shape[1:])
        self.rows = [row.make_variable() for _ in range(self.size + 1)]
        self.read = [self.rows[place] for place in reads]
        self.states: list[State] = []
        self.leaving: Any = None

    def sequence(self, steps: Any) -> tuple[Any, Any]:
        """Return the sequence of last rows, for that many steps, and the variable of its row."""
        return self.buffer[self.size : pt.add(steps, self.size)], self.rows[-1]

    def write(self, values: Sequence[Any]) -> None:
        """Set what a step writes."""
        after = list(self.rows)
        for place, value in zip(self.writes, values, strict=True):
            after[place] = value
        self.leaving = after[0]
        self.states = [
            State(self.buffer[place : place + 1], (-1,), [self.rows[place]], after[place + 1], 1)
            for place in range(self.size)
        ]

    def whole(self, last: Sequence[Any], left: Any, steps: Any) -> Any:
        """Return the buffer after the loop: the rows that `left`, the `last` states, and the rows behind."""
        return pt.join(0, left, *last, self.buffer[pt.add(steps, self.size) :])
