"""Assembly of a `Program` from the table of a lowered graph.

Memory is planned, registers are numbered, and the code is laid out stage by stage (steps.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from cachegraph.key import CacheKey
from cachegraph.pickling.large_arrays import LARGE, add_blob
from engine.graph.represented import array_of_constant
from engine.graph.variables import Constant
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering
from engine.lowering.scratch import Scratch, plan_scratch
from engine.lowering.steps import (
    Buffer,
    CallbackInvocation,
    CarriedRegister,
    Check,
    LoopStep,
    Step,
    Value,
    region_of,
)
from engine.lowering.table import Table
from engine.runtime.callbacks import Callback
from engine.runtime.instructions import Assembler
from engine.runtime.program import (
    Allocation,
    BoundArray,
    CallbackUse,
    Invocation,
    KernelUse,
    Operand,
    Program,
    Returned,
    Site,
    Yield,
    array_input,
)
from engine.runtime.registers import ARRAY_TYPE, DESCRIPTORS, FEWEST_FOR_PARTS

_ALIGNMENT = 64


class _ProgramLayout:
    """The code of a program under construction, and its records for failures and stops."""

    def __init__(
        self,
        table: Table,
        scratch: Scratch,
        kernels: Mapping[Kernel, int],
        callbacks: Sequence[Callback],
        area: int,
        writers: Mapping[Buffer, str],
    ) -> None:
        self.table = table
        self.scratch = scratch
        self.kernels = kernels
        self.callbacks = callbacks
        self.area = area
        self.writers = writers
        """The name of the Op that writes each buffer first, for messages."""
        self.assembler = Assembler()
        self.yields: list[Yield] = []
        self.invocations: list[Invocation] = []
        self.sites: list[Site] = []
        self.is_after_call = False
        self.steps: dict[int, list[Step]] = {}
        for step in self.table.steps:
            self.steps.setdefault(step.stage, []).append(step)
        self.results: dict[int, list[Buffer]] = {}
        for buffer in self.table.buffers:
            if buffer.result is not None:
                self.results.setdefault(buffer.stage, []).append(buffer)

    def check(self, check: Check) -> int:
        self.sites.append(Site(len(self.assembler.code), check.kind, check.op, check.about))
        return len(self.sites) - 1

    def name_arrays(self, buffers: Sequence[Buffer]) -> None:
        """Record which arrays the next instruction stops for (runtime/failures.py)."""
        canonical = self.table.canonical
        about = [
            f"{b.dtype} {','.join(str(canonical(dim)) for dim in b.dims)} {self.writers.get(b, '')}"
            for b in buffers
        ]
        self.sites.append(Site(len(self.assembler.code), "memory", "", tuple(about)))

    def bind(self, register: int, item: int, dtype: str, rank: int) -> None:
        self.assembler.emit("BIND", register, item, ARRAY_TYPE, DESCRIPTORS[dtype], rank)

    def lay_out_stages(self, first: int) -> None:
        """Lay out the stages from `first` to the last of its region."""
        table = self.table
        used = {*self.steps, *(buffer.stage for buffer in table.buffers)}
        used.update(table.arithmetic, table.addresses)
        last = max((stage for stage in used if region_of(stage) == region_of(first)), default=first)
        for stage in range(first, last + 1):
            self.lay_out_stage(stage)

    def lay_out_stage(self, stage: int) -> None:
        """Lay out arithmetic, stops for memory, addresses of views, then the kernels of `stage`."""
        table, assembler = self.table, self.assembler
        for name, operands, check in table.arithmetic.get(stage, []):
            site = () if check is None else (self.check(check),)
            assembler.emit(name, *operands, *site)
        groups = self.scratch.get(stage, [])
        self.lay_out_scratch([buffers for buffers in groups if not buffers[0].is_kept])
        for buffers in groups:
            if buffers[0].is_kept:
                self.lay_out_scratch([buffers])
        self.lay_out_results(self.results.get(stage, []))
        for view in table.addresses.get(stage, []):
            assembler.emit("ADD", *view)
        for step in self.steps.get(stage, []):
            if step.loop is None:
                self.lay_out_step(step)
            else:
                self.lay_out_loop(step.loop)

    def lay_out_scratch(self, groups: list[list[Buffer]]) -> None:
        """Place each group of buffers in its stage's scratch, behind a stop that makes room."""
        if not groups:
            return
        table, assembler = self.table, self.assembler
        base, present, end = table.new(), table.new(), table.constant(0)
        offsets = []
        for buffers in groups:
            offsets.append(end)
            behind, end = table.new(), table.new()
            assembler.emit("ADDSAT", behind, offsets[-1], table.canonical(buffers[0].nbytes))
            assembler.emit("ALIGN", end, behind)
        self.name_arrays([buffers[0] for buffers in groups])
        assembler.emit("GROW", end, present, len(self.yields))
        self.yields.append(Yield(end, base, present, ()))
        for buffers, offset in zip(groups, offsets, strict=True):
            for buffer in buffers:
                assembler.emit("ADD", buffer.pointer, base, offset)

    def lay_out_results(self, buffers: list[Buffer]) -> None:
        """Lay out a stop for the arrays that the caller makes."""
        if not buffers:
            return
        canonical = self.table.canonical
        arrays = [
            Allocation(cast(int, b.result), b.dtype, tuple(map(canonical, b.dims)), b.skipped)
            for b in buffers
        ]
        self.name_arrays(buffers)
        self.assembler.emit("YIELD", len(self.yields))
        self.yields.append(Yield(-1, -1, -1, tuple(arrays)))
        for item, buffer in enumerate(buffers):
            self.bind(buffer.pointer, item, buffer.dtype, len(buffer.dims))

    def lay_out_loop(self, loop: LoopStep) -> None:
        """Lay out the start of a loop, what it does once before the first pass, its passes and their end."""
        table, assembler = self.table, self.assembler
        zero, one = table.constant(0), table.constant(1)
        count = table.canonical(loop.count)
        for register, initial, _ in (CarriedRegister(loop.counter, zero), *loop.carried):
            assembler.emit("MOV", register, table.canonical(initial))
        # An inner loop may be too short to look for interrupts itself.
        assembler.emit("LOOK", int(region_of(loop.stage) == 0))
        skips = [assembler.skip(loop.counter, count)]
        self.lay_out_stage(loop.floor)
        begin = len(assembler.code)
        self.lay_out_stages(loop.first)
        stop = table.new()
        if loop.until is not None:
            assembler.emit("LOAD8", stop, loop.until.pointer)
            assembler.emit("ADD", cast(int, loop.done), loop.counter, one)
        for ring in loop.rings:
            for pair in pairwise(ring):
                assembler.emit("SWAP", *pair)
        for register, _, by in loop.carried:
            if by is not None:
                assembler.emit("ADD", register, register, table.canonical(by))
        if loop.until is not None:
            skips.append(assembler.skip(stop, one))
        if len(assembler.code) > begin:
            assembler.emit("NEXT", loop.counter, count, begin)
        for skip in skips:
            assembler.land(skip)

    def lay_out_step(self, step: Step) -> None:
        if step.invocation is not None:
            self.lay_out_invocation(step.invocation, step.op)
            return
        arguments = [self.table.canonical(register) for register in step.arguments]
        if step.kernel is None:
            self.assembler.emit("STORE64", *arguments)
            return
        if self.is_after_call and region_of(step.stage) == 0:
            # A kernel may take long, so interrupts are looked for between two; in a loop, NEXT does so.
            self.assembler.emit("LOOK", 1)
        self.is_after_call = True
        if step.elements is not None:
            self.assembler.emit("PARALLEL", self.table.canonical(step.elements), FEWEST_FOR_PARTS)
        self.sites.append(Site(len(self.assembler.code), "kernel", step.op, step.about))
        self.assembler.call(self.kernels[step.kernel], self.area, arguments)

    def lay_out_invocation(self, step: CallbackInvocation, op: str) -> None:
        canonical = self.table.canonical
        inputs = tuple(
            Operand(
                v.dtype,
                v.pointer,
                tuple(map(canonical, v.dims)),
                v.strides and tuple(map(canonical, v.strides)),
            )
            for v in step.inputs
        )
        outputs = tuple(Returned(v.dtype, dims) for v, dims in zip(step.outputs, step.dims, strict=True))
        self.invocations.append(Invocation(self.callbacks.index(step.callback), op, inputs, outputs))
        self.assembler.emit("INVOKE", len(self.invocations) - 1)
        for item, value in enumerate(step.outputs):
            self.bind(value.pointer, item, value.dtype, len(value.dims))


