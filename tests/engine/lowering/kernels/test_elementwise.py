"""Elementwise kernels treat contiguous, strided, broadcast and empty operands as numpy does."""

from itertools import permutations, product

import numpy as np
import pytest

from engine.lowering.kernels.elementwise import TILE, copy, elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.loops import Compute, Loop, ReadElement
from engine.lowering.statements import Statement
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import NEGATIVE_POWER, OK

SHAPES = {
    0: [()],
    1: [(0,), (1,), (9,)],
    2: [(3, 5), (0, 5), (3, 0), (1, 1)],
    3: [(2, 3, 4), (2, 0, 4), (5, 1, 3)],
}
ADD = Statement("add", (("input", 0), ("input", 1)), "float64")


def operand_of(shape, broadcast, strided, seed):
    """Return an array of this pattern, broadcast to `shape`."""
    own = tuple(1 if still else n for n, still in zip(shape, broadcast, strict=True))
    source = np.random.default_rng(seed)
    if not strided:
        return np.broadcast_to(source.normal(size=own), shape)
    wide = source.normal(size=tuple(2 * n + 1 for n in reversed(own)))
    return np.broadcast_to(wide.T[tuple(slice(2 * n - 1, None, -2) for n in own)] if own else wide, shape)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("broadcast", [p for rank in range(4) for p in product((False, True), repeat=rank)])
def test_two_operands_of_any_pattern_are_added(run, broadcast, strided):
    rank = len(broadcast)
    operands = [NestOperand("float64", (False,) * rank), NestOperand("float64", broadcast, strided)]
    kernel = elementwise(operands, [ADD], [("value", 0)], rank)
    for shape in SHAPES[rank]:
        x = operand_of(shape, (False,) * rank, False, 1)
        y = operand_of(shape, broadcast, strided, 2)
        found = np.empty(shape)
        assert run(kernel, [x, y], [found], shape) == OK
        np.testing.assert_array_equal(found, x + y)


@pytest.mark.parametrize(
    ("first", "second"),
    [((True, False), (False, True)), ((True, True), (False, True)), ((True, True), (True, True))],
)
def test_operands_may_be_broadcast_against_each_other(run, first, second):
    kernel = elementwise(
        [NestOperand("float64", first), NestOperand("float64", second, True)], [ADD], [("value", 0)], 2
    )
    for shape in ((3, 4), (0, 4), (3, 0)):
        x, y = operand_of(shape, first, False, 1), operand_of(shape, second, True, 2)
        found = np.empty(shape)
        assert run(kernel, [x, y], [found], shape) == OK
        np.testing.assert_array_equal(found, x + y)


def test_several_outputs_share_their_statements(run):
    body = [
        Statement("exp", (("input", 0),), "float64"),
        Statement("gt", (("value", 0), ("constant", "float64", np.float64(1).tobytes())), "bool"),
        Statement("cast", (("value", 1),), "int32"),
    ]
    outputs = [
        ("value", 2),
        ("value", 0),
        ("input", 0),
        ("value", 1),
        ("constant", "int64", np.int64(9).tobytes()),
    ]
    kernel = elementwise([NestOperand("float64", (False,))], body, outputs, 1)
    x = np.linspace(-1, 1, 7)
    found = [np.empty(7, dtype) for dtype in ("int32", "float64", "float64", "bool", "int64")]
    assert run(kernel, [x], found, (7,)) == OK
    for array, expected in zip(found, (np.exp(x) > 1, np.exp(x), x, np.exp(x) > 1, 9), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-15)


