"""Balls give what numbers of 4,000 bits give, and rounding changes it as doubles do."""

import random

import numpy as np
import pytest

from tests.engine.generated_expressions import extreme_values, generated_expression, ordinary_values
from tests.engine.wide_numbers import exact_results as by_wide_numbers

balls = pytest.importorskip("tests.engine.balls", exc_type=ImportError)


def cases(count):
    for seed in range(count):
        numbers = random.Random(seed)
        inputs = numbers.choice([1, 2])
        expression = generated_expression(numbers, inputs, numbers.choice([2, 4, 8, 12]))
        yield expression, ordinary_values(np.random.default_rng(seed), inputs, 3)
        yield expression, extreme_values(numbers, inputs, 3)


def test_balls_give_what_wide_numbers_give():
    found = [(balls.exact_results(*case), by_wide_numbers(*case)) for case in cases(30)]
    assert any(one is None for one, _ in found)
    for one, other in found:
        assert (one is None) == (other is None)
        np.testing.assert_allclose(one or [], other or [], rtol=1e-12)


@pytest.mark.parametrize("exact_results", [balls.exact_results, by_wide_numbers])
def test_noise_rounds_what_is_watched_as_doubles_do(exact_results):
    def difference(library, variables):
        near = variables[0] + 1.0
        library.watch(near)
        return near - 1.0

    values = [np.array([1e-3, 1e-300])]
    exact, rounded = (exact_results(difference, values, noise) for noise in (None, np.random.default_rng(0)))
    np.testing.assert_array_equal(exact[0], values[0])
    errors = np.abs(rounded[0] - exact[0])
    assert np.all((errors > 1e-16) & (errors < 1e-15))


def test_what_no_precision_tells_is_no_number():
    def quotient(library, variables):
        nothing = library.log(library.exp(variables[0])) - variables[0]
        return 1 / nothing

    value, slope = balls.exact_results(quotient, [np.ones(2)])
    assert np.isnan(value).all()
    assert np.isnan(slope).all()
