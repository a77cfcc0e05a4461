"""Cholesky's factor: numpy's, its gradient, and what it does with a matrix that has none."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad

A = np.random.default_rng(0).normal(size=(4, 4))
POSITIVE = A @ A.T + np.eye(4)
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-4)])
def test_the_factor_is_numpys_and_reads_one_triangle(dtype, tolerance, mode, kernels_once):
    x = pt.matrix("x", dtype=dtype)
    outputs = [pt.linalg.cholesky(x), pt.linalg.cholesky(x.T, lower=False)]
    spoiled = (np.tril(POSITIVE) + np.triu(np.full((4, 4), 7.0), 1)).astype(dtype)
    lower, upper = engine.function([x], outputs, mode=mode)(spoiled)
    assert lower.dtype == dtype
    np.testing.assert_allclose(lower, np.linalg.cholesky(POSITIVE), tolerance)
    np.testing.assert_allclose(upper, np.linalg.cholesky(POSITIVE).T, tolerance)
    assert engine.function([x], outputs[0], mode=mode)(np.ones((0, 0), dtype)).shape == (0, 0)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_matrix_that_is_not_positive_definite_gives_nans_or_raises(mode, kernels_once):
    x = pt.dmatrix("x")
    with pytest.raises(np.linalg.LinAlgError, match=r"Cholesky\{lower=True.*not positive definite"):
        engine.function([x], pt.linalg.cholesky(x, on_error="raise"), mode=mode)(INDEFINITE)
    function = engine.function([x], pt.linalg.cholesky(x), mode=mode)
    assert np.isnan(function(INDEFINITE)).all()
    np.testing.assert_allclose(function(POSITIVE), np.linalg.cholesky(POSITIVE), 1e-12)


@pytest.mark.parametrize("lower", [True, False])
def test_gradients_are_those_of_finite_differences(lower):
    verify_grad(lambda x: pt.linalg.cholesky(x, lower), [POSITIVE], n_tests=2)


def test_the_log_density_of_a_normal_distribution_has_the_known_gradient(kernels_once):
    covariance, x = pt.dmatrix("covariance"), pt.dvector("x")
    factor = pt.linalg.cholesky(covariance)
    standard = pt.linalg.solve_triangular(factor, x, lower=True)
    position = pt.arange(covariance.shape[0])
    density = -0.5 * (standard**2).sum() - pt.log(factor[position, position]).sum()
    found = engine.function([covariance, x], engine.grad(density, covariance))(POSITIVE, A[0])
    precision = np.linalg.inv(POSITIVE)
    full = 0.5 * (np.outer(precision @ A[0], precision @ A[0]) - precision)
    np.testing.assert_allclose(found, np.tril(full) + np.tril(full, -1), 1e-9, atol=1e-12)


def test_what_has_no_factor_is_refused_when_it_is_built():
    with pytest.raises(TypeError, match="takes a matrix"):
        pt.linalg.cholesky(pt.dvector())
    with pytest.raises(ValueError, match="square"):
        pt.linalg.cholesky(pt.tensor(None, "float64", (2, 3)))
    with pytest.raises(ValueError, match="on_error"):
        pt.linalg.cholesky(pt.dmatrix(), on_error="ignore")
