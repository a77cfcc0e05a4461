"""Merging of small kernel calls: those without loops, or with loops so short that none is left, become few.

Only calls that cannot fail are merged, and only these change their place. All others keep their order, so
the same error is raised first. A call may move to any place between the last call before it and the first
behind it that use the same memory in a conflicting way. Calls are gathered as early calls are wanted by
others: each time one is wanted, all that can run by then join it (the fewest groups: intervals stabbed by
their last points). Memory that only one group uses disappears.

A kernel that is called so often that its calls would fill merged kernels stays apart: it is compiled once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct, field

from engine.lowering.loops import Integer, Kernel, Loop, Place, Pointer, WriteElement
from engine.lowering.memory_uses import MemoryUses, joint_name, outside, registers_outside_calls
from engine.lowering.steps import Buffer, Step
from engine.lowering.straight_line import (
    Element,
    Given,
    Known,
    NotStraight,
    StraightLine,
    first_element,
    known_integer,
)
from engine.lowering.table import Table

STORE = Kernel(
    (Pointer("y", "int64"), Integer("number")),
    (WriteElement(Place("y"), "number"),),
    (("output", 0), ("number",)),
    "store",
)
"""The work of a step that stores a register."""
MAX_OPERATIONS = 100
"""The largest number of operations and writes in a merged kernel."""
MAX_REPEATED = 200
"""The largest number of those that all calls of one kernel may add to merged ones."""
MAX_OPENED = 32
"""The largest number of those that the loops of one kernel may become."""


def merge_kernels(table: Table) -> None:
    """Merge calls of small kernels in `table`, stage by stage."""
    merging = _Merging(table)
    stages: dict[int, list[Step]] = {}
    for step in table.steps:
        stages.setdefault(step.stage, []).append(step)
    table.steps = [step for steps in stages.values() for step in merging.merged(steps)]
    _drop_unused_views(table)


class _Small(Struct, eq=False):
    """A step that may be merged: what its kernel gets, its size, and the memory of its elements.

    It may run between the steps `earliest` and `latest` (numbers of steps that stay).
    """

    step: Step
    given: Sequence[Given]
    size: int
    memory: dict[int, Buffer]
    """The buffers by the roots of elements."""
    earliest: int = 0
    latest: int = 0


class _Merging:
    """The facts about all steps of a table that decide which are merged, and the merging itself."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.uses = MemoryUses(table)
        self.calls = Counter(id(step.kernel) for step in table.steps)
        self.sizes: dict[tuple[int, tuple[int | None, ...]], int | None] = {}

    def merged(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Yield the steps of a stage after merging."""
        small = {id(step): found for step in steps if (found := self.small(step)) is not None}
        for demoted in _ambiguous(small.values()):
            del small[id(demoted.step)]
        if len(small) < 2:
            yield from steps
            return
        kept = [step for step in steps if id(step) not in small]
        order = [small.get(id(step), step) for step in steps]
        _find_places(order, len(kept))
        groups = _groups(list(small.values()), len(kept))
        for position in range(len(kept) + 1):
            if position in groups:
                yield from self.gathered(groups[position])
            yield from kept[position : position + 1]

    def small(self, step: Step) -> _Small | None:
        """Return what is known of `step` if it may be merged."""
        if step.loop is not None or step.invocation is not None:
            return None
        size = self.size(step)
        if size is None or self.calls[id(step.kernel)] * size > MAX_REPEATED or not step.writes:
            return None
        given = self.given(step)
        memory = {
            argument.root: buffer
            for argument, buffer in zip(given, step.memory, strict=True)
            if isinstance(argument, Element) and buffer is not None
        }
        return _Small(step, given, size, memory)

    def given(self, step: Step) -> list[Given]:
        table = self.table
        registers = [table.canonical(register) for register in step.arguments]
        return [
            self.element(r, p.dtype) if isinstance(p, Pointer) else self.integer(r)
            for p, r in zip((step.kernel or STORE).parameters, registers, strict=True)
        ]

    def element(self, register: int, dtype: str) -> Element:
        return first_element(register, dtype, self.uses.addresses, self.table.number)

    def integer(self, register: int) -> Known | int:
        number = self.table.number(register)
        return register if number is None else known_integer(number)

    def size(self, step: Step) -> int | None:
        """Return the size of the kernel of `step` without its loops, or None if it keeps some or may fail.

        It follows from the numbers that are known among the arguments.
        """
        kernel = step.kernel or STORE
        key = (id(kernel), tuple([self.table.number(register) for register in step.arguments]))
        if key not in self.sizes:
            has_loops = any(isinstance(node, Loop) for node in kernel.body)
            line = StraightLine(MAX_OPENED if has_loops else MAX_OPERATIONS)
            try:
                line.run(kernel, self.given(step))
                self.sizes[key] = line.size
            except NotStraight:
                self.sizes[key] = None
        return self.sizes[key]

    def gathered(self, group: Sequence[_Small]) -> Iterator[Step]:
        """Yield the steps that do the work of `group`: none for arrays that are known to be empty."""
        part: list[_Small] = []
        size = 0
        for item in group:
            if item.size == 0:
                continue
            if part and size + item.size > MAX_OPERATIONS:
                yield self.joined(part)
                part, size = [], 0
            part.append(item)
            size += item.size
        if part:
            yield self.joined(part)

    def joined(self, part: Sequence[_Small]) -> Step:
        """Return one step that does the work of `part`."""
        if len(part) == 1:
            return part[0].step
        line = StraightLine(MAX_OPERATIONS)
        for item in part:
            line.run(item.step.kernel or STORE, item.given)
        members = {id(item.step) for item in part}
        buffers = {root: buffer for item in part for root, buffer in item.memory.items()}
        inside = {buffer for buffer in buffers.values() if self.uses.is_inside(buffer, members)}
        kernel = line.kernel(lambda root: buffers[root] not in inside)
        steps = [item.step for item in part]
        reads, writes = (
            outside(inside, *(s.reads for s in steps)),
            outside(inside, *(s.writes for s in steps)),
        )
        memory = tuple([buffers.get(register) for register in line.registers])
        name = joint_name(steps)
        return Step(kernel, tuple(line.registers), steps[0].stage, reads, writes, name, memory=memory)


def _ambiguous(small: Iterable[_Small]) -> list[_Small]:
    """Return the steps that use memory that some of `small` write by another address than theirs.

    Two addresses in one memory may mean the same element.
    """
    items = list(small)
    written = {buffer for item in items for buffer in item.step.writes}
    roots: dict[Buffer, int] = {}
    found = []
    for item in items:
        # In order, as what the first address of a buffer is depends on it.
        used = dict.fromkeys([(buffer, root) for root, buffer in item.memory.items() if buffer in written])
        dtypes = {(g.root, g.dtype) for g in item.given if isinstance(g, Element)}
        is_clear = all(roots.setdefault(buffer, root) == root for buffer, root in used)
        if not is_clear or len(used) < len({b for b, _ in used}) or len(dtypes) < len({r for r, _ in dtypes}):
            found.append(item)
    return found


def _groups(items: Sequence[_Small], kept: int) -> dict[int, list[_Small]]:
    """Return the items to merge by the number of the kept steps that they run behind, in their order."""
    arriving: dict[int, list[int]] = {}
    for number, item in enumerate(items):
        arriving.setdefault(item.earliest, []).append(number)
    groups: dict[int, list[_Small]] = {}
    waiting: list[int] = []
    due = kept
    for position in range(kept + 1):
        waiting += arriving.get(position, [])
        due = min([due, *(items[number].latest for number in arriving.get(position, []))])
        if waiting and due == position:
            groups[position] = [items[number] for number in sorted(waiting)]
            waiting, due = [], kept
    return groups


def _find_places(order: Sequence[_Small | Step], kept: int) -> None:
    """Find between which of the `kept` steps each of the others may run."""
    position = 0
    bounds = _Bounds()
    for item in order:
        if isinstance(item, Step):
            position += 1
            bounds.note(item, position)
        else:
            item.earliest = bounds.bound(item.step)
            bounds.note(item.step, item.earliest)
    bounds = _Bounds()
    for item in reversed(order):
        if isinstance(item, Step):
            # Bounds are counted from the end: what is behind step j runs at j - 1 or before.
            bounds.note(item, kept - position + 1)
            position -= 1
        else:
            bound = bounds.bound(item.step)
            item.latest = kept - bound
            bounds.note(item.step, bound)


class _Bounds(Struct):
    """For each buffer, the greatest bound of a step that reads it, and of one that writes it."""

    read: dict[Buffer, int] = field(default_factory=dict)
    written: dict[Buffer, int] = field(default_factory=dict)

    def bound(self, step: Step) -> int:
        """Return the greatest bound of the steps that conflict with `step`."""
        before = [self.written.get(buffer, 0) for buffer in (*step.reads, *step.writes)]
        return max(chain(before, (self.read.get(buffer, 0) for buffer in step.writes)), default=0)

    def note(self, step: Step, bound: int) -> None:
        for buffers, bounds in ((step.reads, self.read), (step.writes, self.written)):
            for buffer in buffers:
                bounds[buffer] = max(bounds.get(buffer, 0), bound)


def _drop_unused_views(table: Table) -> None:
    """Drop the addresses of views that nothing reads any more."""
    used = set(registers_outside_calls(table))
    used.update(register for step in table.steps for register in step.arguments)
    used = set(map(table.canonical, used))
    for stage in sorted(table.addresses, reverse=True):
        kept = []
        for view in reversed(table.addresses[stage]):
            if view[0] in used:
                used.add(table.canonical(view[1]))
                kept.append(view)
        table.addresses[stage] = kept[::-1]
