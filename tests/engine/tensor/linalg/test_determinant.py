"""Determinants: numpy's, with their gradients."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad

A = np.random.default_rng(3).normal(size=(5, 5))
# Rows in another order: an odd and an even number of exchanges.
MATRICES = [A, A[[1, 0, 2, 3, 4]], A[[1, 2, 0, 3, 4]], np.eye(1) * -3, np.zeros((2, 2)), np.ones((0, 0))]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
def test_determinants_are_numpys(dtype, tolerance, mode, kernels_once):
    x = pt.matrix("x", dtype=dtype)
    function = engine.function([x], [*pt.linalg.slogdet(x), pt.linalg.det(x.T)], mode=mode)
    for matrix in MATRICES:
        sign, logarithm, found = function(matrix.astype(dtype))
        assert (sign, found.dtype) == (np.linalg.slogdet(matrix)[0], dtype)
        np.testing.assert_allclose(logarithm, np.linalg.slogdet(matrix)[1], tolerance)
        np.testing.assert_allclose(found, np.linalg.det(matrix), tolerance)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_matrix_that_has_nan_has_a_determinant_of_nan(mode, kernels_once):
    x = pt.dmatrix("x")
    function = engine.function([x], [*pt.linalg.slogdet(x), pt.linalg.det(x)], mode=mode)
    for place in range(9):
        for matrix in (np.eye(3), np.zeros((3, 3)), A[:3, :3].copy()):
            matrix.flat[place] = np.nan
            assert np.isnan(function(matrix)).all(), matrix


def test_gradients_are_those_of_finite_differences():
    verify_grad(lambda x: pt.linalg.slogdet(x)[1], [A], n_tests=1)
    verify_grad(pt.linalg.det, [A], n_tests=1)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_singular_matrix_has_a_gradient_of_nans_and_no_matrix_but_a_square_one_a_determinant(
    mode, kernels_once
):
    x = pt.dmatrix("x")
    assert np.isnan(engine.function([x], engine.grad(pt.linalg.det(x), x), mode=mode)(np.zeros((2, 2)))).all()
    with pytest.raises(ValueError, match="square"):
        engine.function([x], pt.linalg.det(x), mode=mode)(np.zeros((2, 3)))
