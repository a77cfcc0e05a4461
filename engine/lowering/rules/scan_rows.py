"""The rows of a Scan: the addresses at which each step reads a sequence or a state, and writes a new row.

The loop carries these addresses in registers. It adds the size of a row after each pass or, for a ring
of rows, exchanges the addresses. No row is ever moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from engine.graph.variables import Variable
from engine.lowering.lower import Lowering, dtype
from engine.lowering.steps import Buffer, CarriedRegister, Check, LoopStep, Value
from engine.lowering.table import Table
from engine.runtime.kernel_interface import ITEM_SIZES


class Rows(Protocol):
    """The rows that the steps write one after the other."""

    def place(self, dims: Sequence[int]) -> Value | None:
        """Return where a step writes its row, of lengths `dims`; None if unknown before the first step.

        The program stops if the lengths are not those of the other rows.
        """

    def place_of(self, value: Value) -> Value:
        """Return where a step writes the row that it has in `value`."""

    def result(self, done: int) -> Value:
        """Return the wanted rows after the loop, of which `done` steps were made."""


def sequence_row(table: Table, loop: LoopStep, rows: Value) -> Value:
    """Return the row that each step reads of a sequence."""
    strides = rows.strides or table.strides(rows.dims)
    pointer = _moving_address(table, loop, rows.pointer, strides[0], rows.dtype)
    dims = rows.dims[1:]
    is_whole = list(map(table.canonical, strides[1:])) == list(map(table.canonical, table.strides(dims)))
    return Value(pointer, rows.dtype, dims, loop.first, None if is_whole else strides[1:], rows.buffer)


def _moving_address(table: Table, loop: LoopStep, initial: int, elements: int, dtype: str) -> int:
    """Return a register that holds `initial` at the first step, and `elements` more at each next."""
    register = table.new(loop.first)
    by = table.compute("MULSAT", elements, table.constant(ITEM_SIZES[dtype]))
    loop.carried.append(CarriedRegister(register, initial, by))
    return register


class _State:
    """A state: `n` initial rows of lengths `row`, and the checks of new ones."""

    def __init__(
        self, lowering: Lowering, loop: LoopStep, output: Variable, initial: Variable, what: tuple[str, str]
    ):
        self.lowering, self.table, self.loop, self.output = lowering, lowering.table, loop, output
        self.dtype = dtype(initial)
        self.n, *self.row = lowering.dims_of(initial)
        self.initial = lowering.value_of(initial)
        self._what = what

    def place(self, dims: Sequence[int]) -> Value:
        op, what = self._what
        for dim, (due, found) in enumerate(zip(self.row, dims, strict=True)):
            self.table.same(due, found, Check("step-rows", op, (what, str(dim))))
        return self._new_row()

    def place_of(self, value: Value) -> Value:
        return self.place(value.dims)

    def _new_row(self) -> Value:
        raise NotImplementedError

    def _begin(self, rows: Value) -> None:
        """Copy the initial rows to the first of `rows`."""
        first = self.table.view(rows, self.table.constant(0), (self.n, *self.row), None)
        self.lowering.copy(self.initial, first)

    def _nth(self, rows: Value, number: int) -> Value:
        size = self.table.product(self.row)
        return self.table.view(
            rows, self.table.compute("MUL", size, self.table.constant(number)), self.row, None
        )

    def _at(self, register: int, buffer: Buffer | None, stage: int) -> Value:
        return Value(register, self.dtype, tuple(self.row), stage, None, buffer)


class Trace(_State):
    """A state of which all rows are kept: the initial ones, then the computed ones."""

    def begin(self, m: int, is_while: bool) -> None:
        """Allocate memory for the `m` initial rows and those of all steps."""
        table, loop = self.table, self.loop
        self.m, self._is_while = m, is_while
        dims = (table.compute("ADDSAT", loop.count, table.constant(m)), *self.row)
        if is_while:
            self.rows = table.buffer(self.dtype, dims, loop.stage)
        else:
            self.rows = self.lowering.array(self.output, dims, loop.stage)
        self._begin(self.rows)
        self._new = self._moving(0)

    def _moving(self, tap: int) -> Value:
        first = self._nth(self.rows, self.m + tap)
        pointer = _moving_address(
            self.table, self.loop, first.pointer, self.table.product(self.row), self.dtype
        )
        return self._at(pointer, self.rows.buffer, self.loop.first)

    def tap(self, tap: int) -> Value:
        """Return the row that each step reads as `tap`."""
        return self._moving(tap)

    def _new_row(self) -> Value:
        return self._new

    def result(self, done: int) -> Value:
        length = self.table.compute("ADDSAT", done, self.table.constant(self.m))
        return _first_rows(self.table, self.rows, length)


class Ring(_State):
    """A state of which only the last rows are kept: as many as steps read, and one for the new row.

    If the graph of a step overwrites its one tap with the new row (`is_inplace`), there is no other
    row.
    """

    def begin(self, m: int, keep: int, is_inplace: bool) -> None:
        """Allocate memory for `m` rows, the initial ones; the last `keep` are asked for."""
        table, loop = self.table, self.loop
        self.m, self.keep, self.is_inplace = m, keep, is_inplace
        size = m if is_inplace else m + 1
        self.rows = table.buffer(self.dtype, (table.constant(size), *self.row), loop.stage)
        self._begin(self.rows)
        first = table.new(loop.first, size)
        self._pointers = tuple(range(first, first + size))
        for number, register in enumerate(self._pointers):
            loop.carried.append(CarriedRegister(register, self._nth(self.rows, number).pointer))
        if not is_inplace:
            loop.rings.append(self._pointers)

    def tap(self, tap: int) -> Value:
        """Return the row that each step reads as `tap`."""
        return self._at(self._pointers[self.m + tap], self.rows.buffer, self.loop.first)

    def _new_row(self) -> Value:
        return self._at(self._pointers[-1], self.rows.buffer, self.loop.first)

    def result(self, done: int) -> Value:
        stage = self.loop.stage
        result = self.lowering.array(self.output, (self.table.constant(self.keep), *self.row), stage)
        for number in range(self.keep):
            row = self._at(self._pointers[self.m - self.keep + number], self.rows.buffer, stage)
            self.lowering.copy(row, self._nth(result, number))
        return result


class Mapped:
    """The rows of an output that no later step reads. Their place is known with the lengths of one row."""

    def __init__(
        self, lowering: Lowering, loop: LoopStep, output: Variable, is_while: bool, what: tuple[str, str]
    ):
        self.lowering, self.table, self.loop, self.output = lowering, lowering.table, loop, output
        self._around = lowering.table.floor
        self._is_while = is_while
        self._what = what
        self._rows: Value | None = None
        self._row: Value | None = None
        self._lengths: tuple[int, ...] | None = None

    def place(self, dims: Sequence[int]) -> Value | None:
        table, loop = self.table, self.loop
        if self._row is not None or table.stage(dims) >= loop.floor:
            return self._row
        with table.region(self._around):
            whole = (loop.count, *dims)
            if self._is_while:
                self._rows = table.buffer(dtype(self.output), whole, loop.stage)
            else:
                self._rows = self.lowering.array(self.output, whole, loop.stage)
            pointer = _moving_address(table, loop, self._rows.pointer, table.product(dims), self._rows.dtype)
        self._row = Value(pointer, self._rows.dtype, tuple(dims), loop.first, None, self._rows.buffer)
        return self._row

    def place_of(self, value: Value) -> Value:
        return self.place(value.dims) or self._late_place(value)

    def _late_place(self, value: Value) -> Value:
        """Return the place of a row of lengths that only steps know; the first step allocates."""
        table = self.table
        dims = self.lengths(value.dims)
        self._rows = table.buffer(value.dtype, (self.loop.count, *dims), table.stage(dims))
        assert self._rows.buffer is not None
        self._rows.buffer.is_kept = True
        offset = table.compute("MUL", self.loop.counter, table.product(dims))
        row = table.view(self._rows, offset, dims, None)
        return replace(row, stage=max(row.stage, value.stage))

    def lengths(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return the lengths of every row, of which a step finds `dims`; 0 if no step is made."""
        if self._lengths is None:
            self._lengths = tuple(self._length_of_first_row(dim, length) for dim, length in enumerate(dims))
        return self._lengths

    @property
    def is_late(self) -> bool:
        """Return True if the lengths of a row are known only after a step."""
        assert self._lengths is not None
        return self.table.stage(self._lengths) >= self.loop.floor

    def _length_of_first_row(self, dim: int, length: int) -> int:
        """Return the length that the first row has along `dim`, which all others must have."""
        table, loop = self.table, self.loop
        if table.stage((length,)) < loop.floor:
            return length
        zero, one = table.constant(0), table.constant(1)
        is_first = table.compute("SUB", one, table.compute("MIN", loop.counter, one))
        found = table.compute("MUL", is_first, length)
        stage = table.stage((found,))
        kept = table.new(stage)
        loop.carried.append(CarriedRegister(kept, zero))
        table.emit("MAX", (kept, kept, found), stage)
        op, what = self._what
        # `found` may be known before `length`, if that is known to equal another register.
        compared = table.stage((kept, length))
        table.emit("SAME", (kept, length), compared, Check("step-rows", op, (what, str(dim))))
        return kept

    def dims(self, done: int) -> tuple[int, ...]:
        """Return the lengths of all rows together after the loop, of which `done` steps were made."""
        table, after = self.table, self.loop.stage + 1
        found = [done]
        for length in self._lengths or ():
            if table.stage((length,)) < self.loop.floor:
                found.append(length)
                continue
            found.append(table.new(after))
            table.emit("MOV", (found[-1], length), after)
        return tuple(found)

    def result(self, done: int) -> Value:
        assert self._rows is not None
        if not self.is_late:
            return _first_rows(self.table, self._rows, done)
        dims = self.lowering.dims[self.output]
        return replace(self._rows, dims=dims, stage=self.loop.stage + 1)


def _first_rows(table: Table, rows: Value, length: int) -> Value:
    """Return the first `length` rows."""
    return replace(rows, dims=(length, *rows.dims[1:]), stage=max(rows.stage, table.stage((length,))))
