"""The machine walks a program: arithmetic, guards, kernel calls, arrays bound from a tuple."""

import ctypes
import time

import numpy as np
import pytest

from engine.codegen.common_code import COMMON_CODE
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.statements import Statement
from engine.runtime.container import pack_kernel
from engine.runtime.errors import InvalidProgram
from engine.runtime.instructions import (
    HALTED,
    INDIVISIBLE,
    INSTRUCTIONS,
    INVOKED,
    KERNEL_FAILED,
    MOST,
    NEGATIVE,
    NOT_BOUND,
    NOT_ONE,
    PAUSED,
    UNEQUAL,
    YIELDED,
    Assembler,
    check_code,
    check_items,
    read_code,
    show,
)
from engine.runtime.kernel_interface import NEGATIVE_POWER
from engine.runtime.load import process_loader
from engine.runtime.machine import Machine, dtype_word, items_address
from engine.runtime.target import process_level, process_triple

REGISTERS = 64
TYPE, DTYPE, FIRST = 10, 11, 20
SMALLEST = -(2**63)


@pytest.fixture(scope="module")
def machine():
    level = process_level()
    contents = {
        symbol: pack_kernel(symbol, process_triple(), level, code.compile(symbol, level))
        for symbol, code in zip(("k_machine_test", "k_call_test"), COMMON_CODE, strict=True)
    }
    linked = process_loader().load_many(contents)
    return Machine(*(linked[symbol] for symbol in contents))


def execute(machine, assembler, registers, items=(), pc=0):
    check_code(read_code(assembler.code), REGISTERS)
    code = np.array(assembler.code, dtype=np.int64)
    status = machine.run(items_address(items), registers.ctypes.data, code.ctypes.data, pc)
    while status == PAUSED:
        status = machine.run(items_address(items), registers.ctypes.data, code.ctypes.data, int(registers[0]))
    return status


def program(*instructions):
    assembler = Assembler()
    for name, *operands in instructions:
        assembler.emit(name, *operands)
    assembler.emit("HALT")
    return assembler


def registers_with(**values):
    registers = np.zeros(REGISTERS, dtype=np.int64)
    for name, value in values.items():
        registers[int(name[1:])] = value
    return registers


def test_the_machine_finds_the_arrays_of_this_process(machine):
    assert machine.is_usable


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("ADD", 3, -5, -2),
        ("ADD", 2**63 - 1, 1, SMALLEST),
        ("SUB", 3, 5, -2),
        ("MUL", -3, 5, -15),
        ("MUL", 2**32, 2**32, 0),
        ("MULSAT", 2**31, 2**31, 2**62),
        ("MULSAT", 2**32, 2**31, MOST),
        ("MULSAT", 2**32, 2**32, MOST),
        ("MULSAT", 274177, 67280421310721, MOST),
        ("MULSAT", MOST, 0, 0),
        ("ADDSAT", 3, 5, 8),
        ("ADDSAT", MOST, 1, MOST),
        ("MAX", -3, 5, 5),
        ("MIN", -3, 5, -3),
        ("FLOORDIV", 7, 2, 3),
        ("FLOORDIV", -7, 2, -4),
        ("FLOORDIV", 7, -2, -4),
        ("FLOORDIV", 7, -1, -7),
        ("FLOORDIV", 7, 0, 0),
        ("FLOORDIV", SMALLEST, -1, SMALLEST),
        ("MOD", 7, 4, 3),
        ("MOD", -7, 4, 1),
        ("MOD", 7, -4, -1),
        ("MOD", 8, -1, 0),
        ("MOD", 7, 0, 0),
        ("MOD", SMALLEST, -1, 0),
    ],
)
def test_two_registers_give_a_third(machine, name, a, b, expected):
    registers = registers_with(r4=a, r5=b)
    assert execute(machine, program((name, 6, 4, 5)), registers) == HALTED
    assert registers[6] == expected


