"""Sorting is numpy's, along every axis, with NaNs last; positions are those of a stable sort."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.compile.mode import Mode
from tests.engine.special_values import DTYPES

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-3, 4, (3, 7, 2)) / 2


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_axis_is_sorted_and_equal_elements_keep_their_order(dtype, mode, kernels_once):
    x = pt.tensor("x", dtype, (None, None, None))
    axes, value = (None, 0, 1, -1), (X + 2 * dtype.startswith("u")).astype(dtype)
    outputs = [pt.sort(x, axis) for axis in axes] + [pt.argsort(x, axis) for axis in axes]
    function = engine.function([x], outputs, mode=mode)
    for array in (value, value[:, :1], value[:0], value[:, :0]):
        expected = [np.sort(array, axis) for axis in axes]
        expected += [np.argsort(array, axis, kind="stable") for axis in axes]
        for number, (one, other) in enumerate(zip(function(array), expected, strict=True)):
            np.testing.assert_array_equal(one, other, err_msg=f"{array.shape} {number}")


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_columns_without_elements_are_sorted(dtype, kernels_once):
    x = pt.tensor("x", dtype, (None, None))
    for found in engine.function([x], [pt.sort(x, 0), pt.argsort(x, 0)])(np.ones((0, 3), dtype)):
        assert found.shape == (0, 3)


@pytest.mark.parametrize("length", [2, 3, 63, 64, 65, 1000])
def test_vectors_of_any_length_are_sorted(length, kernels_once):
    x = pt.dvector("x")
    value = RANDOM.normal(size=length)
    value[:: length // 2 + 1] = np.nan
    found, positions = engine.function([x], [pt.sort(x), pt.argsort(x)])(value)
    np.testing.assert_array_equal(found, np.sort(value))
    np.testing.assert_array_equal(positions, np.argsort(value, kind="stable"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("distinct", [1, 2, 10, 700])
def test_positions_of_equal_elements_ascend(dtype, distinct, kernels_once):
    x = pt.tensor("x", dtype, (None, None))
    value = RANDOM.integers(-distinct, distinct, (3, 700)).astype(dtype)
    if dtype.startswith("float"):
        value[0, ::5], value[1, 3::7], value[1, 4::7] = np.nan, -0.0, 0.0
        value[2, ::3], value[2, 1::3] = np.inf, -np.inf
    found = engine.function([x], pt.argsort(x))(value)
    np.testing.assert_array_equal(found, np.argsort(value, axis=-1, kind="stable"))


def test_positions_that_may_change_places_are_those_of_numpys_default(kernels_once):
    x = pt.dmatrix("x")
    value = RANDOM.integers(-5, 5, (2, 300)).astype(float)
    functions = [
        engine.function([x], pt.argsort(x, stable=False), mode=mode) for mode in ("FAST_RUN", "NUMPY")
    ]
    for found in (function(value) for function in functions):
        np.testing.assert_array_equal(found, np.argsort(value))


def test_special_values_are_sorted_as_numpys(kernels_once):
    value = np.array([np.nan, np.inf, 5e-324, -np.inf, -0.0, np.nan, 1.0, 0.0, -1e308] * 9)
    x = pt.dvector("x")
    np.testing.assert_array_equal(engine.function([x], pt.sort(x))(value), np.sort(value))


def test_what_is_sorted_stays_as_it_is():
    x, value = pt.dmatrix("x"), RANDOM.normal(size=(5, 9))
    before = value.copy()
    found = engine.function([x], [pt.sort(x), pt.sort(x.T), x + 1.0])(value)
    np.testing.assert_array_equal(value, before)
    np.testing.assert_array_equal(found[1], np.sort(before.T))
    np.testing.assert_array_equal(found[2], before + 1.0)


def test_the_tangent_moves_with_its_element():
    x, t = pt.dmatrix("x"), pt.dmatrix("t")
    value, tangent = RANDOM.normal(size=(2, 4, 5))
    found = engine.function([x, t], engine.gradient.pushforward(pt.sort(x), x, t))(value, tangent)
    order = np.argsort(value, axis=1)
    np.testing.assert_array_equal(found, np.take_along_axis(tangent, order, axis=1))


def test_the_gradient_goes_where_an_element_came_from():
    verify_grad(lambda x: pt.sort(x, 0) * pt.arange(3.0)[:, None], [RANDOM.normal(size=(3, 4))], n_tests=1)


def test_what_has_no_axis_is_not_sorted():
    with pytest.raises(ValueError, match="dimension"):
        pt.sort(pt.dvector("x"), 1)
    with pytest.raises(TypeError, match="no axis"):
        pt.ArgSortOp()(pt.dscalar("x"))
    with pytest.raises(TypeError, match="no axis"):
        pt.SortOp()(pt.dscalar("x"))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_an_axis_may_be_known_when_the_function_runs(dtype, mode):
    x, axis = pt.dtensor3("x"), pt.scalar("axis", dtype=dtype)
    f = engine.function([x, axis], [pt.sort(x, axis), pt.argsort(x, axis, "mergesort")], mode=mode)
    for number in (0, 1, 2, -1, -2, -3):
        found = f(X, np.array(number, dtype))
        np.testing.assert_array_equal(found[0], np.sort(X, number))
        np.testing.assert_array_equal(found[1], np.argsort(X, number, kind="stable"))
    for number in (3, -4):
        with pytest.raises(AssertionError, match="axis is out of bounds"):
            f(X, np.array(number, dtype))
    with pytest.raises(ValueError, match="Sort axis must have an integer dtype, got float32"):
        pt.sort(x, pt.fscalar())
    with pytest.raises(TypeError, match="no axis"):
        pt.sort(pt.dscalar(), axis)


def test_the_gradient_of_a_sort_along_a_symbolic_axis_is_that_of_the_axis():
    x, axis = pt.dmatrix("x"), pt.lscalar("axis")
    weights, value = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(3, 4))
    for number in (0, 1):
        symbolic = engine.grad(pt.sum(pt.sort(x, axis) * weights), x)
        plain = engine.grad(pt.sum(pt.sort(x, number) * weights), x)
        np.testing.assert_array_equal(symbolic.eval({x: value, axis: number}), plain.eval({x: value}))


def test_an_op_says_which_kind_of_sort_was_asked_for():
    x = pt.dmatrix("x")
    assert (pt.argsort(x).owner.op.kind, pt.sort(x).owner.op.kind) == ("quicksort", "quicksort")
    assert pt.argsort(x, stable=True).owner.op.kind == "stable"
    assert pt.sort(x, stable=True).owner.op.kind == "stable"
    assert pt.SortOp("mergesort") == pt.SortOp("mergesort") != pt.SortOp("quicksort")
    with pytest.raises(ValueError, match="kind must be one of"):
        pt.sort(x, kind="hanoi")
    with pytest.raises(ValueError, match="cannot be set at the same time"):
        pt.sort(x, kind="quicksort", stable=True)
    with pytest.raises(ValueError, match="order argument is not applicable"):
        pt.argsort(x, order=[])


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY", Mode(optimizer=None)])
def test_a_stable_sort_keeps_the_order_of_zeros_of_both_signs(mode):
    values = np.array([[0.0, 1.0, -0.0, -1.0], [-0.0, 0.0, np.nan, -0.0]])
    x = pt.dmatrix("x")
    found = engine.function([x], pt.sort(x, stable=True), mode=mode)(values)
    assert found.tobytes() == np.sort(values, kind="stable").tobytes()
