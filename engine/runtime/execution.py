"""`Execution`: a program linked into this process, ready to be called with arrays.

A call copies nothing and checks nothing in Python: the machine reads the arrays' own structs. When it
refuses an argument (a list, another dtype, a strided array), all are converted by their inputs' types
and the call starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.pickling.large_arrays import blob_name
from engine.runtime import instructions
from engine.runtime.call_state import CallState, Frame, Pool, ScratchSite
from engine.runtime.errors import InvalidProgram
from engine.runtime.fast_call import NUMBER_KINDS, RETURNS_LIST, Arrangement, Callees, make_fast_call
from engine.runtime.kernel_interface import MANY
from engine.runtime.load import LinkedKernel
from engine.runtime.machine import Machine, dtype_word, items_address
from engine.runtime.program import N_COMMON, BoundArray, Program, Yield
from engine.runtime.registers import ARRAY_TYPE, DESCRIPTORS, DETAILS, FEWEST_FOR_PARTS
from engine.runtime.target import process_threads

if TYPE_CHECKING:
    from engine.runtime.callbacks import BoundInvocation, Run

Convert = Callable[[int, Any], "np.ndarray[Any, Any]"]
"""`convert(position, value)` returns an array of the dtype and rank that the input takes, or raises an error.
"""


class CallbackFunction(NamedTuple):
    """A function that a callback calls, stored as an entry of its own: its key, its stored program, and
    that linked."""

    key: CacheKey
    payload: bytes
    execution: Execution


class LinkedCallback(NamedTuple):
    """A callback ready to run, and the functions that it calls."""

    run: Run
    functions: Sequence[CallbackFunction]


class LinkedProgram(NamedTuple):
    """A program as it lies in this process: the address of its machine, its code, and its registers at the
    start of a call. `keep` holds the memory that the registers have addresses of."""

    program: Program
    machine: int
    code: np.ndarray[Any, Any]
    registers: np.ndarray[Any, Any]
    keep: object


class Execution:
    """A linked program: `run(items)` computes its results. Threads may share one: each call has its own
    registers.

    Refuses (InvalidProgram) code that the machine might not run safely, and (ValueError) data of other
    shapes or dtypes than the program binds. `callbacks` are those of the program, in order.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        kernels: Sequence[LinkedKernel],
        data: Sequence[np.ndarray[Any, Any]],
        convert: Convert,
        name: str,
        callbacks: Sequence[LinkedCallback] = (),
    ) -> None:
        code = np.frombuffer(program.code, dtype="<i8").astype(np.int64)
        self.program = program
        self.outputs = program.outputs
        self.updates = program.updates
        self.name = name
        self._convert = convert
        self._template = np.frombuffer(program.registers, dtype="<i8").astype(np.int64)
        words = code.tolist()
        rows = instructions.read_code(words)
        instructions.check_code(rows, len(self._template))
        instructions.check_items(rows, *_items(program))
        self._code = code
        self._code_address = code.ctypes.data
        self.machine = machine
        self.kernels = kernels
        self._machine = machine.run
        self._bound = [_bound_array(program, row, data) for row in program.bound]
        self._fill_template()
        self._allocations = [_allocations(site) for site in program.yields]
        self.functions = [function for callback in callbacks for function in callback.functions]
        self._invocations = _bound_invocations(program, callbacks, name)
        self._n_results = sum(len(site.arrays) for site in program.yields)
        self._frame = _frame(program, self._n_results)
        self._pool = Pool(
            [ScratchSite(n, *site[:3]) for n, site in enumerate(program.yields) if not site.arrays]
        )

    def _fill_template(self) -> None:
        template = self._template
        template[ARRAY_TYPE] = id(np.ndarray)
        template[FEWEST_FOR_PARTS] = MANY if process_threads() > 1 else instructions.MOST
        for dtype, register in DESCRIPTORS.items():
            template[register] = dtype_word(np.dtype(dtype))
        for row, array in zip(self.program.bound, self._bound, strict=True):
            template[row.register] = array.ctypes.data
        for use, kernel in zip(self.program.kernels[N_COMMON:], self.kernels, strict=True):
            template[use.register] = kernel.address

    def run(self, items: tuple[Any, ...]) -> list[Any]:
        """Return the results, in the program's numbering, given one value per input."""
        try:
            state = self._pool.pop()
        except IndexError:
            state = CallState(self._frame, self._template, len(self._allocations))
        try:
            return self._run(items, state)
        finally:
            self._put_back(state)

    def fast_call(
        self, arrangement: Arrangement, general: Callable[..., Any], returned: Callable[[list[Any]], Any]
    ) -> Callable[..., Any] | None:
        """Return a builtin function that runs the program as `arrangement` says, or None where there can
        be none.

        It leaves what it cannot do to `general`, which takes the same arguments, or to this execution, of
        whose results it returns `returned(results)`.
        """

        def resume(
            state: CallState, status: int, results: list[Any], given: list[Any], items: list[Any]
        ) -> Any:
            try:
                self._finish(state, status, results, tuple(given), tuple(items))
            finally:
                self._put_back(state)
            return returned(results)

        callees = Callees(general, resume)
        return make_fast_call(
            self.machine, self.program, self._frame, self._pool, self._code, arrangement, callees
        )

    def linked(self) -> LinkedProgram:
        """Return the program for compiled code that runs it by itself."""
        return LinkedProgram(self.program, self.machine.address, self._code, self._template.copy(), self)

    def computing(self) -> Callable[[tuple[Any, ...]], list[Any]]:
        """Return a function from one value per input to the outputs."""

        def returned(results: list[Any]) -> list[Any]:
            return [results[number] for number in self.outputs]

        def general(*items: Any) -> list[Any]:
            return returned(self.run(items))

        arrangement = Arrangement(len(self.program.inputs), (), (), (), self.outputs, RETURNS_LIST)
        call = self.fast_call(arrangement, general, returned) or general
        return lambda items: call(*items)

    def _run(self, items: tuple[Any, ...], state: CallState) -> list[Any]:
        results: list[Any] = [None] * self._n_results
        status = self._machine(items_address(items), state.address, self._code_address, 0)
        if status == instructions.NOT_BOUND:
            items = tuple([self._convert(position, value) for position, value in enumerate(items)])
            status = self._machine(items_address(items), state.address, self._code_address, 0)
        self._finish(state, status, results, items, items)
        return results

    def _finish(
        self,
        state: CallState,
        status: int,
        results: list[Any],
        given: tuple[Any, ...],
        items: tuple[Any, ...],
    ) -> None:
        """Run the program, which stopped with `status`, to its end, and complete `results`. It was `given`
        those arrays last, and `items` first."""
        machine, registers, address, code = self._machine, state.registers, state.address, self._code_address
        while status in _RESUMED:
            # After a pause there is nothing to do: Python has handled signals by now.
            if status == instructions.YIELDED:
                given = self._make(state, results)
            elif status == instructions.INVOKED:
                given = self._invoke(state, results)
            elif status == instructions.DIVIDED and not self._divide(state, (given, results)):
                status = instructions.KERNEL_FAILED
                break
            status = machine(items_address(given), address, code, registers[0])
        if status != instructions.HALTED:
            self._fail(status, registers.tolist(), items)

    def _put_back(self, state: CallState) -> None:
        if state.is_shared:  # a signal handler raised while threads were at work: they may still be
            return
        if not state.is_settled:
            self._pool.settle(state)
        self._pool.append(state)

    def _make(self, state: CallState, results: list[Any]) -> tuple[Any, ...]:
        """Allocate the arrays, or the scratch memory, that the program stopped for."""
        registers = state.registers
        number = registers[1]
        need, base, present, arrays = self._allocations[number]
        try:
            if not arrays:
                state.grow(ScratchSite(number, need, base, present))
                return ()
            made = []
            for result, dtype, dims, skipped in arrays:
                array = np.empty([registers[dim] for dim in dims], dtype)
                results[result] = array[skipped:] if skipped else array
                made.append(array)
            return tuple(made)
        except (MemoryError, ValueError) as error:
            from engine.runtime.failures import describe_shortage

            raise describe_shortage(self.program, self.name, registers.tolist()) from error

    def _divide(self, state: CallState, keep: object) -> bool:
        """Make the call that the program stopped at in parts, so that it goes on behind it; return True if it
        succeeds. `keep` holds the arrays of the call."""
        from engine.runtime.parallel import PartFailed, run_in_parts

        registers = state.registers
        begin = registers[0]
        opcode, function, _, count = self._code[begin : begin + 4].tolist()
        if opcode != instructions.INSTRUCTIONS["CALL"].opcode or count < 2:
            raise InvalidProgram("running", self.name, f"no call that can be divided at word {begin}")
        behind = begin + 4 + count
        operands = self._code[begin + 4 : behind].tolist()
        state.is_shared = True
        try:
            run_in_parts(registers[function], operands, registers, (self, state, keep))
        except PartFailed as failure:
            registers[1], registers[2] = failure.status, function
            for number, detail in enumerate(failure.details):
                registers[DETAILS + number] = detail
        else:
            registers[0] = behind
        state.is_shared = False
        return registers[0] == behind

    def _invoke(self, state: CallState, results: list[Any]) -> tuple[Any, ...]:
        """Run the callback that the program stopped for, and return its arrays."""
        number = state.registers[1]
        arrays = self._invocations[number](state.registers)
        state.hold(number, arrays)
        return arrays

    def _fail(self, status: int, registers: Sequence[int], items: tuple[Any, ...]) -> NoReturn:
        from engine.runtime.failures import describe_failure

        # An argument of the wrong shape is refused by its type, whose message names the argument.
        for position, value in enumerate(items):
            self._convert(position, value)
        raise describe_failure(self.program, self.name, status, registers)


