"""Kernels that call LAPACK: with integers of 64 bits (numpy) and 32 (SciPy), and with too long lengths."""

import subprocess
import sys

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.lowering.kernels.lapack import cholesky, slogdet, solve_general, solve_triangular
from engine.runtime.kernel_interface import NOT_POSITIVE_DEFINITE, OK, TOO_LONG

PROGRAM = """
from engine.runtime import externals
externals._libraries_numpy_loaded = lambda: ()
import numpy as np, engine, engine.tensor as pt
a, b = pt.dmatrix(), pt.dmatrix()
outputs = [pt.linalg.solve(a, b), pt.linalg.solve(a, b, assume_a="pos"), *pt.linalg.slogdet(a)]
f = engine.function([a, b], outputs)
for n in (1, 2, 5):
    root = np.random.default_rng(n).normal(size=(n, n))
    A, B = (root @ root.T + np.eye(n))[::-1], np.ones((n, 2))
    P = A[::-1]
    for one, other in zip(f(P, B), [np.linalg.solve(P, B)] * 2 + list(np.linalg.slogdet(P))):
        np.testing.assert_allclose(one, other, 1e-10)
    np.testing.assert_allclose(engine.function([a], pt.linalg.det(a))(A), np.linalg.det(A), 1e-10)
try:
    engine.function([a], pt.linalg.cholesky(a, on_error="raise"))(np.zeros((2, 2)))
except np.linalg.LinAlgError as error:
    print("refused:", error)
print("address of", externals.resolve("lapack_dgetrf") == externals._from_scipy("cython_lapack", "dgetrf"))
"""


def named(rows, columns=1):
    details = np.zeros(3, "int64")
    return details, {"rows": rows, "columns": columns, "details": details.ctypes.data}


def test_a_failure_comes_with_lapacks_info_or_makes_nans(run):
    details, others = named(2)
    assert run(cholesky("float64", True, True), [], [-np.eye(2)], (), **others) == NOT_POSITIVE_DEFINITE
    assert details[0] == 1
    matrix, right, pivots = np.array([[1.0, 2.0], [2.0, 4.0]]), np.ones(2), np.zeros(2, "int64")
    assert run(solve_general("float64", False), [], [right, matrix, pivots], (), **others) == OK
    assert np.isnan(right).all()
    right = np.ones(2)
    triangular = solve_triangular("float64", True, False, False)
    assert run(triangular, [np.zeros((2, 2))], [right], (), **others) == OK
    assert np.isnan(right).all()


def test_lengths_that_lapack_might_not_count_are_refused(run):
    details, others = named(1, 2**31)
    outputs = [np.ones(1), np.ones((1, 1)), np.zeros(1, "int64")]
    assert run(solve_general("float64", False), [], outputs, (), **others) == TOO_LONG
    assert details[0] == 2**31


def test_nothing_is_read_of_a_matrix_of_no_rows(run):
    outputs = [np.full((), 7.0), np.full((), 7.0), np.empty((0, 0)), np.empty(0, "int64")]
    assert run(slogdet("float64"), [], outputs, (), **named(0)[1]) == OK
    assert [float(found) for found in outputs[:2]] == [1, 0]


@pytest.mark.slow
def test_scipys_lapack_gives_the_same_where_numpy_brings_none():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "refused: Calling function: Cholesky" in done.stdout
    assert "address of True" in done.stdout


@pytest.mark.parametrize(("rows", "columns"), [(3, 1), (3, 4), (32, 32), (33, 32), (40, 60), (4, 0)])
def test_right_hand_sides_of_few_and_of_many_elements_are_solved_for(kernels_once, rows, columns):
    a, b = pt.dmatrix(), pt.dmatrix()
    numbers = np.random.default_rng(rows)
    root = numbers.normal(size=(rows, rows))
    matrix, right = root @ root.T + np.eye(rows), numbers.normal(size=(rows, columns))
    outputs = [
        pt.linalg.solve(a, b),
        pt.linalg.solve(a.T, b),
        pt.linalg.solve(a, b, assume_a="pos"),
        pt.linalg.solve_triangular(a, b, lower=True),
    ]
    solved = np.linalg.solve(matrix, right)
    due = [solved, solved, solved, np.linalg.solve(np.tril(matrix), right)]
    for found, expected in zip(engine.function([a, b], outputs)(matrix, right), due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
