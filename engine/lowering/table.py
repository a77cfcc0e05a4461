"""The table of a program under construction: registers, arithmetic by stage, buffers and steps (steps.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from engine.lowering.loops import Kernel
from engine.lowering.steps import (
    STAGES,
    ArithmeticInstruction,
    Buffer,
    CallbackInvocation,
    Check,
    FlatWork,
    LoopStep,
    Step,
    Value,
    region_of,
)
from engine.runtime.callbacks import Callback
from engine.runtime.instructions import MOST
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.runtime.registers import FIRST_FREE

_FOLDED: dict[str, Callable[..., int]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "ADDSAT": lambda a, b: min(a + b, MOST),
    "MULSAT": lambda a, b: min(a * b, MOST),
    "MAX": max,
    "MIN": min,
    "NEG": lambda a: -a,
    "FLOORDIV": lambda a, b: a // b if b else 0,
    "MOD": lambda a, b: a % b if b else 0,
}
_NEUTRAL = {"ADD": 0, "ADDSAT": 0, "SUB": 0, "MUL": 1, "MULSAT": 1, "FLOORDIV": 1}
_COMMUTATIVE = ("ADD", "ADDSAT", "MUL", "MULSAT", "MAX", "MIN")


_LOADS = {"int64": "LOAD64", "int32": "LOAD32", "bool": "LOAD8"}
"""The instruction that reads a number of each dtype that lengths may depend on."""


class Table:
    """The registers, arithmetic, buffers and steps of a program. Equal arithmetic has one register."""

    def __init__(self) -> None:
        self.initial: dict[int, int] = {}
        self.arithmetic: dict[int, list[ArithmeticInstruction]] = {}
        self.addresses: dict[int, list[tuple[int, int, int]]] = {}
        """For views, by stage: (register of the address, register of the base address, register of the
        distance).
        """
        self.buffers: list[Buffer] = []
        self.steps: list[Step] = []
        self.count = FIRST_FREE
        self.results = 0
        self.floor = 0
        """The first stage of the region that is being lowered."""
        self._regions = 1
        self._scopes: dict[int, list[int]] = {}
        self._stages: dict[int, int] = {}
        self._constants: dict[int, int] = {}
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}
        self._equal: dict[int, int] = {}
        self._loads: list[tuple[int, Buffer]] = []

    def new(self, stage: int = 0, count: int = 1) -> int:
        """Return the first of `count` new registers that hold their numbers from `stage` on."""
        first = self.count
        self.count += count
        for register in range(first, self.count):
            self._stages[register] = stage
        return first

    def constant(self, number: int) -> int:
        """Return the register that holds `number`."""
        found = self._constants.get(number)
        if found is None:
            found = self._constants[number] = self.new()
            self.initial[found] = number
        return found

    def number(self, register: int) -> int | None:
        """Return the constant that `register` holds, or None if it is not known."""
        return self.initial.get(self.canonical(register))

    def stage(self, registers: Iterable[int]) -> int:
        """Return the first stage in which all `registers` hold their numbers."""
        stages = self._stages
        return max([stages[register] for register in registers], default=0)

    def canonical(self, register: int) -> int:
        """Return the register that stands for all those known to hold the same number."""
        while register in self._equal:
            register = self._equal[register]
        return register

    def are_same(self, first: int, second: int) -> bool:
        """Return True if two registers are known to hold the same number."""
        return first == second or self.canonical(first) == self.canonical(second)

    def same(self, first: int, second: int, check: Check) -> int:
        """Demand that two registers hold the same number; return the one to use from here on."""
        first, second = self.canonical(first), self.canonical(second)
        if first == second:
            return first
        self.emit("SAME", (first, second), self.stage((first, second)), check)
        keep, drop = sorted((first, second), key=lambda r: (r not in self.initial, self._stages[r], r))
        self._equal[drop] = keep
        self._scopes.setdefault(self.floor, []).append(drop)
        return keep

    def demand(self, register: int, check: Check) -> None:
        """Demand that the number in `register` is not negative."""
        number = self.number(register)
        if number is None or number < 0:
            self.emit("NONNEG", (register,), self.stage((register,)), check)

    def compute(self, op: str, *operands: int) -> int:
        """Return the register of `op` of `operands`: constants are folded, equal arithmetic is shared."""
        operands = tuple(map(self.canonical, operands))
        if op in _COMMUTATIVE:
            operands = tuple(sorted(operands))
        found = self._known.get((op, operands))
        if found is None:
            found = self._folded(op, operands)
        if found is None:
            stage = self.stage(operands)
            found = self._known[(op, operands)] = self.new(stage)
            self.emit(op, (found, *operands), stage)
        return found

    def _folded(self, op: str, operands: tuple[int, ...]) -> int | None:
        """Return the register of the result if constants among `operands` determine it, else None."""
        numbers = [self.initial.get(register) for register in operands]
        if None not in numbers:
            found = _FOLDED[op](*numbers) if op in _FOLDED else None
            return self.constant(found) if found is not None and abs(found) <= MOST else None
        if op in ("MUL", "MULSAT") and 0 in numbers:
            return self.constant(0)
        if op in _NEUTRAL and numbers[1] == _NEUTRAL[op]:
            return operands[0]
        is_neutral = op in _COMMUTATIVE and op in _NEUTRAL and numbers[0] == _NEUTRAL[op]
        return operands[1] if is_neutral else None

    def product(self, registers: Sequence[int]) -> int:
        """Return the register that holds the product of lengths: 1 for none, MOST if it exceeds an int64."""
        one = self.constant(1)
        if len(registers) == 1:
            return self.canonical(registers[0])
        factors = [r for r in sorted(map(self.canonical, registers)) if r != one]
        if not factors:
            return one
        result = factors[0]
        for register in factors[1:]:
            result = self.compute("MULSAT", result, register)
        return result

    def emit(self, name: str, operands: Sequence[int], stage: int, check: Check | None = None) -> None:
        """Append an instruction to the arithmetic of `stage`; one that may fail stays in the region."""
        if check is not None:
            stage = max(stage, self.floor)
        self.arithmetic.setdefault(stage, []).append(ArithmeticInstruction(name, tuple(operands), check))

    def strides(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return the registers of the strides, in elements, of a C-contiguous array with lengths `dims`."""
        return tuple(self.product(dims[position + 1 :]) for position in range(len(dims)))

    def buffer(self, dtype: str, dims: Sequence[int], stage: int, result: bool = False) -> Value:
        """Return a new C-contiguous array, written in `stage`; the caller makes and keeps a `result`."""
        stage = max(stage, self.floor)
        dims = tuple(map(self.canonical, dims))
        nbytes = self.compute("MULSAT", self.product(dims), self.constant(ITEM_SIZES[dtype]))
        # In a loop, memory of a known size is allocated once, before the first pass.
        made = max(self.floor, self.stage((nbytes,))) if self.floor else stage
        # A result is bound by the machine, which writes the lengths of the array behind its address.
        pointer = self.new(made, 1 + len(dims) if result else 1)
        buffer = Buffer(pointer, dtype, dims, nbytes, made)
        if result:
            buffer.result = self.results
            self.results += 1
        self.buffers.append(buffer)
        return Value(pointer, dtype, dims, stage, None, buffer)

    def view(self, value: Value, offset: int, dims: Sequence[int], strides: tuple[int, ...] | None) -> Value:
        """Return the array of lengths `dims` and `strides`, `offset` elements behind the start of `value`.

        All three are registers; `strides` is None if the array is C-contiguous.
        """
        distance = self.compute("MULSAT", offset, self.constant(ITEM_SIZES[value.dtype]))
        stage = max(value.stage, self.stage((distance, *dims, *(strides or ()))))
        pointer = value.pointer
        if self.number(distance) != 0:
            pointer = self.new(stage)
            self.addresses.setdefault(stage, []).append((pointer, value.pointer, distance))
        return Value(pointer, value.dtype, tuple(dims), stage, strides, value.buffer)

    def load(self, value: Value, at_once: bool) -> int:
        """Return the register of the 0-d `value`, of a dtype of _LOADS; `at_once` if no kernel writes it."""
        stage = value.stage if at_once else value.stage + 1
        register = self.new(stage)
        if value.buffer is not None:
            value.buffer.is_loaded = True
            self._note_use(value.buffer, stage)
            self._loads.append((region_of(stage), value.buffer))
        self.emit(_LOADS[value.dtype], (register, value.pointer), stage)
        return register

    def call(
        self,
        kernel: Kernel,
        reads: Sequence[Value],
        writes: Sequence[Value],
        op: str,
        lengths: Sequence[int] = (),
        named: Mapping[str, int] | None = None,
        about: tuple[str, ...] = (),
        work: FlatWork | None = None,
    ) -> None:
        """Append the call of `kernel` over a nest of `lengths`, in the stage of the arrays that it writes.

        Its operands are `reads`, then those of `writes` that it reads as well. `named` has the
        registers that only kernels of its family ask for.
        """
        inputs = (*reads, *writes)
        found = [self._argument(a, inputs, writes, lengths, named or {}) for a in kernel.arguments]
        read = tuple([value.buffer for value in reads if value.buffer is not None])
        written = tuple([value.buffer for value in writes if value.buffer is not None])
        step = Step(
            kernel,
            tuple([register for register, _ in found]),
            writes[0].stage,
            read,
            written,
            op,
            about,
            memory=tuple([buffer for _, buffer in found]),
            lengths=tuple(lengths or writes[0].dims),
            work=work,
        )
        self._append(step)

    def _argument(
        self,
        argument: Any,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        lengths: Sequence[int],
        named: Mapping[str, int],
    ) -> tuple[int, Buffer | None]:
        """Return the register that holds what a kernel asks for as `argument` (kernels/building.py).

        Return also the buffer that it is an address in.
        """
        kind = argument[0]
        if kind == "input" or kind == "output":
            value = (inputs if kind == "input" else outputs)[argument[1]]
            return value.pointer, value.buffer
        if kind == "extent":
            return self.product([lengths[dim] for dim in argument[1]]), None
        if kind == "stride":
            return inputs[argument[1]].stride_in(argument[2], len(lengths)), None
        if kind == "length":
            return inputs[argument[1]].dims[argument[2]], None
        return named[kind], None

    def invoke(
        self,
        callback: Callback,
        reads: Sequence[Value],
        outputs: Sequence[tuple[str, Sequence[int | None]]],
        op: str,
        stage: int,
    ) -> list[Value]:
        """Append the invocation of `callback`, not before `stage`; return the arrays that it returns.

        `outputs` has, for each, its dtype and the register of each length, or None. The arrays, and the
        lengths that are not known before, are there in the next stage.
        """
        known = [tuple([None if d is None else self.canonical(d) for d in dims]) for _, dims in outputs]
        lengths = [d for dims in known for d in dims if d is not None]
        stage = max([stage, self.stage(lengths), *(value.stage for value in reads)])
        values = [
            self._returned(dtype, dims, stage + 1) for (dtype, _), dims in zip(outputs, known, strict=True)
        ]
        memory = tuple(value.buffer for value in reads if value.buffer is not None)
        invocation = CallbackInvocation(callback, tuple(reads), tuple(values), tuple(known))
        self._append(Step(None, (), stage, memory, (), op, invocation=invocation))
        return values

    def _returned(self, dtype: str, dims: tuple[int | None, ...], stage: int) -> Value:
        pointer = self.new(stage, 1 + len(dims))
        lengths = [pointer + 1 + k if d is None else d for k, d in enumerate(dims)]
        return Value(pointer, dtype, tuple(lengths), stage)

    def store(self, register: int, value: Value) -> None:
        """Append the store of `register` into the scalar `value`."""
        assert value.buffer is not None
        step = Step(None, (value.pointer, register), value.stage, (), (value.buffer,), "store")
        step.memory = (value.buffer, None)
        self._append(step)

    def last_use(self, buffer: Buffer) -> int:
        """Return the last stage of this region, of those known so far, that reads or writes `buffer`."""
        return buffer.used.get(region_of(self.floor), self.floor)

    def _append(self, step: Step) -> None:
        self.steps.append(step)
        for buffer in (*step.reads, *step.writes):
            self._note_use(buffer, step.stage)

    def _note_use(self, buffer: Buffer, stage: int) -> None:
        region = region_of(stage)
        if stage > buffer.used.get(region, -1):
            buffer.used[region] = stage

    def begin_loop(self, stage: int, count: int) -> LoopStep:
        """Return a new loop in `stage`; its body is lowered in its `region`, then the loop is ended."""
        floor = self._regions * STAGES
        self._regions += 1
        return LoopStep(floor, stage, count, self.new(floor + 1))

    @contextmanager
    def region(self, floor: int) -> Iterator[None]:
        """Lower into the region whose first stage is `floor`.

        Registers found equal inside are not equal outside, where the loop may make no pass.
        """
        around, self.floor = self.floor, floor
        yield
        if floor > around:
            for register in self._scopes.pop(floor, []):
                del self._equal[register]
        self.floor = around

    def end_loop(self, loop: LoopStep, op: str) -> None:
        """Append the loop as a step that reads and writes what the steps of its body do."""
        region = region_of(loop.floor)
        body = [step for step in self.steps if region_of(step.stage) == region]
        loaded = [buffer for place, buffer in self._loads if place == region]
        if loop.until is not None and loop.until.buffer is not None:
            loaded.append(loop.until.buffer)
        reads, writes = (
            dict.fromkeys(b for buffers in found for b in buffers if region_of(b.stage) != region)
            for found in ([loaded, *(step.reads for step in body)], [step.writes for step in body])
        )
        self._append(Step(None, (), loop.stage, tuple(reads), tuple(writes), op, (), loop))

    def drop_loop(self, loop: LoopStep) -> None:
        """Forget the steps in the body of the loop, because nothing needs them."""
        self.steps = [step for step in self.steps if step.stage < loop.floor]
