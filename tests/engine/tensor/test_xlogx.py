"""Products with logarithms that are 0 where the first factor is."""

import numpy as np
import pytest
from scipy import special

import engine
import engine.tensor as pt
from engine.tensor.xlogx import xlogx, xlogy0

POINTS = np.array([0.0, 1e-300, 0.3, 1.0, 7.5, np.inf, np.nan])


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("function", [xlogx, lambda x: pt.special.xlogy(x, x)], ids=["xlogx", "xlogy"])
def test_a_number_times_its_own_logarithm_has_a_slope_at_0(function, mode):
    x = pt.dvector("x")
    f = engine.function([x], [function(x), engine.grad(function(x).sum(), x)], mode=mode)
    value, slope = f(POINTS)
    np.testing.assert_allclose(value, special.xlogy(POINTS, POINTS))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(slope, 1 + np.log(POINTS))


@pytest.mark.parametrize("product", [pt.special.xlogy, pt.special.xlog1py])
def test_the_slope_of_a_product_with_the_logarithm_of_0_is_0_where_the_factor_is(product):
    x, y = pt.dvectors("x", "y")
    least = 0.0 if product is pt.special.xlogy else -1.0
    slopes = engine.grad(product(x, y).sum(), [x, y])
    with np.errstate(divide="ignore"):
        by_x, by_y = engine.function([x, y], slopes)([0.0, 0.0, 2.0], [least, least + 3.0, least])
    np.testing.assert_array_equal(by_y, [0.0, 0.0, np.inf])
    np.testing.assert_allclose(by_x, [-np.inf, np.log(3.0), -np.inf])


def test_a_product_with_the_logarithm_of_an_equal_expression_has_a_slope_at_0():
    x = pt.dvector("x")
    slope = engine.grad(xlogy0(x * 1, x * 1).sum(), x)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(engine.function([x], slope)(POINTS[:-2]), 1 + np.log(POINTS[:-2]))


def test_the_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(5)
    engine.verify_grad(xlogx, [rng.uniform(0.1, 2.0, (3, 4))])
    engine.verify_grad(xlogy0, [rng.uniform(0.1, 2.0, (3, 4)), rng.uniform(0.1, 2.0, (3, 4))])


def test_integers_are_floats():
    assert engine.function([], xlogx(pt.constant([1, 0])))().tolist() == [0.0, 0.0]