@pytest.mark.parametrize(
    ("name", "a", "expected"),
    [
        ("MOV", -9, -9),
        ("NEG", 9, -9),
        ("ALIGN", 1, 64),
        ("ALIGN", 64, 64),
        ("ALIGN", 0, 0),
        ("ALIGN", MOST, MOST - 63),
    ],
)
def test_one_register_gives_another(machine, name, a, expected):
    registers = registers_with(r4=a)
    assert execute(machine, program((name, 5, 4)), registers) == HALTED
    assert registers[5] == expected


@pytest.mark.parametrize(
    ("instruction", "values", "status", "details"),
    [
        (("SAME", 4, 5, 9), (3, 3), HALTED, ()),
        (("SAME", 4, 5, 9), (3, 4), UNEQUAL, (9, 3, 4)),
        (("ONE", 4, 9), (1, 0), HALTED, ()),
        (("ONE", 4, 9), (2, 0), NOT_ONE, (9, 2)),
        (("NONNEG", 4, 9), (0, 0), HALTED, ()),
        (("NONNEG", 4, 9), (-1, 0), NEGATIVE, (9, -1)),
        (("DIVIDES", 4, 5, 9), (3, 12), HALTED, ()),
        (("DIVIDES", 4, 5, 9), (3, 13), INDIVISIBLE, (9, 3, 13)),
        (("DIVIDES", 4, 5, 9), (0, 0), HALTED, ()),
        (("DIVIDES", 4, 5, 9), (0, 3), INDIVISIBLE, (9, 0, 3)),
        (("DIVIDES", 4, 5, 9), (-1, SMALLEST), HALTED, ()),
    ],
)
def test_a_guard_goes_on_or_says_where_and_why_it_stopped(machine, instruction, values, status, details):
    registers = registers_with(r4=values[0], r5=values[1], r7=77)
    guarded = program(("MOV", 6, 4), instruction, ("MOV", 8, 7))
    assert execute(machine, guarded, registers) == status
    assert registers[8] == (77 if status == HALTED else 0)
    if status != HALTED:
        assert registers[0] == 3
        assert tuple(registers[1 : 1 + len(details)]) == details


@pytest.mark.parametrize(("name", "status"), [("YIELD", YIELDED), ("INVOKE", INVOKED)])
def test_a_program_goes_on_behind_where_it_stopped_for_python(machine, name, status):
    registers = registers_with(r4=1)
    yielding = program(("ADD", 5, 4, 4), (name, 12), ("ADD", 6, 5, 5))
    assert execute(machine, yielding, registers) == status
    assert registers[1] == 12
    assert registers[5] == 2
    assert registers[6] == 0
    assert execute(machine, yielding, registers, pc=int(registers[0])) == HALTED
    assert registers[6] == 4


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [("LOAD64", np.int64, -5), ("LOAD32", np.int32, -5), ("LOAD8", np.uint8, 250), ("LOAD8", np.bool_, 1)],
)
def test_a_scalar_is_loaded_from_an_address(machine, name, dtype, value):
    scalar = np.array([0, value], dtype=dtype)
    registers = registers_with(r4=scalar.ctypes.data + scalar.itemsize)
    assert execute(machine, program((name, 5, 4)), registers) == HALTED
    assert registers[5] == value


def test_a_register_is_stored_at_an_address(machine):
    target = np.zeros(2, dtype=np.int64)
    registers = registers_with(r4=target.ctypes.data + 8, r5=-12)
    assert execute(machine, program(("STORE64", 4, 5)), registers) == HALTED
    assert target.tolist() == [0, -12]


def test_a_kernel_gets_the_registers_it_is_called_with(machine):
    received = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
    def kernel(arguments):
        received.append(arguments[:3])
        return 0

    registers = registers_with(r4=ctypes.cast(kernel, ctypes.c_void_p).value, r5=50, r6=60)
    calling = Assembler()
    calling.call(4, 30, [6, 5, 5])
    calling.call(4, 30, [5, 5, 6])
    calling.emit("HALT")
    assert execute(machine, calling, registers) == HALTED
    assert received == [[60, 50, 50], [50, 50, 60]]


