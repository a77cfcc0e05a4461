"""Sorting is numpy's, along every axis, stable, with NaNs last."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-3, 4, (3, 7, 2)) / 2


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_every_axis_is_sorted_and_equal_elements_keep_their_order(dtype, mode, kernels_once):
    x = pt.tensor("x", dtype, (None, None, None))
    axes, value = (None, 0, 1, -1), X.astype(dtype)
    outputs = [pt.sort(x, axis) for axis in axes] + [pt.argsort(x, axis) for axis in axes]
    function = engine.function([x], outputs, mode=mode)
    for array in (value, value[:, :1], value[:0], value[:, :0]):
        expected = [np.sort(array, axis) for axis in axes]
        expected += [np.argsort(array, axis, kind="stable") for axis in axes]
        for number, (one, other) in enumerate(zip(function(array), expected, strict=True)):
            np.testing.assert_array_equal(one, other, err_msg=f"{array.shape} {number}")


@pytest.mark.parametrize("length", [2, 3, 63, 64, 65, 1000])
def test_vectors_of_any_length_are_sorted(length, kernels_once):
    x = pt.dvector("x")
    value = RANDOM.normal(size=length)
    value[:: length // 2 + 1] = np.nan
    found, positions = engine.function([x], [pt.sort(x), pt.argsort(x)])(value)
    np.testing.assert_array_equal(found, np.sort(value))
    np.testing.assert_array_equal(positions, np.argsort(value, kind="stable"))


def test_the_gradient_goes_where_an_element_came_from():
    verify_grad(lambda x: pt.sort(x, 0) * pt.arange(3.0)[:, None], [RANDOM.normal(size=(3, 4))], n_tests=1)


def test_what_has_no_axis_is_not_sorted():
    with pytest.raises(ValueError, match="dimensions"):
        pt.sort(pt.dvector("x"), 1)
    with pytest.raises(TypeError, match="no axis"):
        pt.ArgSortOp()(pt.dscalar("x"))
