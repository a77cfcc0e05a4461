"""Joining of loops: calls over the same range that share arrays, or only reduce, become one call of one loop.

A joined loop reads each array once, passes elements on in registers, computes any number of arrays and
reductions, and adds to elements of arrays; an array that only its members use disappears. Loops of one range
are joined unless something between them needs the one and is needed by the other. Calls that may fail keep
their order, so the same error is raised first.

Equal calls stay equal: a kind of joined loop is kept only if compiling it costs no more than compiling the
kernels that it makes needless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from engine.lowering.kernels.flat import Addition, flat
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.loops import Argument, Kernel
from engine.lowering.memory_uses import MemoryUses, joint_name, outside
from engine.lowering.merging import MAX_OPENED
from engine.lowering.statements import Ref, ScalarRepeat, Statement
from engine.lowering.step_order import followed_steps, ordered
from engine.lowering.steps import Buffer, FlatAddition, FlatOperand, FlatStore, FlatWork, Step
from engine.lowering.table import Table

MAX_STATEMENTS = 100
"""The largest number of statements in a joined loop."""
MAX_ARRAYS = 16
"""The largest number of arrays and numbers that it reads and writes."""
MAX_ADDITIONS = 8
"""The largest number of arrays that it adds to: what is added is kept for a block, on the stack."""
_SEGMENT = 1000
"""The number of steps among which loops are joined: the work grows with its square."""
_WINDOW = 32
"""A call joins one of the last loops of its range, at most so many back."""
_LOOP_COST, _STATEMENT_COST, _SLACK = 20.0, 0.5, 1.5
"""Estimates of compile time: of a loop, and of a statement; how much more a joined loop may cost."""


Place = tuple[int, bool, int | None]
"""The elements that a loop uses of some memory: the pointer, is_repeated and stride of a FlatOperand."""


def join_loops(table: Table) -> None:
    """Join calls of loops in `table`, stage by stage."""
    uses = MemoryUses(table)
    calls = Counter(id(step.kernel) for step in table.steps)
    segments = [(steps, followed_steps(steps)) for steps in _segments(table.steps)]
    groups = [_groups(table, steps, followed) for steps, followed in segments]
    joined = [[(group, _joined(group, uses)) for group in found] for found in groups]
    kept = _worthwhile([pair for found in joined for pair in found], calls)
    table.steps = []
    for (steps, followed), found in zip(segments, joined, strict=True):
        chosen = [(group.steps, step) for group, step in found if step.kernel in kept]
        table.steps += ordered(steps, followed, chosen) if chosen else steps


def _segments(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps of each stage, in parts."""
    stages: dict[int, list[Step]] = {}
    for step in steps:
        stages.setdefault(step.stage, []).append(step)
    for found in stages.values():
        for start in range(0, len(found), _SEGMENT):
            yield found[start : start + _SEGMENT]


class _Group(Struct, eq=False):
    """Steps to join: `written`, `read` and `reduced` say how they use memory; `arrays` have been seen.

    What they add to counts as `reduced`: no pass of the loop may read it.
    """

    number: int
    steps: list[Step] = field(default_factory=list)
    works: list[FlatWork] = field(default_factory=list)
    written: dict[Buffer, int] = field(default_factory=dict)
    read: dict[Buffer, set[Place]] = field(default_factory=dict)
    reduced: set[Buffer] = field(default_factory=set)
    arrays: set[int] = field(default_factory=set)
    statements: int = 0
    additions: int = 0
    overwrites: bool = False

    def takes(self, work: FlatWork, pointers: set[int]) -> bool:
        """Return True if the loop of `work`, whose arrays are at `pointers`, may run inside this one.

        The caller has found that they share arrays, or only reduce.
        """
        is_small = self.statements + len(work.statements) <= MAX_STATEMENTS
        is_small = is_small and self.additions + len(work.additions) <= MAX_ADDITIONS
        return is_small and len(self.arrays | pointers) <= MAX_ARRAYS and self._agrees(work)

    def _agrees(self, work: FlatWork) -> bool:
        """Return True if both use the same elements in a pass of all memory that one of them writes.

        What is added may be read behind all stores of the loop: none of them overwrites what it reads.
        """
        if work.additions and self.overwrites:
            return False
        for operand in work.operands:
            if operand.buffer in self.reduced:
                return False
            if operand.buffer in self.written and _place(operand) != _each(self.written[operand.buffer]):
                return False
        for store in work.stores:
            places = {*self.read.get(store.buffer, ())}
            if store.buffer in self.written:
                places.add(_each(self.written[store.buffer]))
            if store.buffer in self.reduced or not places <= {_each(store.pointer)}:
                return False
            if self.additions and store.buffer in self.read:
                return False
        used = {*self.written, *self.read, *self.reduced}
        return used.isdisjoint(result.buffer for result in work.accumulated)

    def add(self, step: Step, work: FlatWork, pointers: set[int]) -> None:
        """Add a step, whose arrays are at `pointers`."""
        self.steps.append(step)
        self.works.append(work)
        self.statements += len(work.statements)
        self.arrays |= pointers
        for store in work.stores:
            self.overwrites = self.overwrites or store.buffer in self.read
            self.written[store.buffer] = store.pointer
        self.reduced.update(result.buffer for result in work.accumulated)
        self.additions += len(work.additions)
        for operand in work.operands:
            if operand.buffer is not None:
                self.read.setdefault(operand.buffer, set()).add(_place(operand))


