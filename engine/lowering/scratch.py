"""The plan of scratch memory: buffers of equal size share memory if no two of them are in use at once.

Linear scan over the steps (Poletto and Sarkar, "Linear scan register allocation", 1999), for each
region on its own. The memory that is free soonest is used again first.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from msgspec import Struct, field

from engine.lowering.steps import Buffer, Step, floor_of, region_of
from engine.lowering.table import Table

Scratch = dict[int, list[list[Buffer]]]
"""For each stage, the groups of buffers that share memory."""


def plan_scratch(table: Table) -> Scratch:
    """Return the groups in which those buffers of `table` share memory that are no results."""
    regions: dict[int, list[Step]] = {}
    for step in sorted(table.steps, key=lambda step: step.stage):
        regions.setdefault(region_of(step.stage), []).append(step)
    plan = _ScratchPlan(table)
    for region, steps in regions.items():
        last_use = _last_uses(steps)
        for time, step in enumerate(steps):
            for buffer in step.writes:
                if buffer.result is None and region_of(buffer.stage) == region:
                    plan.place(buffer, time, last_use[buffer])
    return plan.groups


def _last_uses(steps: Sequence[Step]) -> dict[Buffer, int]:
    """Return the time of each buffer's last use: the end, if it is written before a loop and read in it."""
    floor = floor_of(steps[0].stage)
    once = {buffer for step in steps for buffer in step.writes if 0 < floor == step.stage}
    last_use: dict[Buffer, int] = {}
    for time, step in enumerate(steps):
        for buffer in (*step.reads, *step.writes):
            last_use[buffer] = len(steps) if buffer in once and step.stage > floor else time
    return last_use


class _ScratchPlan(Struct):
    """The groups so far; `free` has, by stage and size, the time when each group's memory is free again."""

    table: Table
    groups: Scratch = field(default_factory=dict)
    free: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    placed: set[Buffer] = field(default_factory=set)

    def place(self, buffer: Buffer, time: int, last_use: int) -> None:
        """Give memory to `buffer`, in use from `time` to `last_use`, at its first write."""
        if buffer in self.placed:
            return
        self.placed.add(buffer)
        groups = self.groups.setdefault(buffer.stage, [])
        if buffer.is_kept:
            groups.append([buffer])
            return
        free = self.free.setdefault((buffer.stage, self.table.canonical(buffer.nbytes)), [])
        if free and free[0][0] < time:
            number = heappop(free)[1]
            groups[number].append(buffer)
        else:
            number = len(groups)
            groups.append([buffer])
        if not buffer.is_loaded:
            heappush(free, (last_use, number))