def test_a_kernel_that_fails_stops_the_program(machine, stored):
    operand = NestOperand("int64", ())
    body = [Statement("pow", (("input", 0), ("input", 1)), "int64")]
    symbol, content = stored(elementwise([operand, operand], body, [("value", 0)], 0))
    base, exponent, result = np.array(2), np.array(-1), np.zeros((), np.int64)
    addresses = [array.ctypes.data for array in (base, exponent, result)]
    kernel = process_loader().load(content, symbol)
    registers = registers_with(r4=kernel.address, r7=1)
    registers[20:23] = addresses
    calling = Assembler()
    calling.call(4, 30, [20, 21, 22])
    calling.emit("MOV", 6, 7)
    calling.emit("HALT")
    assert execute(machine, calling, registers) == KERNEL_FAILED
    assert registers[:3].tolist() == [0, NEGATIVE_POWER, 4]
    assert registers[6] == 0
    exponent[...] = 5
    assert execute(machine, calling, registers) == HALTED
    assert result == 32
    assert registers[6] == 1


def bind(machine, items, item, rank, dtype=np.float64):
    registers = registers_with(r10=id(np.ndarray), r11=dtype_word(np.dtype(dtype)))
    status = execute(machine, program(("BIND", FIRST, item, TYPE, DTYPE, rank)), registers, items)
    return status, registers


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_an_array_is_bound_by_address_and_shape(machine, shape, dtype):
    array = np.zeros(shape, dtype)
    status, registers = bind(machine, (None, array), 1, len(shape), dtype)
    assert status == HALTED
    assert registers[FIRST] == array.__array_interface__["data"][0]
    assert tuple(registers[FIRST + 1 : FIRST + 1 + len(shape)]) == shape
    assert not registers[FIRST + 1 + len(shape) :].any()


def test_a_read_only_array_and_a_copy_of_its_dtype_are_bound(machine):
    array = np.zeros(3, np.dtype("float64", copy=True))
    array.flags.writeable = False
    assert array.dtype is not np.dtype("float64")
    assert bind(machine, (array,), 0, 1)[0] == HALTED


class Subclass(np.ndarray):
    pass


def unaligned():
    return np.zeros(25, np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    "item",
    [
        np.zeros(3, np.float32),
        np.zeros(3, np.int64),
        np.zeros(3, ">f8"),
        np.zeros((3, 1)),
        np.zeros(()),
        np.zeros(6)[::2],
        np.zeros(3)[::-1],
        np.zeros(3).view(Subclass),
        unaligned(),
        np.float64(1.0),
        1.0,
        None,
        [1.0, 2.0],
    ],
    ids=[
        "float32", "int64", "other byte order", "rank 2", "rank 0", "strided", "reversed", "subclass", "unaligned",
        "numpy scalar", "float", "None", "list",
    ],
)  # fmt: skip
def test_what_is_not_the_array_expected_is_not_bound(machine, item):
    status, registers = bind(machine, (np.zeros(3), item), 1, 1)
    assert status == NOT_BOUND
    assert registers[:2].tolist() == [0, 1]
    assert not registers[FIRST:].any()


@pytest.mark.parametrize(
    "code",
    [
        [],
        [INSTRUCTIONS["MOV"].opcode, 5, 6],
        [INSTRUCTIONS["MOV"].opcode, 5],
        [INSTRUCTIONS["HALT"].opcode] * 2,
        [99],
        [-1],
        [INSTRUCTIONS["MOV"].opcode, 5, 64, 0],
        [INSTRUCTIONS["MOV"].opcode, 5, -1, 0],
        [INSTRUCTIONS["MOV"].opcode, 3, 6, 0],
        [INSTRUCTIONS["YIELD"].opcode, -1, 0],
        [INSTRUCTIONS["CALL"].opcode, 5, 62, 3, 5, 5, 5, 0],
        [INSTRUCTIONS["CALL"].opcode, 5, 30, 3, 5, 5],
        [INSTRUCTIONS["CALL"].opcode, 5, 30, -1, 0],
        [INSTRUCTIONS["CALL"].opcode, 5, 2, 1, 5, 0],
        [INSTRUCTIONS["CALL"].opcode, 5, 30, 1, 64, 0],
        [INSTRUCTIONS["BIND"].opcode, 60, 0, 5, 6, 4, 0],
        [INSTRUCTIONS["BIND"].opcode, 20, 0, 5, 6, -1, 0],
        [INSTRUCTIONS["BIND"].opcode, 20, 0, 5, 6, 2**62, 0],
    ],
)
def test_code_that_could_leave_its_registers_or_never_halt_is_refused(code):
    with pytest.raises(InvalidProgram):
        check_code(read_code(code), REGISTERS)