def test_an_output_may_be_the_memory_of_an_input(run):
    kernel = elementwise([NestOperand("float64", (False,))] * 2, [ADD], [("value", 0)], 1)
    x, y = np.arange(100.0), np.arange(100.0)[::-1].copy()
    expected = x + y
    assert run(kernel, [x, y], [x], (100,)) == OK
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("size", [1, 3, 64, 1001])
def test_several_outputs_may_be_the_memory_of_several_inputs(run, size):
    body = [ADD, Statement("mul", (("input", 0), ("input", 1)), "float64")]
    kernel = elementwise([NestOperand("float64", (False,))] * 2, body, [("value", 1), ("value", 0)], 1)
    source = np.random.default_rng(3)
    x, y = source.normal(size=size), source.normal(size=size)
    due = x * y, x + y
    assert run(kernel, [x, y], [x, y], (size,)) == OK
    np.testing.assert_array_equal(x, due[0])
    np.testing.assert_array_equal(y, due[1])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_a_transposed_array_is_copied(run, dtype):
    x = (np.arange(24).reshape(4, 3, 2) % 5).astype(dtype).T
    found = np.empty(x.shape, dtype)
    assert run(copy(NestOperand(dtype, (False,) * 3, strided=True)), [x], [found], x.shape) == OK
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1), (3, TILE), (TILE + 1, 2 * TILE + 5)])
def test_a_matrix_whose_columns_are_contiguous_is_read_in_tiles(run, shape):
    operands = [NestOperand("float64", (False, False), True, 0), NestOperand("float64", (True, False))]
    kernel = elementwise(operands, [ADD], [("value", 0)], 2)
    x, row = operand_of(shape[::-1], (False, False), False, 1).T, operand_of(shape, (True, False), False, 2)
    found = np.empty(shape)
    assert run(kernel, [x, row], [found], shape) == OK
    np.testing.assert_array_equal(found, x + row)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_dims_in_any_order_are_copied_in_tiles(run, order):
    x = np.random.default_rng(4).normal(size=(5, TILE + 2, 40)).transpose(order)
    unit = x.strides.index(8)
    kernel = copy(NestOperand("float64", (False,) * 3, strided=True, unit=None if unit == 2 else unit))
    found = np.empty(x.shape)
    assert run(kernel, [x], [found], x.shape) == OK
    np.testing.assert_array_equal(found, x)


def test_contiguous_operands_of_any_rank_are_one_flat_loop():
    flat = NestOperand("float64", (False,) * 4)
    kernel = elementwise([flat, flat, NestOperand("float64", (True,) * 4)], [ADD], [("value", 0)], 4)
    assert ("extent", (0, 1, 2, 3)) in kernel.arguments
    assert sum(isinstance(node, Loop) for node in kernel.body) == 1


def test_dims_are_joined_as_far_as_no_operand_tells_them_apart():
    bias = NestOperand("float64", (True, True, False, False))
    kernel = elementwise([NestOperand("float64", (False,) * 4), bias], [ADD], [("value", 0)], 4)
    extents = [argument[1] for argument in kernel.arguments if argument[0] == "extent"]
    assert extents == [(0, 1), (2, 3)]


def test_what_an_inner_loop_does_not_change_is_computed_outside_it():
    body = [
        Statement("exp", (("input", 1),), "float64"),
        Statement("mul", (("input", 0), ("value", 0)), "float64"),
    ]
    operands = [NestOperand("float64", (False, False)), NestOperand("float64", (False, True))]
    kernel = elementwise(operands, body, [("value", 1)], 2)
    (outer,) = (node for node in kernel.body if isinstance(node, Loop))
    before = [type(node) for node in outer.body]
    assert before == [ReadElement, Compute, Loop]
    assert [node.op for node in outer.body[-1].body if isinstance(node, Compute)] == ["mul"]


def test_a_power_that_no_element_asks_for_does_not_fail(run):
    body = [
        Statement("pow", (("input", 1), ("input", 2)), "int64"),
        Statement("add", (("input", 0), ("value", 0)), "int64"),
    ]
    operands = [NestOperand("int64", (False,)), NestOperand("int64", (True,)), NestOperand("int64", (True,))]
    kernel = elementwise(operands, body, [("value", 1)], 1)
    scalars = [np.array(2), np.array(-1)]
    for length, status in ((0, OK), (1, NEGATIVE_POWER)):
        inputs = [np.zeros(length, np.int64), *(np.broadcast_to(s, (length,)) for s in scalars)]
        assert run(kernel, inputs, [np.zeros(length, np.int64)], (length,)) == status


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ([], [("value", 0)]),
        ([], [("input", 2)]),
        ([], [("constant", "float128", b"\0\0")]),
        ([Statement("exp", (("value", 0),), "float64")], [("value", 0)]),
        (
            [Statement("exp", (("value", 1),), "float64"), Statement("exp", (("input", 0),), "float64")],
            [("value", 0)],
        ),
    ],
)
def test_a_ref_to_nothing_is_refused(body, outputs):
    with pytest.raises(InvalidKernel):
        elementwise([NestOperand("float64", (False,))], body, outputs, 1)


def test_a_pattern_of_another_rank_is_refused():
    with pytest.raises(InvalidKernel):
        elementwise([NestOperand("float64", (False, False))], [], [("input", 0)], 1)
