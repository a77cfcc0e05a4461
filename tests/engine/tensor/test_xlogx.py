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


def test_the_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(5)
    engine.verify_grad(xlogx, [rng.uniform(0.1, 2.0, (3, 4))])
    engine.verify_grad(xlogy0, [rng.uniform(0.1, 2.0, (3, 4)), rng.uniform(0.1, 2.0, (3, 4))])


def test_integers_are_floats():
    assert engine.function([], xlogx(pt.constant([1, 0])))().tolist() == [0.0, 0.0]
