"""From the table of a lowered graph to a `Program`: memory is planned, registers are numbered, code is laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from cachegraph.key import CacheKey
from engine.backend.instructions import Assembler
from engine.backend.loops import Kernel
from engine.backend.lower import Lowering
from engine.backend.program import Allocation, BoundArray, KernelUse, Program, Site, Yield, array_input
from engine.backend.registers import ARRAY_TYPE, DESCRIPTORS
from engine.backend.table import Buffer, Check, Step, Table, Value
from engine.graph.variables import Constant

_ALIGNMENT = 64


@dataclass
class _Layout:
    """Code under construction, and what is said about it."""

    table: Table
    kernels: Mapping[Kernel, int]
    area: int
    assembler: Assembler = field(default_factory=Assembler)
    yields: list[Yield] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)

    def check(self, check: Check) -> int:
        self.sites.append(Site(len(self.assembler.code), check.kind, check.op, check.about))
        return len(self.sites) - 1


def assemble(
    lowering: Lowering,
    results: Sequence[Value],
    n_outputs: int,
    updated: Sequence[int],
    machine: CacheKey,
    keys: Mapping[Kernel, CacheKey],
) -> Program:
    """The program of a lowered graph. The first `n_outputs` of `results` are returned, the others replace the values
    of the inputs at the positions `updated`; `keys` has the key of each kernel, `machine` is that of the machine."""
    table = lowering.table
    kernels = {kernel: table.new() for kernel in keys}
    area = table.new(0, max((len(step.arguments) for step in table.steps), default=0))
    scratch = _plan_scratch(table)
    layout = _Layout(table, kernels, area)
    inputs = [array_input(variable) for variable in lowering.inputs]
    for position, (array, register) in enumerate(zip(inputs, lowering.input_registers, strict=True)):
        _bind(layout, register, position, array.dtype, len(array.shape))
    last = max(
        [
            0,
            *(step.stage for step in table.steps),
            *table.arithmetic,
            *table.addresses,
            *(b.stage for b in table.buffers),
        ]
    )
    for stage in range(last + 1):
        _lay_out_stage(layout, stage, scratch)
    layout.assembler.emit("HALT")
    bound, constants = _bound_arrays(lowering)
    numbers = [cast(Any, value.buffer).result for value in results]
    registers = np.zeros(table.count, dtype="<i8")
    for register, number in table.initial.items():
        registers[register] = number
    return Program(
        inputs=tuple(inputs),
        bound=bound,
        kernels=(
            _use(0, machine),
            *(_use(register, keys[kernel]) for kernel, register in kernels.items()),
        ),
        yields=tuple(layout.yields),
        sites=tuple(layout.sites),
        outputs=tuple(numbers[:n_outputs]),
        updates=tuple(zip(updated, numbers[n_outputs:], strict=True)),
        code=np.array(layout.assembler.code, dtype="<i8").tobytes(),
        registers=registers.tobytes(),
        constants=constants,
    )


def _use(register: int, key: CacheKey) -> KernelUse:
    return KernelUse(register, key.hex, key.confirmation.hex())


def _bind(layout: _Layout, register: int, item: int, dtype: str, rank: int) -> None:
    layout.assembler.emit("BIND", register, item, ARRAY_TYPE, DESCRIPTORS[dtype], rank)


def _lay_out_stage(layout: _Layout, stage: int, scratch: Mapping[int, list[list[Buffer]]]) -> None:
    """Arithmetic on lengths, a yield for memory if any is needed, addresses of views, then the kernels of `stage`."""
    places = _lay_out_arithmetic(layout, stage, scratch.get(stage, []))
    arrays = [b for b in layout.table.buffers if b.stage == stage and b.result is not None]
    if places or arrays:
        _lay_out_yield(layout, places, arrays)
    for buffers, (base, offset) in places:
        for buffer in buffers:
            layout.assembler.emit("ADD", buffer.pointer, base, offset)
    for view in layout.table.addresses.get(stage, []):
        layout.assembler.emit("ADD", *view)
    for step in layout.table.steps:
        if step.stage == stage:
            _lay_out_step(layout, step)


Places = list[tuple[list[Buffer], tuple[int, int]]]


def _lay_out_arithmetic(layout: _Layout, stage: int, groups: list[list[Buffer]]) -> Places:
    """The stage's own arithmetic, then where in its scratch each group of buffers lies: (base, offset) registers."""
    table, assembler = layout.table, layout.assembler
    for name, operands, check in table.arithmetic.get(stage, []):
        site = () if check is None else (layout.check(check),)
        assembler.emit(name, *operands, *site)
    if not groups:
        return []
    base, offset = table.new(), table.constant(0)
    places: Places = []
    for buffers in groups:
        places.append((buffers, (base, offset)))
        end, aligned = table.new(), table.new()
        assembler.emit("ADD", end, offset, table.canonical(buffers[0].nbytes))
        assembler.emit("ALIGN", aligned, end)
        offset = aligned
    layout.yields.append(Yield(offset, base, ()))
    return places


