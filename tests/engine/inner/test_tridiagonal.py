"""Elimination of tridiagonal matrices, beside numpy's solutions."""

import numpy as np
import pytest

import engine.tensor as pt
from engine import function
from engine.tensor.linalg import tridiagonal_lu_factor, tridiagonal_lu_solve


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
