"""Triangles and unit matrices are numpy's."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.inner.diagonals import alloc_diag

X = np.arange(12.0).reshape(3, 4) + 1


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_triangles_are_numpys(dtype, mode, kernels_once):
    x, n = pt.matrix("x", dtype=dtype), pt.lscalar("n")
    outputs, expected = [], []
    for k in (-1, 0, 2):
        outputs += [pt.tril(x, k), pt.triu(x, k), pt.eye(n, 4, k, dtype), pt.tri(3, k=k, dtype=dtype)]
        value = X.astype(dtype)
        expected += [
            np.tril(value, k),
            np.triu(value, k),
            np.eye(3, 4, k, dtype),
            np.tri(3, k=k, dtype=dtype),
        ]
    found = engine.function([x, n], outputs, mode=mode)(X.astype(dtype), 3)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize(
    "build",
    [
        lambda n: pt.eye(n),
        lambda n: pt.eye(2, n),
        lambda n: pt.eye(n, 2, 1),
        lambda n: pt.diagonal(pt.eye(n)),
        lambda n: pt.diagonal(pt.eye(n, 3)),
        lambda n: pt.eye(n).sum(),
        lambda n: pt.eye(n).shape[0],
        lambda n: pt.eye(n) @ pt.ones((3, 2)),
    ],
)
def test_no_length_of_a_unit_matrix_is_negative(build, mode, kernels_once):
    n = pt.lscalar("n")
    f = engine.function([n], build(n), mode=mode)
    f(3)
    with pytest.raises(ValueError, match=r"negative|expected -1"):
        f(-1)


def test_infinities_outside_of_a_triangle_become_zeros():
    x = pt.dmatrix("x")
    found = engine.function([x], pt.tril(x), mode="NUMPY")(np.array([[1.0, np.inf], [np.nan, 2.0]]))
    np.testing.assert_array_equal(found, [[1, 0], [np.nan, 2]])


def test_gradients_are_those_of_finite_differences():
    verify_grad(lambda x: pt.tril(x) + 2 * pt.triu(x, 1), [X], n_tests=1)


def test_what_is_no_matrix_has_no_triangle():
    with pytest.raises(ValueError, match="two dimensional"):
        pt.tril(pt.dvector())


def test_extract_diag_is_the_name_of_diagonal_too() -> None:
    assert pt.extract_diag is pt.diagonal


def test_vectors_are_put_on_the_diagonals_that_diagonal_takes():
    x = np.arange(24.0).reshape(2, 3, 4)

    def there_and_back(x):
        return pt.diagonal(alloc_diag(x, -1, 2, 0), -1, 2, 0)

    assert alloc_diag(pt.constant(x), -1, 2, 0).type.ndim == 4
    np.testing.assert_array_equal(there_and_back(pt.constant(x)).eval(mode="NUMPY"), x)
    verify_grad(there_and_back, [x], n_tests=1)


def test_the_offset_may_be_known_at_run_time_only(kernels_once):
    x, k = pt.dmatrix("x"), pt.lscalar("k")
    f = engine.function([x, k], [pt.diagonal(x, k), pt.fill_diagonal_offset(x, 0.0, k)])
    for offset in (-2, 0, 3):
        found, filled = f(X, offset)
        np.testing.assert_array_equal(found, np.diagonal(X, offset))
        np.testing.assert_array_equal(filled, np.where(np.eye(3, 4, offset, dtype=bool), 0, X))


def test_a_batch_of_lengths_that_are_equal_gives_a_batch_of_matrices():
    lengths = pt.lvector("lengths")
    f = engine.function([lengths], pt.vectorize(lambda n: 2 * pt.eye(n), "()->(a,b)")(lengths))
    np.testing.assert_array_equal(f([3, 3]), np.broadcast_to(2 * np.eye(3), (2, 3, 3)))
    with pytest.raises(ValueError, match="all rows must have one shape"):
        f([2, 3])
