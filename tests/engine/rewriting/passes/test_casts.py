"""Casts and orders of axes of all dtypes, of complex numbers and float16 too, which no kernel computes; and
sums with truth values."""

import numpy as np
import pytest

import engine
import engine.tensor as pt

NUMBERS = np.array([0.1, -0.0, np.inf, np.nan], "float32")
P, X = np.array([True, False]), np.array([2.5, np.inf])


def casts_left(f):
    return [str(node.op) for node in f.maker.fgraph.toposort() if str(node.op).startswith("cast")]


@pytest.mark.parametrize(
    ("dtype", "inner", "outer", "left"),
    [
        ("float32", "complex64", "complex128", ["cast{complex128}"]),
        ("complex64", "complex128", "complex64", []),
        ("float16", "float32", "float16", []),
        ("complex128", "complex64", "complex128", ["cast{complex64}", "cast{complex128}"]),
    ],
)
def test_a_cast_that_loses_nothing_is_left_out_before_another(dtype, inner, outer, left):
    x = pt.vector("x", dtype=dtype)
    f = engine.function([x], pt.cast(pt.cast(x, inner), outer))
    assert casts_left(f) == left
    value = NUMBERS.astype(dtype)
    found = f(value)
    assert found.dtype == outer
    np.testing.assert_array_equal(found, value.astype(inner).astype(outer))


def test_orders_of_axes_of_complex_numbers_are_merged():
    x = pt.matrix("x", dtype="complex64")
    f = engine.function([x], x.dimshuffle(1, 0).dimshuffle(1, "x", 0) * 2)
    orders = [str(node.op) for node in f.maker.fgraph.toposort() if "DimShuffle" in str(node.op)]
    assert orders == ["DimShuffle{order=[0,x,1]}"]
    value = np.arange(6).reshape(2, 3).astype("complex64")
    np.testing.assert_array_equal(f(value), value[:, None, :] * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [0, 1, -1, 1000])
@pytest.mark.parametrize("order", [lambda n, p: n - p, lambda n, p: p - n, lambda n, p: n + p])
def test_a_mask_and_what_is_left_of_a_number_are_one_cast(rewritten, dtype, number, order):
    p = pt.vector("p", dtype="bool")
    graph = rewritten(p, [pt.cast(order(np.int64(number), p), dtype), pt.cast(p, dtype)])
    assert graph.check_values(P, exact=True).ops.count(f"cast_{dtype}") <= 1


def test_a_complement_beside_floats_is_of_floats(rewritten):
    p, x = pt.vector("p", dtype="bool"), pt.dvector("x")
    graph = rewritten([p, x], pt.cast(1 - p, "float64") * x)
    assert all(v.type.dtype != "int64" for v in graph.fgraph.variables)
    graph.check_values(P, X, exact=True)
    graph.check_values(~P, -X, exact=True)


@pytest.mark.parametrize(
    "build",
    [
        lambda p: pt.cast(np.uint8(0) - p, "float64"),
        lambda p: pt.cast(np.int8(127) + p, "float64"),
        lambda p: pt.cast(np.int64(2**53) + p, "float32"),
        lambda p: pt.cast(np.int64(1) - p, "int32"),
        lambda p: pt.cast(np.array([True]) + p, "float64"),
        lambda p: pt.cast(p + p[::-1], "float64"),
    ],
)
def test_a_sum_that_wraps_or_is_no_float_is_made_first(rewritten, build):
    p = pt.vector("p", dtype="bool")
    graph = rewritten(p, build(p)).check_values(P, exact=True)
    assert graph.applied.get("local_cast_of_truth_sum", 0) == 0


def test_a_sum_that_is_read_elsewhere_is_made_once(rewritten):
    p = pt.vector("p", dtype="bool")
    left = np.int64(1) - p
    graph = rewritten(p, [left, pt.cast(left, "float64")]).check_values(P, exact=True)
    assert graph.ops.count("sub") == 1