_RESUMED = (instructions.YIELDED, instructions.INVOKED, instructions.PAUSED, instructions.DIVIDED)


def _items(program: Program) -> tuple[instructions.Items, list[instructions.Items], list[instructions.Items]]:
    """Return the arrays that the program binds: those of the call, of each yield and of each invocation."""
    given = [_item(row.dtype, row.shape) for row in program.inputs]
    made = [[_item(row.dtype, row.dims) for row in site.arrays] for site in program.yields]
    returned = [[_item(row.dtype, row.dims) for row in site.outputs] for site in program.invocations]
    return given, [*made], [*returned]


def _bound_invocations(
    program: Program, callbacks: Sequence[LinkedCallback], name: str
) -> list[BoundInvocation]:
    if not program.invocations:
        return []
    from engine.runtime.callbacks import BoundInvocation, check_site  # few programs call Python

    for site in program.invocations:
        check_site(program.callbacks[site.callback], site)
    return [BoundInvocation(site, callbacks[site.callback].run, name) for site in program.invocations]


def _item(dtype: str, dims: Sequence[object]) -> tuple[int, int]:
    return DESCRIPTORS.get(dtype, -1), len(dims)


def _frame(program: Program, n_results: int) -> Frame:
    numbers = tuple(
        [None if row.shape or row.dtype not in NUMBER_KINDS else row.dtype for row in program.inputs]
    )
    return Frame(numbers, max((len(site.arrays) for site in program.yields), default=0), n_results)


def _allocations(site: Yield) -> tuple[int, int, int, list[tuple[int, np.dtype[Any], tuple[int, ...], int]]]:
    return *site[:3], [(a.result, np.dtype(a.dtype), a.dims, a.skipped) for a in site.arrays]


def _bound_array(
    program: Program, row: BoundArray, data: Sequence[np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """Return the array to bind: data of the caller, or a constant of the program."""
    if row.blob is not None:
        content = np.frombuffer(program.blobs[blob_name(row.blob)], np.dtype(row.dtype).newbyteorder("<"))
        return content.reshape(row.shape).astype(row.dtype, copy=False)
    if row.data is None:
        size = prod(row.shape)
        content = np.frombuffer(program.constants, np.dtype(row.dtype).newbyteorder("<"), size, row.offset)
        return np.ascontiguousarray(content.astype(row.dtype))
    array = np.ascontiguousarray(data[row.data])
    if array.shape != row.shape or array.dtype != row.dtype:
        raise ValueError(
            f"Binding data {row.data} of a program: {row.dtype} of shape {row.shape} is due, "
            f"{array.dtype} of shape {array.shape} was given"
        )
    return array