def assemble(
    lowering: Lowering,
    results: Sequence[Value],
    n_outputs: int,
    updated: Sequence[int],
    common: Sequence[CacheKey],
    keys: Mapping[Kernel, CacheKey],
    callbacks: Mapping[Callback, CallbackUse],
) -> Program:
    """Return the program of a lowered graph.

    The first `n_outputs` of `results` are returned to the caller; the others replace the values of the
    inputs at the positions `updated`. `keys` has the key of each kernel that it calls, `common` are
    those of the machine and the fast call, and `callbacks` has the record of each callback.
    """
    table = lowering.table
    kernels = {kernel: table.new() for kernel in keys}
    # Even a call without arguments has an area: that of a kernel for no elements.
    area = table.new(0, max((len(step.arguments) for step in table.steps), default=0) or 1)
    writers = {buffer: step.op for step in reversed(table.steps) for buffer in step.writes}
    layout = _ProgramLayout(table, plan_scratch(table), kernels, tuple(callbacks), area, writers)
    inputs = [array_input(variable.type) for variable in lowering.inputs]
    for position, (array, register) in enumerate(zip(inputs, lowering.input_registers, strict=True)):
        layout.bind(register, position, array.dtype, len(array.shape))
    layout.lay_out_stages(0)
    layout.assembler.emit("HALT")
    bound, constants, blobs = _bound_arrays(lowering)
    numbers = [cast(Any, value.buffer).result for value in results]
    registers = np.zeros(table.count, dtype="<i8")
    for register, number in table.initial.items():
        registers[register] = number
    return Program(
        inputs=tuple(inputs),
        bound=bound,
        kernels=(
            *(_use(0, key) for key in common),
            *(_use(register, keys[kernel]) for kernel, register in kernels.items()),
        ),
        callbacks=tuple(callbacks.values()),
        yields=tuple(layout.yields),
        invocations=tuple(layout.invocations),
        sites=tuple(layout.sites),
        outputs=tuple(numbers[:n_outputs]),
        updates=tuple(zip(updated, numbers[n_outputs:], strict=True)),
        code=np.array(layout.assembler.code, dtype="<i8").tobytes(),
        registers=registers.tobytes(),
        constants=constants,
        blobs=blobs,
    )


def _use(register: int, key: CacheKey) -> KernelUse:
    return KernelUse(register, key.hex, key.confirmation.hex())


def _bound_arrays(lowering: Lowering) -> tuple[tuple[BoundArray, ...], bytes, dict[str, bytes]]:
    """Return the arrays to bind at load time, the bytes of small constants, and blobs of large ones."""
    bound = [_bound(register, constant, number) for register, constant, number in lowering.data]
    content = bytearray()
    blobs: dict[str, bytes] = {}
    for register, constant in lowering.constants:
        value = np.ascontiguousarray(array_of_constant(constant)).tobytes()
        if len(value) > LARGE:
            bound.append(_bound(register, constant, blob=add_blob(blobs, value)))
            continue
        content.extend(bytes(-len(content) % _ALIGNMENT))
        bound.append(_bound(register, constant, offset=len(content)))
        content.extend(value)
    return tuple(bound), bytes(content), blobs


def _bound(
    register: int, constant: Constant, data: int | None = None, offset: int = 0, blob: str | None = None
) -> BoundArray:
    array = array_of_constant(constant)
    return BoundArray(register, array.dtype.name, array.shape, data, offset, blob)
