"""Places in sorted vectors and convolutions are numpy's, of every dtype, by one kernel."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.tensor.signal.conv import Convolve1d

RANDOM = np.random.default_rng(0)
FULL_AND_VALID = [(True, "full"), (False, "valid")]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_places_are_numpys(dtype, kernels_once):
    x, v = pt.tensor("x", dtype, (None,)), pt.tensor("v", dtype, (None, None))
    f = engine.function([x, v], [pt.searchsorted(x, v, side) for side in ("left", "right")])
    values = RANDOM.integers(0, 9, 40).astype(dtype)
    keys = np.arange(12).reshape(3, 4).astype(dtype)
    if dtype.startswith("float"):
        values[:3], keys[0, :3] = np.nan, [np.nan, np.inf, -0.0]
    values.sort()
    for vector in (values, values[:1], values[:0]):
        for found, side in zip(f(vector, keys), ("left", "right"), strict=True):
            np.testing.assert_array_equal(found, np.searchsorted(vector, keys, side))


def test_operands_of_two_dtypes_are_compared_in_the_common_one(kernels_once):
    x, v = pt.lvector("x"), pt.dscalar("v")
    f = engine.function([x, v], pt.searchsorted(x[::2], v))
    assert f(np.arange(10), 3.5) == 2


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 3), (3, 7), (60, 60)])
def test_convolutions_are_numpys(n, m, dtype, kernels_once):
    x, y, full = (
        pt.tensor("x", dtype, (None,)),
        pt.tensor("y", dtype, (None,)),
        pt.scalar("full", dtype="bool"),
    )
    f = engine.function([x, y, full], Convolve1d()(x, y, full))
    of = engine.function([x, y], [pt.signal.convolve1d(x, y, mode) for _, mode in FULL_AND_VALID])
    left, right = (RANDOM.integers(-3, 4, length).astype(dtype) for length in (n, m))
    for (is_full, mode), known in zip(FULL_AND_VALID, of(left, right), strict=True):
        expected = np.convolve(left, right, mode)
        for found in (f(left, right, is_full), known):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)


def test_vectors_without_elements_are_not_convolved(kernels_once):
    x, y = pt.dvectors("x", "y")
    f = engine.function([x, y], pt.signal.convolve1d(x, y).shape[0])
    for lengths in ((0, 3), (3, 0)):
        with pytest.raises(ValueError, match="one of the vectors has no elements"):
            f(*map(np.ones, lengths))


def test_gradients_of_convolutions_hold(kernels_once):
    values = [RANDOM.normal(size=5), RANDOM.normal(size=3)]
    for mode in ("full", "valid"):
        verify_grad(lambda x, y, mode=mode: pt.signal.convolve1d(x, y, mode), values, n_tests=1)
