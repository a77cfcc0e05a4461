"""Operations on tensors of every integer dtype, at the ends of its range, are numpy's; no gradient flows there."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad
from tests.engine.special_values import SIGNED, UNSIGNED, special

INTEGERS = (*SIGNED, *UNSIGNED)
SOME_SLOW = [
    pytest.param(dtype, marks=[pytest.mark.slow] if dtype.endswith(("16", "32")) else [])
    for dtype in INTEGERS
]


def check(inputs, cases, values):
    """Compare each output with what numpy gives: dtype, shape and values."""
    found = engine.function(inputs, [output for output, _ in cases])(*values)
    for number, (one, (_, expected)) in enumerate(zip(found, cases, strict=True)):
        expected = np.asarray(expected)
        assert (one.dtype, one.shape) == (expected.dtype, expected.shape), number
        np.testing.assert_array_equal(one, expected, err_msg=str(number))


def matrix(dtype):
    values = special(dtype)
    return np.array([values, values[::-1], np.roll(values, 3)])


@pytest.mark.parametrize("dtype", SOME_SLOW)
def test_reductions_and_orders(dtype, kernels_once):
    x, value = pt.matrix("x", dtype=dtype), matrix(dtype)
    cases = [(pt.sort(x, 1), np.sort(value, 1)), (pt.argsort(x, 0), np.argsort(value, 0, kind="stable"))]
    for axis in (None, 0, 1):
        cases += [
            (pt.sum(x, axis), np.sum(value, axis)),
            (pt.prod(x, axis), np.prod(value, axis)),
            (pt.sum(x, axis, dtype=dtype), np.sum(value, axis, dtype=dtype)),
            (pt.max(x, axis), np.max(value, axis)),
            (pt.min(x, axis), np.min(value, axis)),
            (pt.argmax(x, axis), np.argmax(value, axis)),
            (pt.argmin(x, axis), np.argmin(value, axis)),
            (pt.cumsum(x, axis), np.cumsum(value, axis)),
            (pt.cumprod(x, axis), np.cumprod(value, axis)),
            (pt.all(x, axis), np.all(value, axis)),
            (pt.any(x, axis), np.any(value, axis)),
        ]
    check([x], cases, [value])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_range_ends_where_numpys_does(dtype):
    n = pt.scalar("n", dtype="int64")
    check([n], [(pt.arange(n, dtype=dtype), np.arange(100).astype(dtype))], [100])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_parts_are_read_and_changed(dtype, kernels_once):
    x, y, value = pt.matrix("x", dtype=dtype), pt.vector("y", dtype=dtype), matrix(dtype)
    row = special(dtype)
    width = len(row)
    put, added, repeated = value.copy(), value.copy(), value.copy()
    put[1], added[:, 2:] = row, added[:, 2:] + row[2:]
    np.add.at(repeated, [0, 2, 0], row)
    cases = [
        (x[1, ::-1], value[1, ::-1]),
        (x[[2, 0, 2]], value[[2, 0, 2]]),
        (x[1].set(y), put),
        (x[:, 2:].inc(y[2:]), added),
        (x[[0, 2, 0]].inc(y), repeated),
        (pt.join(0, x, x), np.concatenate([value, value])),
        (pt.alloc(y, 4, width), np.broadcast_to(row, (4, width))),
        (pt.dot(x, y), value @ row),
        (pt.switch(pt.gt(x, y), x, y), np.where(value > row, value, row)),
        (x.dimshuffle(1, 0) + 1, value.T + np.array(1, dtype)),
    ]
    check([x, y], cases, [value, row])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_index_is_of_any_integer_dtype(dtype):
    x, i, n = pt.dmatrix("x"), pt.vector("i", dtype=dtype), pt.scalar("n", dtype=dtype)
    value, index = np.arange(12.0).reshape(4, 3), np.array([3, 0, 3, 1], dtype)
    cases = [(x[i], value[index]), (x[n], value[2]), (x[1:n], value[1:2]), (x[i, n], value[index, 2])]
    check([x, i, n], cases, [value, index, np.array(2, dtype)])


def test_an_index_that_int64_cannot_hold_is_out_of_bounds():
    x, i, n = pt.dvector("x"), pt.vector("i", dtype="uint64"), pt.scalar("n", dtype="uint64")
    most = 2**64 - 1
    with pytest.raises(IndexError, match="bounds"):
        engine.function([x, i], x[i])(np.ones(3), np.array([most], "uint64"))
    with pytest.raises(IndexError, match="bounds"):
        engine.function([x, n], x[n])(np.ones(3), np.array(most, "uint64"))
    assert engine.function([x, n], x[:n])(np.ones(3), np.array(most, "uint64")).shape == (3,)


def test_a_range_of_uint64_is_refused():
    with pytest.raises(TypeError, match="no int64"):
        pt.arange(pt.scalar("n", dtype="uint64"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_wrap(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    a, b = (g.ravel() for g in np.meshgrid(special(dtype), np.array([0, 1, 2, 3, 31, 65], dtype)))
    with np.errstate(all="ignore"):
        check([x, y], [(x**y, a**b)], [a, b])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_gradient_stops_at_an_integer(dtype):
    x, n = pt.dvector("x"), pt.vector("n", dtype=dtype)
    cost = pt.sum(x * n + pt.cast(pt.exp(x), dtype) * 3)
    slope = engine.function([x, n], grad(cost, x))([0.5, 1.5], np.array([2, 3], dtype))
    np.testing.assert_array_equal(slope, [2.0, 3.0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_and_shared_values_are_taken(dtype):
    n, limits = pt.scalar("n", dtype=dtype), np.iinfo(dtype)
    s = engine.shared(np.array([1, 2], dtype))
    f = engine.function([n], [n + s], updates=[(s, s * 2)])
    for number in (3, np.dtype(dtype).type(3)):
        (found,) = f(number)
        assert found.dtype == dtype
    np.testing.assert_array_equal(s.get_value(), np.array([4, 8], dtype))
    for wrong in (int(limits.max) + 1, int(limits.min) - 1):
        with pytest.raises((TypeError, OverflowError)):
            f(wrong)