def _lay_out_yield(layout: _Layout, places: Places, arrays: list[Buffer]) -> None:
    allocations = tuple(
        Allocation(cast(int, b.result), b.dtype, tuple(map(layout.table.canonical, b.dims))) for b in arrays
    )
    scratch = layout.yields.pop() if places else Yield(-1, -1, ())
    layout.yields.append(scratch._replace(arrays=allocations))
    layout.assembler.emit("YIELD", len(layout.yields) - 1)
    for item, buffer in enumerate(arrays):
        _bind(layout, buffer.pointer, item, buffer.dtype, len(buffer.dims))


def _lay_out_step(layout: _Layout, step: Step) -> None:
    arguments = [layout.table.canonical(register) for register in step.arguments]
    if step.kernel is None:
        layout.assembler.emit("STORE64", *arguments)
        return
    layout.sites.append(Site(len(layout.assembler.code), "kernel", step.op, step.about))
    layout.assembler.call(layout.kernels[step.kernel], layout.area, arguments)


def _plan_scratch(table: Table) -> dict[int, list[list[Buffer]]]:
    """Stage -> groups of buffers of equal size that share memory, because none is in use while another is.

    Linear scan over the steps (Poletto and Sarkar, "Linear scan register allocation", 1999).
    """
    steps = sorted(table.steps, key=lambda step: step.stage)
    last_use: dict[Buffer, int] = {}
    for time, step in enumerate(steps):
        last_use.update(dict.fromkeys((*step.reads, *step.writes), time))
    groups: dict[int, list[list[Buffer]]] = {}
    for time, step in enumerate(steps):
        for buffer in step.writes:
            if buffer.result is None:
                _place(table, buffer, last_use, time, groups.setdefault(buffer.stage, []))
    return groups


def _place(
    table: Table, buffer: Buffer, last_use: Mapping[Buffer, int], time: int, groups: list[list[Buffer]]
) -> None:
    for group in groups:
        if buffer in group:
            return
        free = not group[-1].is_loaded and last_use[group[-1]] < time
        if free and table.canonical(group[0].nbytes) == table.canonical(buffer.nbytes):
            group.append(buffer)
            return
    groups.append([buffer])


def _bound_arrays(lowering: Lowering) -> tuple[tuple[BoundArray, ...], bytes]:
    """The arrays to bind when the program is loaded, and the bytes of those that are not data."""
    bound = [_bound(register, constant, number, 0) for register, constant, number in lowering.data]
    content = bytearray()
    for register, constant in lowering.constants:
        content.extend(bytes(-len(content) % _ALIGNMENT))
        bound.append(_bound(register, constant, None, len(content)))
        content.extend(np.ascontiguousarray(constant.data).tobytes())
    return tuple(bound), bytes(content)


def _bound(register: int, constant: Constant, data: int | None, offset: int) -> BoundArray:
    return BoundArray(register, constant.data.dtype.name, constant.data.shape, data, offset)