def test_an_instruction_there_is_not_cannot_be_assembled():
    assembler = Assembler()
    with pytest.raises(InvalidProgram):
        assembler.emit("GOTO", 1)
    with pytest.raises(InvalidProgram):
        assembler.emit("ADD", 1, 2)
    assert assembler.code == []


def test_code_is_shown_an_instruction_a_line():
    assembler = program(("ADD", 6, 4, 5), ("BIND", 20, 0, 10, 11, 2))
    assembler.code.pop()
    assembler.call(4, 30, [6, 5])
    assembler.emit("HALT")
    lines = [line.split() for line in show(assembler.code).splitlines()]
    assert lines == [
        ["0", "ADD", "r6", "r4", "r5"],
        ["4", "BIND", "r20", "0", "r10", "r11", "2"],
        ["10", "CALL", "r4", "r30", "2", "r6", "r5"],
        ["16", "HALT"],
    ]


def test_memory_is_asked_for_only_where_there_is_too_little(machine):
    registers = registers_with(r4=10, r5=9, r7=1)
    growing = program(("GROW", 4, 5, 3), ("MOV", 6, 7))
    assert execute(machine, growing, registers) == YIELDED
    assert registers[:2].tolist() == [4, 3]
    assert registers[6] == 0
    registers[5] = 10
    assert execute(machine, growing, registers) == HALTED
    assert registers[6] == 1


def test_memory_of_a_negative_size_is_asked_for_and_so_refused(machine):
    assert execute(machine, program(("GROW", 4, 5, 3)), registers_with(r4=-8, r5=9)) == YIELDED


def test_two_registers_are_exchanged(machine):
    registers = registers_with(r4=3, r5=-7)
    assert execute(machine, program(("SWAP", 4, 5)), registers) == HALTED
    assert registers[4:6].tolist() == [-7, 3]


def counting(outer, inner):
    """r6 counts the passes of an inner loop (of `inner` passes) in an outer loop (of `outer`)."""
    assembler = Assembler()
    assembler.emit("MOV", 10, 4)
    end = assembler.skip(10, 8)
    outer_begin = len(assembler.code)
    assembler.emit("MOV", 11, 4)
    inner_end = assembler.skip(11, 9)
    inner_begin = len(assembler.code)
    assembler.emit("ADD", 6, 6, 5)
    assembler.emit("NEXT", 11, 9, inner_begin)
    assembler.land(inner_end)
    assembler.emit("NEXT", 10, 8, outer_begin)
    assembler.land(end)
    assembler.emit("HALT")
    return assembler, registers_with(r5=1, r8=outer, r9=inner)


@pytest.mark.parametrize(("outer", "inner"), [(0, 5), (5, 0), (1, 1), (3, 7), (-1, 2)])
def test_loops_run_as_often_as_they_are_told(machine, outer, inner):
    assembler, registers = counting(outer, inner)
    assert execute(machine, assembler, registers) == HALTED
    assert registers[6] == max(outer, 0) * max(inner, 0)


def test_a_long_loop_pauses_and_goes_on_where_it_was(machine):
    assembler, registers = counting(2000, 100_000)
    code, pc, pauses = np.array(assembler.code, dtype=np.int64), 0, 0
    begin = time.perf_counter()
    while machine.run(0, registers.ctypes.data, code.ctypes.data, pc) == PAUSED:
        pauses, pc = pauses + 1, int(registers[0])
    assert registers[6] == 2000 * 100_000
    assert 0 < pauses <= 1 + (time.perf_counter() - begin) / 0.04


