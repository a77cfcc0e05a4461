"""Joining of loops: calls over the same range that share arrays, or only reduce, become one call of one loop.

A joined loop reads each array once, passes elements on in registers, and computes any number of arrays
and reductions; an array that only its members use disappears. Loops of one range are joined unless something
between them needs the one and is needed by the other. Calls that may fail keep their order, so the same
error is raised first.

Equal calls stay equal: a kind of joined loop is kept only if compiling it costs no more than compiling the
kernels that it makes needless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct, field
from msgspec.structs import replace

from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import flat
from engine.lowering.loops import Argument, Call, Compute, Evaluate, Fail, Kernel, Node, walk
from engine.lowering.memory_uses import MemoryUses, joint_name, outside
from engine.lowering.merging import MAX_OPENED
from engine.lowering.statements import Ref, Repeat, Statement
from engine.lowering.steps import Buffer, FlatOperand, FlatStore, FlatWork, Step
from engine.lowering.table import Table
from engine.scalar.embedded import Embedded

MAX_STATEMENTS = 100
"""The largest number of statements in a joined loop."""
MAX_ARRAYS = 16
"""The largest number of arrays and numbers that it reads and writes."""
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
    segments = list(_segments(table.steps))
    groups = [_groups(table, steps) for steps in segments]
    joined = [[(group, _joined(table, group, uses)) for group in found] for found in groups]
    kept = _worthwhile([pair for found in joined for pair in found], calls)
    table.steps = []
    for steps, found in zip(segments, joined, strict=True):
        chosen = [(group.steps, step) for group, step in found if step.kernel in kept]
        table.steps += _ordered(steps, chosen) if chosen else steps


def _segments(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps of each stage, in parts."""
    stages: dict[int, list[Step]] = {}
    for step in steps:
        stages.setdefault(step.stage, []).append(step)
    for found in stages.values():
        for start in range(0, len(found), _SEGMENT):
            yield found[start : start + _SEGMENT]


class _Group(Struct, eq=False):
    """Steps to join: `written`, `read` and `reduced` say how they use memory; `arrays` have been seen."""

    number: int
    steps: list[Step] = field(default_factory=list)
    written: dict[Buffer, int] = field(default_factory=dict)
    read: dict[Buffer, set[Place]] = field(default_factory=dict)
    reduced: set[Buffer] = field(default_factory=set)
    arrays: set[int] = field(default_factory=set)
    statements: int = 0

    def takes(self, work: FlatWork) -> bool:
        """Return True if the loop of `work` may run inside this one."""
        if self.statements + len(work.statements) > MAX_STATEMENTS:
            return False
        pointers = _arrays(work)
        shares = not pointers.isdisjoint(self.arrays) or not (self.written or work.stores)
        return shares and len(self.arrays | pointers) <= MAX_ARRAYS and self._agrees(work)

    def _agrees(self, work: FlatWork) -> bool:
        """Return True if both use the same elements in a pass of all memory that one of them writes."""
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
        used = {*self.written, *self.read, *self.reduced}
        return used.isdisjoint(reduction.buffer for reduction in work.reductions)

    def add(self, step: Step, work: FlatWork) -> None:
        """Add a step."""
        self.steps.append(step)
        self.statements += len(work.statements)
        self.arrays |= _arrays(work)
        self.written.update((store.buffer, store.pointer) for store in work.stores)
        self.reduced.update(reduction.buffer for reduction in work.reductions)
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
    return read | {store.pointer for store in work.stores}


