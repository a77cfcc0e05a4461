"""Rounding of arrays."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.scalar import round_half_away_from_zero_vec


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_halves_are_rounded_away_from_zero(dtype):
    given = np.array([-2.5, -0.5, -0.4, 0.5, 1.5, 2.4, 0.49999997, np.inf, -np.inf, np.nan], dtype)
    found = round_half_away_from_zero_vec(given)
    due = np.array([-3, -1, -0.0, 1, 2, 2, 0, np.inf, -np.inf, np.nan], dtype)
    np.testing.assert_array_equal(found, due, strict=True)
    assert np.signbit(found[2])


def test_arrays_are_rounded_as_tensors_are():
    given = np.random.default_rng(1).normal(scale=3, size=(4, 5))
    np.testing.assert_array_equal(
        round_half_away_from_zero_vec(given), pt.round_half_away_from_zero(given).eval()
    )
