"""Cholesky's factor and triangular equations in loops: numpy's results on both sides of FEW_ROWS."""

import numpy as np
import pytest
import scipy.linalg

import engine
import engine.tensor as pt
from engine.lowering.kernels.lapack import cholesky, solve_positive, solve_triangular
from engine.lowering.kernels.small_matrices import FEW_ROWS
from engine.runtime.kernel_interface import NOT_POSITIVE_DEFINITE, OK

TRIANGLES = [
    (lower, trans, unit_diagonal)
    for lower in (False, True)
    for trans in (0, 1)
    for unit_diagonal in (False, True)
]


@pytest.fixture(scope="module")
def compiled():
    """A function of everything that uses the loops, and what numpy and SciPy give for it."""
    a, b = pt.dmatrix(), pt.dmatrix()
    outputs = [pt.linalg.cholesky(a, lower=lower) for lower in (False, True)]
    outputs += [pt.linalg.solve(a, b, assume_a="pos", lower=lower) for lower in (False, True)]
    outputs += [
        pt.linalg.solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit)
        for lower, trans, unit in TRIANGLES
    ]
    return engine.function([a, b], outputs)


def expected(matrix, right):
    triangles = [
        scipy.linalg.solve_triangular(matrix, right, lower=lower, trans=trans, unit_diagonal=unit)
        for lower, trans, unit in TRIANGLES
    ]
    solved = np.linalg.solve(matrix, right)
    return [*(np.linalg.cholesky(matrix, upper=upper) for upper in (True, False)), solved, solved, *triangles]


@pytest.mark.parametrize("rows", [1, 2, 5, FEW_ROWS, FEW_ROWS + 1])
def test_few_rows_are_factored_and_solved_as_by_lapack(compiled, rows):
    numbers = np.random.default_rng(rows)
    root = numbers.normal(size=(rows, rows)) / rows
    matrix, right = root @ root.T + np.eye(rows), numbers.normal(size=(rows, 3))
    for found, due in zip(compiled(matrix, right), expected(matrix, right), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("lower", [False, True])
def test_the_first_row_that_is_not_positive_definite_is_told(run, lower):
    details = np.zeros(3, "int64")
    named = {"rows": 3, "columns": 1, "details": details.ctypes.data}
    matrix = np.diag([1.0, 0.0, -1.0])
    assert run(cholesky("float64", lower, True), [], [matrix.copy()], (), **named) == NOT_POSITIVE_DEFINITE
    assert details[0] == 2
    right = np.ones(3)
    assert run(solve_positive("float64", lower), [], [right, matrix.copy()], (), **named) == OK
    assert np.isnan(right).all()


@pytest.mark.parametrize("lower", [False, True])
def test_a_zero_on_the_diagonal_gives_nan_unless_the_diagonal_is_ones(run, lower):
    named = {"rows": 2, "columns": 2, "details": np.zeros(3, "int64").ctypes.data}
    matrix = np.array([[2.0, 0.0], [0.0, 0.0]])
    for unit_diagonal, due in ((False, [np.nan] * 4), (True, [1.0] * 4)):
        right = np.ones(4)
        kernel = solve_triangular("float64", lower, unit_diagonal, False)
        assert run(kernel, [matrix], [right], (), **named) == OK
        np.testing.assert_array_equal(right, due)


def test_nan_in_a_matrix_spreads_and_is_no_failure(compiled):
    matrix = np.diag([1.0, np.nan])
    found = compiled(matrix, np.ones((2, 1)))
    assert np.isnan(found[1]).any()
    assert found[1][0, 0] == 1.0