def _place(operand: FlatOperand) -> Place:
    return operand.pointer, operand.is_repeated, operand.stride


def _each(pointer: int) -> Place:
    """Return the place of a contiguous array with an element for each pass."""
    return pointer, False, None


def _arrays(work: FlatWork) -> set[int]:
    """Return the pointers of the arrays that `work` reads or writes."""
    read = {operand.pointer for operand in work.operands if not operand.is_repeated}
    return read | {store.pointer for store in work.stores} | {added.pointer for added in work.additions}


class _Grouping:
    """The groups of loops in a part of the steps, and which of them depend on which."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self._ranges: dict[int, list[_Group]] = {}
        self._behind: list[int] = []
        """For each group, the groups that it depends on, as bits."""
        self._extended: dict[int, int] = {}
        """The groups of several steps, and how many groups there were when they got the last one."""

    def place(self, step: Step, work: FlatWork | None, needed: set[int]) -> int:
        """Return the number of the group that gets `step`, which depends on the groups `needed`."""
        pointers = set() if work is None else _arrays(work)
        group = None if work is None else self._taking(work, pointers, needed)
        if group is None:
            group = self._begin(needed, work)
        else:
            self._depend(group.number, needed - {group.number})
            self._extended.pop(group.number, None)
            self._extended[group.number] = len(self.groups)
        if work is not None:
            group.add(step, work, pointers)
        return group.number

    def _begin(self, needed: set[int], work: FlatWork | None) -> _Group:
        group = _Group(len(self.groups))
        self.groups.append(group)
        self._behind.append(self._all_behind(needed))
        if work is not None:
            self._ranges.setdefault(work.extent, []).append(group)
        return group

    def _taking(self, work: FlatWork, pointers: set[int], needed: set[int]) -> _Group | None:
        """Return the last group that takes `work`, such that nothing `needed` lies behind it."""
        behind = self._behind
        for group in reversed(self._ranges.get(work.extent, [])[-_WINDOW:]):
            # What most groups fail is asked first.
            shares = not pointers.isdisjoint(group.arrays) or not (
                group.written or work.stores or work.additions
            )
            if shares and group.takes(work, pointers):
                number = group.number
                if not any(behind[other] >> number & 1 for other in needed if other != number):
                    return group
        return None

    def _all_behind(self, needed: set[int]) -> int:
        bits = 0
        for other in needed:
            bits |= self._behind[other] | 1 << other
        return bits

    def _depend(self, number: int, needed: set[int]) -> None:
        """Note that group `number`, and all that depend on it, depend on the groups `needed`."""
        behind, bits = self._behind, self._all_behind(needed)
        if bits & ~behind[number]:
            behind[number] |= bits
            for other in chain(range(number + 1, len(behind)), self._extended_since(number)):
                if behind[other] >> number & 1:
                    behind[other] |= bits

    def _extended_since(self, number: int) -> Iterator[int]:
        """Yield the groups that got a step when group `number` was there: earlier ones may depend on it."""
        for other, count in reversed(self._extended.items()):
            if count <= number:
                return
            yield other


def _groups(table: Table, steps: Sequence[Step], followed: Sequence[set[int]]) -> list[_Group]:
    """Return the groups of two or more of `steps` that may be joined."""
    grouping = _Grouping()
    group_of: list[int] = []
    for step, positions in zip(steps, followed, strict=True):
        needed = {group_of[position] for position in positions}
        group_of.append(grouping.place(step, _work(table, step), needed))
    return [
        group
        for group in grouping.groups
        if len(group.steps) > 1 and not all(_is_short(table, step) for step in group.steps)
    ]


def _is_short(table: Table, step: Step) -> bool:
    """Return True if the loop of `step` is not to be joined alone: it may become a straight line."""
    number = None if step.work is None else table.number(step.work.extent)
    if step.work is None or number is None:
        return False
    return number * (len(step.work.statements) + 1) <= MAX_OPENED


def _work(table: Table, step: Step) -> FlatWork | None:
    """Return the work of `step` with registers that are equal where numbers are, if it may be joined."""
    work = step.work
    if work is None:
        return None
    canonical = table.canonical
    extent = canonical(work.extent)
    if extent == work.extent and all(operand.stride is None for operand in work.operands):
        return work
    operands = tuple(o if o.stride is None else replace(o, stride=canonical(o.stride)) for o in work.operands)
    return replace(work, extent=extent, operands=operands)


def _joined(group: _Group, uses: MemoryUses) -> Step:
    """Return the step that does the work of `group`."""
    steps = group.steps
    members = {id(step) for step in steps}
    inside = {buffer for buffer in group.written if uses.is_inside(buffer, members)}
    work = _joint_work(group.works, inside)
    kernel = flat(
        [
            NestOperand(o.dtype, (o.is_repeated,), o.stride is not None, is_indexed=o.is_indexed)
            for o in work.operands
        ],
        work.statements,
        [store.ref for store in work.stores],
        [(r.kind, r.ref, r.accumulator, r.dtype) for r in work.reductions],
        [Addition(a.ref, a.index, a.from_end, a.dtype) for a in work.additions],
    )
    found = [_argument(work, argument) for argument in kernel.arguments]
    return Step(
        kernel,
        tuple(register for register, _ in found),
        steps[0].stage,
        outside(inside, *(step.reads for step in steps)),
        outside(inside, *(step.writes for step in steps)),
        joint_name(steps),
        memory=tuple(buffer for _, buffer in found),
        lengths=(work.extent,),
    )


def _argument(work: FlatWork, argument: Argument) -> tuple[int, Buffer | None]:
    """Return the register to pass as `argument`, and the buffer that it is an address in."""
    match argument:
        case ("input", int(i)):
            return work.operands[i].pointer, work.operands[i].buffer
        case ("stride", int(i), _):
            stride = work.operands[i].stride
            assert stride is not None
            return stride, None
        case ("output", int(k)):
            written = [(to.pointer, to.buffer) for to in work.stores]
            return [*written, *((to.pointer, to.buffer) for to in work.accumulated)][k]
    return work.extent, None


def _joint_work(works: Sequence[FlatWork], inside: set[Buffer]) -> FlatWork:
    """Return the work of all `works`; arrays `inside` are not stored."""
    operands: dict[FlatOperand, int] = {}
    statements: dict[Statement | ScalarRepeat, int] = {}
    stores: dict[int, FlatStore] = {}
    reductions, additions = [], []
    for work in works:
        inputs: list[Ref] = [
            stores[o.pointer].ref
            if o.pointer in stores and not o.is_repeated
            else ("input", operands.setdefault(o, len(operands)))
            for o in work.operands
        ]
        places: list[int] = []
        for statement in work.statements:
            moved = replace(
                statement, arguments=tuple(_moved(r, inputs, places) for r in statement.arguments)
            )
            places.append(statements.setdefault(moved, len(statements)))
        stores.update((s.pointer, replace(s, ref=_moved(s.ref, inputs, places))) for s in work.stores)
        reductions += [replace(r, ref=_moved(r.ref, inputs, places)) for r in work.reductions]
        additions += [_moved_addition(a, inputs, places) for a in work.additions]
    stored = tuple(store for store in stores.values() if store.buffer not in inside)
    parts = tuple(operands), tuple(statements), stored, tuple(reductions), tuple(additions)
    return FlatWork(works[0].extent, *parts)


def _moved(ref: Ref, inputs: Sequence[Ref], places: Sequence[int]) -> Ref:
    if ref[0] == "input":
        return inputs[ref[1]]
    if ref[0] == "value":
        return ("value", places[ref[1]])
    return ("result", places[ref[1]], ref[2]) if ref[0] == "result" else ref


def _moved_addition(addition: FlatAddition, inputs: Sequence[Ref], places: Sequence[int]) -> FlatAddition:
    index, from_end = (inputs[position] for position in (addition.index, addition.from_end))
    assert index[0] == from_end[0] == "input", "an index is checked before the loop that adds by it"
    return replace(addition, ref=_moved(addition.ref, inputs, places), index=index[1], from_end=from_end[1])


def _worthwhile(joined: Sequence[tuple[_Group, Step]], calls: Counter[int]) -> set[Kernel | None]:
    """Return the kernels of joined loops that cost no more than the kernels that they make needless."""
    kinds: dict[Kernel | None, list[_Group]] = {}
    for group, step in joined:
        kinds.setdefault(step.kernel, []).append(group)
    kept = set()
    for kernel, groups in kinds.items():
        members = [step for group in groups for step in group.steps]
        replaced = Counter(id(step.kernel) for step in members)
        parts = {id(step.kernel): step for step in members}
        saved = sum(
            _LOOP_COST + _STATEMENT_COST * len(step.work.statements)
            for number, step in parts.items()
            if replaced[number] == calls[number] and step.work is not None
        )
        cost = _LOOP_COST + _STATEMENT_COST * groups[0].statements
        if cost <= _SLACK * saved:
            kept.add(kernel)
    return kept
