"""Kernels along an axis find the place that numpy finds, in rows and in columns of any length."""

import numpy as np
import pytest

from engine.lowering.kernels.along import TILE, position_of_extreme
from engine.runtime.kernel_interface import EMPTY_REDUCTION, OK

DTYPES = ["float64", "float32", "int64", "int32", "int16", "uint64", "uint8", "bool"]
NUMPY = {"max": np.argmax, "min": np.argmin}
ROWS = [(1, 1, 1), (3, 7, 1), (2, 64, 1), (2, 137, 1), (0, 4, 1)]
COLUMNS = [(2, 5, 3), (1, 9, TILE + 40), (2, 1, 4), (2, 3, 0)]


def found(run, kind, x):
    before, _, behind = x.shape
    places = np.full((before, behind), 77)
    kernel = position_of_extreme(kind, x.dtype.name, behind == 1)
    return run(kernel, [x], [places], x.shape), places


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ROWS + COLUMNS)
def test_the_first_of_equal_extremes_is_found(run, kind, dtype, shape):
    values = np.random.default_rng(9).integers(-3, 4, size=shape)
    x = (values > 0) if dtype == "bool" else values.astype(dtype)
    status, places = found(run, kind, x)
    assert status == OK
    np.testing.assert_array_equal(places, NUMPY[kind](x, axis=1))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("shape", [(2, 197, 1), (2, 21, 3)])
@pytest.mark.parametrize("filled", [1.0, np.inf, -np.inf, np.nan, -0.0])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0])
def test_special_values_come_where_numpy_has_them(run, kind, shape, filled, special):
    length = shape[1]
    for position in {0, 1, length // 2, length - 1}:
        x = np.full(shape, filled)
        x[0, position:] = special
        x[1, position] = special
        status, places = found(run, kind, x)
        assert status == OK
        np.testing.assert_array_equal(places, NUMPY[kind](x, axis=1))


@pytest.mark.parametrize("shape", [(2, 0, 1), (0, 0, 1), (2, 0, 3)])
def test_there_is_no_place_among_no_elements(run, shape):
    assert found(run, "max", np.zeros(shape))[0] == EMPTY_REDUCTION
