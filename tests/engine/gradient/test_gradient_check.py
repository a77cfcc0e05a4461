import numpy as np
import pytest

from engine.gradient import numeric_grad


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_by_differences_are_those_of_the_function(dtype):
    x, y = np.array([0.5, -1.0], dtype), np.array(2.0, dtype)
    by_x, by_y = numeric_grad(lambda x, y: np.sum(x**2) * y, [x, y]).gf
    tolerance = 10 * numeric_grad.type_eps[dtype]
    np.testing.assert_allclose(by_x, 4 * x, rtol=tolerance)
    np.testing.assert_allclose(by_y, 1.25, rtol=tolerance)


def test_the_slopes_at_one_array_are_one():
    found = numeric_grad(lambda x: 3 * x, np.ones((2, 2)), eps=0.25)
    np.testing.assert_array_equal(found.gf, np.full((2, 2), 3.0))
