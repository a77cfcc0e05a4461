"""`MemoryUses`: the uses of each buffer of a table. They decide if joined steps still need its memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.lowering.steps import Buffer, Step
from engine.lowering.table import Table


class MemoryUses:
    """The uses of buffers in all steps of `table`."""

    def __init__(self, table: Table) -> None:
        self.addresses = {view: (base, by) for views in table.addresses.values() for view, base, by in views}
        self._table = table
        self._users: dict[Buffer, list[int]] = {}
        for step in table.steps:
            for buffer in (*step.reads, *step.writes):
                users = self._users.get(buffer)
                if users is None:
                    self._users[buffer] = [id(step)]
                else:
                    users.append(id(step))
        self._addressed = {self._root(register) for register in registers_outside_calls(table)}

    def _root(self, register: int) -> int:
        """Return the register of the address that the address in `register` is computed from."""
        register = self._table.canonical(register)
        while register in self.addresses:
            register = self.addresses[register][0]
        return register

    def is_inside(self, buffer: Buffer, members: set[int]) -> bool:
        """Return True if nothing but the steps with the ids `members` needs the elements of `buffer`."""
        is_asked_for = buffer.result is not None or buffer.is_loaded or buffer.is_kept
        if is_asked_for or buffer.pointer in self._addressed:
            return False
        return members.issuperset(self._users[buffer])


def registers_outside_calls(table: Table) -> Iterator[int]:
    """Yield the registers that something else than kernels and views reads."""
    for instructions in table.arithmetic.values():
        for instruction in instructions:
            yield from instruction.operands
    for step in table.steps:
        if step.loop is not None:
            loop = step.loop
            yield from (r for carried in loop.carried for r in carried if r is not None)
            yield from (register for ring in loop.rings for register in ring)
            if loop.until is not None:
                yield loop.until.pointer
        if step.invocation is not None:
            yield from (value.pointer for value in step.invocation.inputs)


def outside(inside: set[Buffer], *found: Sequence[Buffer]) -> tuple[Buffer, ...]:
    """Return the buffers of all `found`, once each, without those `inside`."""
    return tuple(dict.fromkeys(buffer for buffers in found for buffer in buffers if buffer not in inside))


def joint_name(steps: Sequence[Step]) -> str:
    """Return the name of one step that does the work of `steps`, for messages."""
    names = list(dict.fromkeys(step.op for step in steps))
    return names[0] + f" and {len(names) - 1} others" * (len(names) > 1)
