"""Eigenvalues and eigenvectors of symmetric matrices are SciPy's, with its signs, from one kernel."""

import numpy as np
import pytest
import scipy.linalg

import engine
import engine.tensor as pt


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("driver", ["evr", "evd"])
def test_eigenvalues_and_vectors_are_scipys(driver, lower, kernels_once):
    a = pt.dmatrix("a")
    f = engine.function([a], [*pt.linalg.eigh(a, lower=lower, driver=driver), a])
    for rows in (1, 2, 7, 50):
        matrix = np.random.default_rng(rows).normal(size=(rows, rows))
        values, vectors, given = f(matrix)
        due = scipy.linalg.eigh(matrix, lower=lower, driver=driver)
        np.testing.assert_allclose(values, due[0], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(vectors, due[1], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(given, matrix)
    assert [found.shape for found in f(np.empty((0, 0)))] == [(0,), (0, 0), (0, 0)]


def test_what_is_no_finite_matrix_has_nan_and_other_shapes_are_refused(kernels_once):
    a = pt.fmatrix("a")
    f = engine.function([a], pt.linalg.eigh(a))
    for unknown in (np.nan, np.inf):
        assert all(np.isnan(found).all() for found in f(np.array([[1, unknown], [0, 1]], "float32")))
    assert f(np.eye(2, dtype="float32"))[0].dtype == "float32"
    with pytest.raises(ValueError, match="the matrix must be square"):
        f(np.ones((2, 3), "float32"))