def test_short_slow_loops_within_loops_pause_as_well(machine):
    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    def slow(arguments):
        time.sleep(0.001)
        return 0

    registers = registers_with(r7=ctypes.cast(slow, ctypes.c_void_p).value, r8=20, r9=20)
    assembler = Assembler()
    assembler.emit("MOV", 10, 4)
    outer = len(assembler.code)
    assembler.emit("MOV", 11, 4)
    assembler.emit("LOOK", 0)
    inner = len(assembler.code)
    assembler.call(7, 30, [5])
    assembler.emit("NEXT", 11, 9, inner)
    assembler.emit("NEXT", 10, 8, outer)
    assembler.emit("HALT")
    code, pc, pauses = np.array(assembler.code, dtype=np.int64), 0, 0
    while machine.run(0, registers.ctypes.data, code.ctypes.data, pc) == PAUSED:
        pauses, pc = pauses + 1, int(registers[0])
    assert pauses >= 1


def encoded(*instructions):
    """Words of instructions, jumps included; HALT is added."""
    words = []
    for name, *operands in instructions:
        words += [INSTRUCTIONS[name].opcode, *operands]
    return [*words, INSTRUCTIONS["HALT"].opcode]


@pytest.mark.parametrize(
    "code",
    [
        encoded(("SKIP", 5, 6, 4)),
        encoded(("MOV", 5, 6), ("SKIP", 5, 6, 7)),
    ],
)
def test_a_jump_to_the_beginning_of_an_instruction_is_taken(code):
    check_code(read_code(code), REGISTERS)


@pytest.mark.parametrize(
    "code",
    [
        encoded(("SKIP", 5, 6, 5), ("MOV", 5, 6)),
        encoded(("SKIP", 5, 6, 99)),
        encoded(("SKIP", 5, 6, -1)),
        encoded(("SKIP", 5, 6, 0)),
        encoded(("MOV", 5, 6), ("SKIP", 5, 6, 0)),
        encoded(("NEXT", 5, 6, 0)),
        encoded(("NEXT", 5, 6, 4)),
        encoded(("MOV", 7, 6), ("NEXT", 5, 6, 1)),
        encoded(("MOV", 5, 6), ("NEXT", 5, 6, 0)),
        encoded(("MOV", 6, 5), ("NEXT", 5, 6, 0)),
        encoded(("MOV", 7, 8), ("NEXT", 5, 5, 0)),
        encoded(("SWAP", 7, 6), ("NEXT", 5, 6, 0)),
        encoded(("BIND", 4, 0, 10, 11, 2), ("NEXT", 5, 8, 0)),
        encoded(("CALL", 9, 4, 2, 9, 9), ("NEXT", 5, 8, 0)),
        encoded(("NEXT", 2, 8, 0)),
    ],
)
def test_code_that_jumps_astray_or_forever_is_refused(code):
    with pytest.raises(InvalidProgram):
        check_code(read_code(code), REGISTERS)


def test_what_an_invocation_returns_is_bound_behind_it_and_nothing_else():
    item, returned = (11, 1), (11, 2)
    code = encoded(("INVOKE", 0), ("BIND", 20, 0, 10, 11, 2))
    check_items(read_code(code), [item], [], [[returned]])
    for made, bound in (([[returned]], []), ([], [[item]]), ([], [[]])):
        with pytest.raises(InvalidProgram, match=r"INVOKE|BIND"):
            check_items(read_code(code), [returned], made, bound)


def test_what_is_bound_must_be_known_whichever_way_the_program_came():
    site, item = [(11, 1)], (11, 1)
    straight = encoded(("YIELD", 0), ("BIND", 20, 0, 10, 11, 1))
    check_items(read_code(straight), [], [site], [])
    jumped_over = encoded(("SKIP", 5, 6, 6), ("YIELD", 0), ("BIND", 20, 0, 10, 11, 1))
    behind_grow = encoded(("GROW", 5, 6, 0), ("BIND", 20, 0, 10, 11, 1))
    for code in (jumped_over, behind_grow):
        check_code(read_code(code), REGISTERS)
        with pytest.raises(InvalidProgram, match="BIND"):
            check_items(read_code(code), [item], [site], [])