def _groups(table: Table, steps: Sequence[Step]) -> list[_Group]:
    """Return the groups of two or more of `steps` that may be joined."""
    groups: list[_Group] = []
    ranges: dict[int, list[_Group]] = {}
    behind: list[int] = []  # for each group, the groups that it depends on, as bits
    before = _Before()
    for step in steps:
        needed = before.of(step)
        work = _work(table, step)
        found = None if work is None else _taking(ranges.get(work.extent, []), behind, work, needed)
        if found is None:
            found = _Group(len(groups))
            groups.append(found)
            behind.append(0)
            if work is not None:
                ranges.setdefault(work.extent, []).append(found)
        if work is not None:
            found.add(step, work)
        before.note(step, found.number)
        _depend(behind, found.number, needed - {found.number})
    return [
        group
        for group in groups
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
    operands = tuple(o if o.stride is None else o._replace(stride=canonical(o.stride)) for o in work.operands)
    return replace(work, extent=extent, operands=operands)


def _taking(
    groups: Sequence[_Group], behind: Sequence[int], work: FlatWork, needed: set[int]
) -> _Group | None:
    """Return the last group that takes `work`, such that nothing `needed` lies behind it."""
    for group in reversed(groups[-_WINDOW:]):
        if group.takes(work):
            is_between = any(behind[other] >> group.number & 1 for other in needed if other != group.number)
            if not is_between:
                return group
    return None


def _depend(behind: list[int], number: int, needed: set[int]) -> None:
    """Note that group `number`, and all that depend on it, depend on the groups `needed`."""
    bits = 0
    for other in needed:
        bits |= behind[other] | 1 << other
    if bits & ~behind[number]:
        behind[number] |= bits
        for other, found in enumerate(behind):
            if found >> number & 1:
                behind[other] |= bits


class _Before(Struct):
    """The numbers of the steps that a further step has to follow at once, as they are noted."""

    readers: dict[Buffer, set[int]] = field(default_factory=dict)
    """Those that read a buffer since it was written last."""
    writer: dict[Buffer, int] = field(default_factory=dict)
    failing: int | None = None
    ends: dict[Kernel, bool] = field(default_factory=dict)
    """The kernels that may end before they are done, found once for all of their calls."""

    def of(self, step: Step) -> set[int]:
        """Return the numbers of the steps that `step` has to follow."""
        found = {self.writer[b] for b in (*step.reads, *step.writes) if b in self.writer}
        found.update(n for buffer in step.writes for n in self.readers.get(buffer, ()))
        if self.failing is not None and self._may_fail(step):
            found.add(self.failing)
        return found

    def note(self, step: Step, number: int) -> None:
        for buffer in step.reads:
            self.readers.setdefault(buffer, set()).add(number)
        for buffer in step.writes:
            self.readers.pop(buffer, None)
            self.writer[buffer] = number
        if self._may_fail(step):
            self.failing = number

    def _may_fail(self, step: Step) -> bool:
        if step.kernel is None:
            return step.loop is not None or step.invocation is not None
        if step.work is not None:
            return False
        if step.kernel not in self.ends:
            self.ends[step.kernel] = any(map(_ends_kernel, walk(step.kernel.body)))
        return self.ends[step.kernel]


def _ends_kernel(node: Node) -> bool:
    """Return True if `node` may end its kernel, or calls something of its own."""
    return isinstance(node, Fail | Call | Evaluate) or (
        isinstance(node, Compute) and isinstance(node.op, Embedded)
    )


def _joined(table: Table, group: _Group, uses: MemoryUses) -> Step:
    """Return the step that does the work of `group`."""
    steps = group.steps
    members = {id(step) for step in steps}
    inside = {buffer for buffer in group.written if uses.is_inside(buffer, members)}
    work = _joint_work([work for step in steps if (work := _work(table, step)) is not None], inside)
    kernel = flat(
        [
            NestOperand(o.dtype, (o.is_repeated,), o.stride is not None, is_indexed=o.is_indexed)
            for o in work.operands
        ],
        work.statements,
        [store.ref for store in work.stores],
        [(r.kind, r.ref, r.accumulator, r.dtype) for r in work.reductions],
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
            return [*written, *((to.pointer, to.buffer) for to in work.reductions)][k]
    return work.extent, None


def _joint_work(works: Sequence[FlatWork], inside: set[Buffer]) -> FlatWork:
    """Return the work of all `works`; arrays `inside` are not stored."""
    operands: dict[FlatOperand, int] = {}
    statements: dict[Statement | Repeat, int] = {}
    stores: dict[int, FlatStore] = {}
    reductions = []
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
        stores.update((s.pointer, s._replace(ref=_moved(s.ref, inputs, places))) for s in work.stores)
        reductions += [r._replace(ref=_moved(r.ref, inputs, places)) for r in work.reductions]
    stored = tuple(store for store in stores.values() if store.buffer not in inside)
    return FlatWork(works[0].extent, tuple(operands), tuple(statements), stored, tuple(reductions))


def _moved(ref: Ref, inputs: Sequence[Ref], places: Sequence[int]) -> Ref:
    if ref[0] == "input":
        return inputs[ref[1]]
    if ref[0] == "value":
        return ("value", places[ref[1]])
    return ("result", places[ref[1]], ref[2]) if ref[0] == "result" else ref


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


def _ordered(steps: Sequence[Step], joined: Sequence[tuple[Sequence[Step], Step]]) -> list[Step]:
    """Return `steps` with groups of them replaced by one each: as early as before, where possible."""
    unit_of = {id(step): k for k, (members, _) in enumerate(joined) for step in members}
    units = [step for _, step in joined]
    before, needed = _Before(), dict[int, set[int]]()
    first: dict[int, int] = {}
    for position, step in enumerate(steps):
        unit = unit_of.setdefault(id(step), len(units))
        if unit == len(units):
            units.append(step)
        first.setdefault(unit, position)
        needed.setdefault(unit, set()).update(before.of(step) - {unit})
        before.note(step, unit)
    users: dict[int, list[int]] = {}
    for unit, others in needed.items():
        for other in others:
            users.setdefault(other, []).append(unit)
    ready = [(first[unit], unit) for unit, others in needed.items() if not others]
    heapify(ready)
    done = []
    while ready:
        _, unit = heappop(ready)
        done.append(units[unit])
        for user in users.get(unit, ()):
            needed[user].discard(unit)
            if not needed[user]:
                heappush(ready, (first[user], user))
    assert len(done) == len(units), "joined loops need each other"
    return done
