"""Tests for NaN and infinities."""

import numpy as np
import pytest

import engine.tensor as pt
from engine import function
from engine.tensor.creation import Alloc
from engine.tensor.math import isinf_, isnan_

GIVEN = np.array([[np.nan, np.inf, 0.0], [-np.inf, -0.0, 1.5]])


@pytest.mark.parametrize(("test", "op", "due"), [(pt.isnan, isnan_, np.isnan), (pt.isinf, isinf_, np.isinf)])
def test_a_float_is_tested_and_no_integer_is(test, op, due):
    x, n = pt.matrix("x"), pt.imatrix("n")
    assert test(x).owner.op == op
    assert isinstance(test(n).owner.op, Alloc)
    f = function([x, n], [test(x), test(n), op(n)])
    whole = np.arange(8, dtype="int32").reshape(2, 4)
    for found, value in zip(f(GIVEN, whole), (GIVEN, whole, whole), strict=True):
        np.testing.assert_array_equal(found, due(value), strict=True)
    assert [found.shape for found in f(GIVEN, whole[:, :0])[1:]] == [(2, 0), (2, 0)]


def test_a_comparison_may_take_any_two_values_for_equal():
    assert pt.values_eq_approx_always_true(1.0, 2.0) is True
