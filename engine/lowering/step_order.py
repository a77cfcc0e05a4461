"""The order of steps: which of them each one has to follow, and an order after some were joined.

A step follows those that write what it uses and those that read what it overwrites. Those that may fail
keep their order, so the same error is raised first.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from engine.lowering.loops import Call, Compute, Evaluate, Fail, Kernel, Node, walk
from engine.lowering.steps import Buffer, Step
from engine.scalar.embedded import Embedded


def followed_steps(steps: Sequence[Step]) -> list[set[int]]:
    """Return for each of `steps` the positions of those that it has to follow at once."""
    readers: dict[Buffer, list[int]] = {}  # those that read a buffer since it was written last
    writer: dict[Buffer, int] = {}
    failing: int | None = None
    ends: dict[int, bool] = {}
    followed = []
    for position, step in enumerate(steps):
        found = {writer[buffer] for buffer in step.reads if buffer in writer}
        for buffer in step.writes:
            if buffer in writer:
                found.add(writer[buffer])
            found.update(readers.pop(buffer, ()))
        if _may_fail(step, ends):
            if failing is not None:
                found.add(failing)
            failing = position
        followed.append(found)
        for buffer in step.reads:
            readers.setdefault(buffer, []).append(position)
        for buffer in step.writes:
            readers.pop(buffer, None)
            writer[buffer] = position
    return followed


def _may_fail(step: Step, ends: dict[int, bool]) -> bool:
    """Return True if `step` may end the program; `ends` is known of kernels, by their ids."""
    kernel = step.kernel
    if kernel is None:
        return step.loop is not None or step.invocation is not None
    if step.work is not None:
        return False
    found = ends.get(id(kernel))
    if found is None:
        found = ends[id(kernel)] = _ends_early(kernel)
    return found


def _ends_early(kernel: Kernel) -> bool:
    """Return True if `kernel` may end before it is done, or calls something of its own."""
    return any(map(_ends_kernel, walk(kernel.body)))


def _ends_kernel(node: Node) -> bool:
    return isinstance(node, Fail | Call | Evaluate) or (
        isinstance(node, Compute) and isinstance(node.op, Embedded)
    )


def ordered(
    steps: Sequence[Step], followed: Sequence[set[int]], joined: Sequence[tuple[Sequence[Step], Step]]
) -> list[Step]:
    """Return `steps` with groups of them replaced by one each: as early as before, where possible.

    `followed` are the positions that each of `steps` has to follow, `joined` the groups, each with the step
    that does its work.
    """
    unit_of = {id(step): unit for unit, (members, _) in enumerate(joined) for step in members}
    units = [step for _, step in joined]
    first: dict[int, int] = {}
    numbers: list[int] = []
    for position, step in enumerate(steps):
        unit = unit_of.get(id(step), len(units))
        if unit == len(units):
            units.append(step)
        first.setdefault(unit, position)
        numbers.append(unit)
    waits: list[set[int]] = [set() for _ in units]
    for unit, positions in zip(numbers, followed, strict=True):
        waits[unit].update([numbers[position] for position in positions])
    order = _sorted(waits, first)
    assert len(order) == len(units), "joined loops need each other"
    return [units[unit] for unit in order]


def _sorted(waits: Sequence[set[int]], first: dict[int, int]) -> list[int]:
    """Return the units, each behind those it waits for: of those that can run, the `first` of them."""
    users: list[list[int]] = [[] for _ in waits]
    left = []
    for unit, others in enumerate(waits):
        others.discard(unit)
        left.append(len(others))
        for other in others:
            users[other].append(unit)
    ready = [(first[unit], unit) for unit, count in enumerate(left) if not count]
    heapify(ready)
    order = []
    while ready:
        _, unit = heappop(ready)
        order.append(unit)
        for user in users[unit]:
            left[user] -= 1
            if not left[user]:
                heappush(ready, (first[user], user))
    return order
