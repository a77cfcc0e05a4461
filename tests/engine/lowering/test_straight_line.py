"""Kernels run at lowering time become one body without loops that gives every element the same value."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from engine.lowering.check import check_kernel
from engine.lowering.kernels.along import cumulative
from engine.lowering.kernels.building import KernelBuilder
from engine.lowering.kernels.elementwise import copy, elementwise
from engine.lowering.kernels.gather import gather
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.loops import Call, Fail, If, Kernel, Loop, ReadElement, WriteElement
from engine.lowering.statements import Statement
from engine.lowering.straight_line import (
    Element,
    NotStraight,
    StraightLine,
    first_element,
    known_integer,
)
from engine.runtime.load import process_loader
from tests.engine.conftest import address_of

SCALAR, VECTOR = NestOperand("float64", ()), NestOperand("float64", (False,))
EXP = elementwise([SCALAR], [Statement("exp", (("input", 0),), "float64")], [("value", 0)], 0)
DOUBLE = elementwise([SCALAR], [Statement("add", (("input", 0), ("input", 0)), "float64")], [("value", 0)], 0)


@pytest.fixture
def run_kernel(stored):
    """Call a kernel with words and return its status."""

    def call(kernel: Kernel, words: list[int]) -> int:
        symbol, content = stored(kernel)
        linked = process_loader().load(content, symbol)
        arguments = np.array(words, dtype=np.int64)
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(linked.address)(address_of(arguments))

    return call


def place(register: int, offset: int = 0, dtype: str = "float64") -> Element:
    return Element(register, dtype, offset)


def line_of(*runs: tuple[Kernel, list], limit: int = 200) -> StraightLine:
    line = StraightLine(limit)
    for kernel, given in runs:
        line.run(kernel, given)
    return line


def result_of(line: StraightLine, run_kernel, arrays: dict[int, np.ndarray]) -> Kernel:
    """Run the kernel on `arrays`, by register; return it."""
    kernel = line.kernel(lambda root: True)
    check_kernel(kernel)
    assert not any(isinstance(node, Loop | If) for node in kernel.body)
    assert run_kernel(kernel, [address_of(arrays[register]) for register in line.registers]) == 0
    return kernel


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 17])
def test_a_sum_of_known_length_is_that_of_its_loops(size, run_kernel):
    body = [Statement("exp", (("input", 0),), "float64")]
    kernel = reduction("sum", [VECTOR], body, ("value", 0), 1, (0,), "float64", "float64")
    x = np.random.default_rng(size).normal(size=size)
    straight, looped = np.zeros(()), np.zeros(())
    result_of(line_of((kernel, [place(1), known_integer(size), place(2)])), run_kernel, {1: x, 2: straight})
    assert run_kernel(kernel, [address_of(x), size, address_of(looped)]) == 0
    np.testing.assert_allclose(straight, looped, rtol=1e-15)


def test_loops_that_carry_values_are_opened(run_kernel):
    x, y = np.array([[3.0, 1.0], [5.0, 2.0], [0.5, 7.0]]), np.zeros((3, 2))
    lengths = [known_integer(n) for n in (1, 3, 2)]
    result_of(
        line_of((cumulative("add", "float64"), [place(1), *lengths, place(2)])), run_kernel, {1: x, 2: y}
    )
    np.testing.assert_array_equal(y, np.cumsum(x, axis=0))


def test_branches_on_known_numbers_are_decided(run_kernel):
    kernel = reduction("max", [VECTOR], [], ("input", 0), 1, (0,), "float64", "float64")
    assert any(isinstance(node, If) for node in kernel.body)
    x, y = np.array([2.0, np.inf, 3.0]), np.zeros(())
    result_of(line_of((kernel, [place(1), known_integer(3), place(2)])), run_kernel, {1: x, 2: y})
    assert y == np.inf
    with pytest.raises(NotStraight):  # of no elements it would fail
        line_of((kernel, [place(1), known_integer(0), place(2)]))


def test_an_element_that_was_written_is_not_read_again(run_kernel):
    line = line_of((EXP, [place(1), place(2)]), (DOUBLE, [place(2), place(3)]))
    kernel = line.kernel(lambda root: root == 3)
    assert [node.place.pointer for node in kernel.body if isinstance(node, ReadElement)] == ["p0"]
    assert len([node for node in kernel.body if isinstance(node, WriteElement)]) == 1
    assert line.registers == [1, 3]


def test_an_element_keeps_what_was_written_last(run_kernel):
    x = np.array([1.5])
    line = line_of((EXP, [place(1), place(1)]), (DOUBLE, [place(1), place(1)]))
    kernel = result_of(line, run_kernel, {1: x})
    assert x[0] == 2 * np.exp(1.5)
    assert len([node for node in kernel.body if isinstance(node, WriteElement)]) == 1


def test_equal_operations_become_one(run_kernel):
    line = line_of((EXP, [place(1), place(2)]), (EXP, [place(1), place(3)]))
    y, z = np.zeros(()), np.zeros(())
    kernel = result_of(line, run_kernel, {1: np.array(0.5), 2: y, 3: z})
    assert y == z == np.exp(0.5)
    assert kernel.summary == "straight line: exp, 2 elements"


def test_an_operation_that_nothing_needs_is_left_out():
    line = line_of((EXP, [place(1), place(2)]), (DOUBLE, [place(1), place(3)]))
    assert line.kernel(lambda root: root == 3).summary == "straight line: add, 1 elements"


def test_elements_of_one_array_are_told_apart(run_kernel):
    x = np.array([1.0, 2.0, 3.0])
    line = line_of((copy(SCALAR), [place(1, 2), place(1)]), (EXP, [place(1), place(1, 1)]))
    result_of(line, run_kernel, {1: x})
    np.testing.assert_array_equal(x, [3.0, np.exp(3.0), 3.0])


@pytest.mark.parametrize(
    "body",
    [(Fail(1),), (Call("blas_ddot", ()),), (Loop("i", 0, "n", 1, ()),), (Loop("i", 0, 10**9, 1, ()),)],
    ids=["failing", "external", "unknown length", "long"],
)
def test_other_work_is_refused(body):
    builder = KernelBuilder()
    builder.integer("n", ("n",))
    with pytest.raises(NotStraight):
        StraightLine(50).run(builder.kernel(body, "test"), [7])


def test_elements_whose_place_depends_on_values_are_refused():
    kernel = gather("float64", "int64", True)
    given = [place(1), place(2, dtype="int64"), known_integer(2), known_integer(3), place(4), place(3)]
    with pytest.raises(NotStraight):
        StraightLine(200).run(kernel, given)


def test_more_operations_than_the_limit_are_refused():
    vector = elementwise([VECTOR], [Statement("exp", (("input", 0),), "float64")], [("value", 0)], 1)
    line_of((vector, [place(1), known_integer(5), place(2)]), limit=10)
    with pytest.raises(NotStraight):
        line_of((vector, [place(1), known_integer(6), place(2)]), limit=10)


def test_arithmetic_that_leaves_int64_is_not_folded(run_kernel):
    builder = KernelBuilder()
    builder.pointer("y", "int64", ("output", 0))
    operand = NestOperand("int64", ())
    largest = ("constant", "int64", (2**63 - 1).to_bytes(8, "little"))
    kernel = elementwise([operand], [Statement("add", (largest, largest), "int64")], [("value", 0)], 0)
    y = np.zeros((), dtype=np.int64)
    line = line_of((kernel, [place(1, dtype="int64"), place(2, dtype="int64")]))
    result_of(line, run_kernel, {1: y, 2: y})
    assert y == -2


def test_views_at_known_distances_are_elements_of_what_they_view():
    addresses = {5: (4, 11), 6: (5, 12), 7: (5, 13)}
    numbers = {11: 16, 12: 8, 13: None}
    assert first_element(6, "float64", addresses, numbers.get) == Element(4, "float64", 3)
    assert first_element(6, "float32", addresses, numbers.get) == Element(4, "float32", 6)
    assert first_element(7, "float64", addresses, numbers.get) == Element(7, "float64", 0)
