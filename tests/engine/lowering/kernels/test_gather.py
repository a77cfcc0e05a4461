"""Gathering and scattering rows by an index has numpy's meaning, and errors name the wrong index."""

import numpy as np
import pytest

from engine.lowering.kernels.gather import BLOCK, gather, positions, scatter_add
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import INDEX_OUT_OF_RANGE, OK

DTYPES = ["float64", "float32", "int64", "int32", "int16", "uint64", "uint8", "bool"]
INDICES = ["int64", "int32", "int8"]


def lengths(array_shape, index):
    details = np.zeros(3, np.int64)
    rest = int(np.prod(array_shape[1:]))
    return details, {"count": index.size, "size": array_shape[0], "row": rest, "details": details.ctypes.data}


def some(dtype, shape):
    values = np.random.default_rng(8).integers(-5, 6, size=shape)
    return values > 0 if dtype == "bool" else values.astype(dtype)


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 2, 4), (6, 0)])
@pytest.mark.parametrize("index_dtype", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_gathered_from_either_end(run, dtype, index_dtype, shape):
    array, index = some(dtype, shape), np.array([0, 5, -1, -6, 2, 2], index_dtype)
    found = np.empty((6, *shape[1:]), dtype)
    _, others = lengths(shape, index)
    assert run(gather(dtype, index_dtype, len(shape) == 1), [array, index], [found], (), **others) == OK
    np.testing.assert_array_equal(found, array[index])


@pytest.mark.parametrize("kind", ["zeros", "copied", "overwritten"])
@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 2, 4), (6, 0), (0, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_added_to_rows_however_often_one_comes(run, dtype, shape, kind):
    index = np.array([0, 5, -1, -6, 2, 2, 2] if shape[0] else [], "int64")
    values, base = some(dtype, (index.size, *shape[1:])), some(dtype, shape)
    found = base.copy() if kind == "overwritten" else np.full(shape, 1, dtype)
    _, others = lengths(shape, index)
    kernel = scatter_add(dtype, "int64", len(shape) == 1, kind)
    assert run(kernel, [index, values, base], [found], (), **others) == OK
    expected = np.zeros(shape, dtype) if kind == "zeros" else base.copy()
    np.add.at(expected, index, values)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("index_dtype", INDICES)
@pytest.mark.parametrize(("wrong", "size"), [(4, 4), (-5, 4), (2**31 - 1, 4), (-(2**31), 4), (0, 0)])
def test_an_index_out_of_range_is_reported_with_its_place(run, wrong, size, index_dtype, vector):
    shape = (size,) if vector else (size, 2)
    wrong = np.clip(wrong, np.iinfo(index_dtype).min, np.iinfo(index_dtype).max)
    index = np.array([0, -1, wrong, 0] if size else [wrong], index_dtype)
    position = 2 if size else 0
    array, values = np.ones(shape), np.ones((index.size, *shape[1:]))
    for kernel, inputs, output in (
        (gather("float64", index_dtype, vector), [array, index], np.zeros_like(values)),
        (scatter_add("float64", index_dtype, vector, "copied"), [index, values, array], np.zeros(shape)),
    ):
        details, others = lengths(shape, index)
        assert run(kernel, inputs, [output], (), **others) == INDEX_OUT_OF_RANGE
        assert details.tolist() == [position, wrong, size]


@pytest.mark.parametrize("position", [0, 1, 30, 63, 66])
@pytest.mark.parametrize("wrong", [100, -101, 2**63 - 1, -(2**63)])
def test_the_first_wrong_one_of_a_long_index_is_reported(run, wrong, position):
    index = np.arange(-33, 34)
    index[[position, 66]] = wrong
    details, others = lengths((100,), index)
    for kernel, inputs in (
        (gather("float64", "int64", True), [np.zeros(100), index]),
        (scatter_add("float64", "int64", True, "zeros"), [index, np.ones(67)]),
    ):
        details[:] = 0
        assert run(kernel, inputs, [np.zeros(100)], (), **others) == INDEX_OUT_OF_RANGE
        assert details.tolist() == [position, wrong, 100]


@pytest.mark.parametrize("kind", ["zeros", "copied", "overwritten"])
@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17])
@pytest.mark.parametrize("index_dtype", INDICES)
def test_long_indices_are_checked_and_used_to_the_end(run, kind, length, index_dtype):
    random = np.random.default_rng(length)
    index, values = random.integers(-50, 50, length).astype(index_dtype), random.integers(9, size=length)
    kernel = scatter_add("int64", index_dtype, True, kind)
    base = np.arange(50)
    due = np.zeros(50, np.int64) if kind == "zeros" else base.copy()
    np.add.at(due, index, values)
    details, others = lengths((50,), index)
    found = base.copy()
    assert run(kernel, [index, values, base], [found], (), **others) == OK
    np.testing.assert_array_equal(found, due)
    for position in (length - 1, BLOCK - 2):
        index[position] = 50
        assert run(kernel, [index, values, base], [base.copy()], (), **others) == INDEX_OUT_OF_RANGE
        assert details.tolist() == [position, 50, 50]


@pytest.mark.parametrize("kind", ["zeros", "copied", "overwritten"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats_are_added_in_the_order_of_the_index(run, dtype, kind):
    """The first block counts from the end, of the others one number."""
    random, length = np.random.default_rng(3), 3 * BLOCK + 5
    index = random.integers(-3, 3, length)
    index[BLOCK:] %= 3
    index[-1] = -2
    values = (random.normal(size=length) * 10.0 ** random.uniform(-6, 6, length)).astype(dtype)
    base = np.array([1e-3, 0.1, 7.0], dtype)
    due, found = np.zeros(3, dtype) if kind == "zeros" else base.copy(), base.copy()
    np.add.at(due, index, values)
    _, others = lengths((3,), index)
    assert run(scatter_add(dtype, "int64", True, kind), [index, values, base], [found], (), **others) == OK
    assert found.tobytes() == due.tobytes()


@pytest.mark.parametrize("mask", [[], [0], [1], [0, 0, 1], [1, 1, 1, 0, 0], [0] * 40, [1] * 33, [0, 1] * 50])
def test_the_positions_of_true_elements_fill_the_output_and_nothing_behind(run, mask):
    mask = np.array(mask, bool)
    count = int(mask.sum())
    found = np.full(count + 1, 77)
    assert run(positions(), [mask], [found], mask.shape, count=count) == OK
    assert found.tolist() == [*np.flatnonzero(mask).tolist(), 77]


@pytest.mark.parametrize("vector", [True, False])
def test_nothing_is_changed_by_a_scatter_in_place_whose_index_is_wrong(run, vector):
    shape = (4,) if vector else (4, 2)
    index = np.array([0, 1, 4])
    output, (_, others) = np.full(shape, 7.0), lengths(shape, index)
    inputs = [index, np.ones((3, *shape[1:]))]
    kernel = scatter_add("float64", "int64", vector, "overwritten")
    assert run(kernel, inputs, [output], (), **others) == INDEX_OUT_OF_RANGE
    assert (output == 7.0).all()


@pytest.mark.parametrize("index_dtype", ["float64", "bool"])
def test_an_index_that_is_no_integer_is_refused(index_dtype):
    with pytest.raises(InvalidKernel):
        gather("float64", index_dtype, True)
    with pytest.raises(InvalidKernel):
        scatter_add("float64", index_dtype, True, "zeros")
