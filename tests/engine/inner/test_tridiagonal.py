"""Elimination of tridiagonal matrices, beside numpy's solutions."""

import numpy as np
import pytest

import engine.tensor as pt
from engine import function, verify_grad
from engine.tensor.linalg import solve, tridiagonal_lu_factor, tridiagonal_lu_solve


def matrices(size, batch=(), dtype="float64"):
    rng = np.random.default_rng(size)
    found = np.zeros((*batch, size, size), dtype)
    for offset in (-1, 0, 1):
        for row in range(max(-offset, 0), min(size, size - offset)):
            found[..., row, row + offset] = rng.normal(size=batch)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("b_ndim", [1, 2])
def test_solutions_are_numpys_whatever_rows_are_exchanged(size, transposed, b_ndim):
    a, b = pt.dmatrix("a"), pt.tensor("b", shape=(None,) * b_ndim)
    x = tridiagonal_lu_solve(tridiagonal_lu_factor(a), b, b_ndim=b_ndim, transposed=transposed)
    matrix = matrices(size)
    right = np.random.default_rng(0).normal(size=(size, 2)[:b_ndim])
    for mode in ("FAST_RUN", "NUMPY"):
        found = function([a, b], x, mode=mode)(matrix, right)
        np.testing.assert_allclose(
            found, np.linalg.solve(matrix.T if transposed else matrix, right), rtol=1e-8
        )


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_dtypes_are_those_of_other_factorizations(dtype):
    matrix = (matrices(4) * 8).astype(dtype) + 9 * np.eye(4, dtype=dtype)
    a, b = pt.matrix("a", dtype=dtype), pt.vector("b", dtype=dtype)
    factors = tridiagonal_lu_factor(a)
    x = tridiagonal_lu_solve(factors, b, b_ndim=1)
    due = "float64" if dtype == "int64" else dtype
    assert [each.dtype for each in (*factors, x)] == [*[due] * 4, "int32", due]
    found = function([a, b], x)(matrix, np.arange(4).astype(dtype))
    np.testing.assert_allclose(found, np.linalg.solve(matrix, np.arange(4)), rtol=1e-4)


def test_leading_axes_are_a_batch():
    a, b = pt.dtensor3("a"), pt.dmatrix("b")
    batch, right = matrices(5, (3,)), np.random.default_rng(1).normal(size=(3, 5))
    f = function([a, b], tridiagonal_lu_solve(tridiagonal_lu_factor(a), b, b_ndim=1))
    due = [np.linalg.solve(matrix, row) for matrix, row in zip(batch, right, strict=True)]
    np.testing.assert_allclose(f(batch, right), due, rtol=1e-8)


@pytest.mark.parametrize("transposed", [False, True])
def test_equations_read_three_diagonals_only(transposed):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    rng = np.random.default_rng(3)
    matrix, right = rng.normal(size=(5, 5)) + 4 * np.eye(5), rng.normal(size=(5, 2))
    banded = np.triu(np.tril(matrix, 1), -1)

    def solved(a, b):
        return solve(a, b, assume_a="tridiagonal", transposed=transposed)

    for mode in ("FAST_RUN", "NUMPY"):
        found = function([a, b], solved(a, b), mode=mode)(matrix, right)
        np.testing.assert_allclose(found, np.linalg.solve(banded.T if transposed else banded, right))
    verify_grad(solved, [matrix, right], rng=rng)


def test_factors_of_a_singular_matrix_solve_nothing():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    f = function([a, b], tridiagonal_lu_solve(tridiagonal_lu_factor(a), b, b_ndim=1))
    assert np.isnan(f(np.zeros((4, 4)), np.ones(4))).all()


def test_a_batch_of_right_hand_sides_is_one_of_columns():
    a, b = pt.dmatrix("a"), pt.dtensor3("b")
    f = function([a, b], tridiagonal_lu_solve(tridiagonal_lu_factor(a), b, b_ndim=2))
    matrix, right = matrices(4), np.random.default_rng(2).normal(size=(3, 4, 2))
    assert (
        sum(type(node.op).__name__ == "SolveLUFactorTridiagonal" for node in f.maker.fgraph.apply_nodes) == 1
    )
    np.testing.assert_allclose(f(matrix, right), np.linalg.solve(matrix, right), rtol=1e-8)


def test_lengths_are_known_where_those_of_the_matrix_are():
    factors = tridiagonal_lu_factor(pt.tensor("a", shape=(5, 5)))
    assert [each.type.shape for each in factors] == [(4,), (5,), (4,), (3,), (5,)]


def test_what_does_not_fit_is_refused():
    vectors = [pt.tensor(shape=(length,)) for length in (3, 3, 2)]
    from engine.tensor.linalg import LUFactorTridiagonal, SolveLUFactorTridiagonal

    with pytest.raises(ValueError, match=r"the diagonals have lengths \[3, 3, 2\], which do not fit"):
        LUFactorTridiagonal()(*vectors)
    with pytest.raises(ValueError, match="diagonals must be vectors"):
        LUFactorTridiagonal()(*[pt.dmatrix()] * 3)
    with pytest.raises(ValueError, match="b_ndim is 3; it must be 1 or 2"):
        SolveLUFactorTridiagonal(3, False)
    d = pt.dvector("d")
    with pytest.raises(ValueError, match=r"lengths \[1, 2, 1\] are due, \[2, 2, 2\] were found"):
        function([d], LUFactorTridiagonal()(d, d, d))(np.ones(2))
