"""Systems of equations: numpy's and scipy's solutions, gradients, and what is refused."""

from itertools import product

import numpy as np
import pytest
from scipy import linalg

import engine
import engine.tensor as pt
from engine import verify_grad

RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(4, 4)) + 4 * np.eye(4)
POSITIVE = A @ A.T
VECTOR, MATRIX = RANDOM.normal(size=4), RANDOM.normal(size=(4, 3))
# Where only one triangle may be read, the other must not matter.
SPOILED = {
    True: np.tril(POSITIVE) + np.triu(np.full((4, 4), np.nan), 1),
    False: np.triu(POSITIVE) + np.tril(np.full((4, 4), np.nan), -1),
}
OPTIONS = {
    "general": ({}, A, A),
    "general transposed": ({"transposed": True}, A, A.T),
    "positive lower": ({"assume_a": "pos", "lower": True}, SPOILED[True], POSITIVE),
    "positive upper": ({"assume_a": "pos"}, SPOILED[False], POSITIVE),
    "positive transposed": ({"assume_a": "positive definite", "transposed": True}, SPOILED[False], POSITIVE),
    "lower triangular": ({"assume_a": "lower triangular"}, SPOILED[True], np.tril(POSITIVE)),
    "upper transposed": (
        {"assume_a": "upper triangular", "transposed": True},
        SPOILED[False],
        np.triu(POSITIVE).T,
    ),
}
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_solutions_solve(dtype, mode, kernels_once):
    a, v, m = pt.tensor("a", dtype, (None, None)), pt.vector("v", dtype=dtype), pt.matrix("m", dtype=dtype)
    for what, (options, given, meant) in OPTIONS.items():
        outputs = [pt.linalg.solve(a, v, **options), pt.linalg.solve(a, m, **options)]
        found = engine.function([a, v, m], outputs, mode=mode)(
            given.astype(dtype), VECTOR.astype(dtype), MATRIX.astype(dtype)
        )
        for one, right in zip(found, (VECTOR, MATRIX), strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, linalg.solve(meant, right), TOLERANCE[dtype], err_msg=what)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_triangles_are_scipys(mode, kernels_once):
    a, m = pt.dmatrix("a"), pt.dmatrix("m")
    cases = list(product((0, "T"), (False, True), (False, True)))
    outputs = [
        pt.linalg.solve_triangular(a.T, m, trans=trans, lower=lower, unit_diagonal=unit)
        for trans, lower, unit in cases
    ]
    found = engine.function([a, m], outputs, mode=mode)(A.T.copy(), MATRIX)
    for one, (trans, lower, unit) in zip(found, cases, strict=True):
        expected = linalg.solve_triangular(A, MATRIX, trans=trans, lower=lower, unit_diagonal=unit)
        np.testing.assert_allclose(one, expected, 1e-9)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_the_factor_of_cholesky_solves(mode, kernels_once):
    a, b = pt.dmatrix("a"), pt.dvector("b")
    outputs = [pt.linalg.cho_solve((pt.linalg.cholesky(a, lower), lower), b) for lower in (True, False)]
    for found in engine.function([a, b], outputs, mode=mode)(POSITIVE, VECTOR):
        np.testing.assert_allclose(found, np.linalg.solve(POSITIVE, VECTOR), 1e-9)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_the_inverse_and_integers(mode, kernels_once):
    a, k = pt.dmatrix("a"), pt.lmatrix("k")
    found, whole = engine.function([a, k], [pt.linalg.inv(a), pt.linalg.solve(k, k[0])], mode=mode)(
        A, np.array([[2, 1], [1, 3]])
    )
    np.testing.assert_allclose(found, np.linalg.inv(A), 1e-9)
    np.testing.assert_allclose(whole, [1, 0], atol=1e-14)


@pytest.mark.parametrize("what", OPTIONS)
@pytest.mark.parametrize("right", [VECTOR, MATRIX], ids=["vector", "matrix"])
def test_gradients_are_those_of_finite_differences(what, right):
    options, _, meant = OPTIONS[what]
    matrix = meant.T if options.get("transposed") else meant
    verify_grad(lambda a, b: pt.linalg.solve(a, b, **options), [matrix, right], n_tests=1)


def test_gradients_for_triangles_leave_out_what_is_not_read():
    verify_grad(
        lambda a, b: pt.linalg.solve_triangular(a, b, lower=True, unit_diagonal=True), [A, VECTOR], n_tests=1
    )


def test_gradients_are_compiled(kernels_once):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    cost = (pt.linalg.solve(a, b) ** 2).sum() + pt.linalg.solve(a @ a.T, b, assume_a="pos").sum()
    gradients = engine.grad(cost, [a, b])
    found, expected = (engine.function([a, b], gradients, mode=m)(A, MATRIX) for m in ("FAST_RUN", "NUMPY"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-9)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_solution_that_there_is_not_is_made_of_nans(mode, kernels_once):
    a = pt.dmatrix("a")
    none, indefinite = [[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [2.0, 1.0]]
    for b, right in (
        (pt.dvector("b"), np.ones(2)),
        (pt.dmatrix("b"), np.ones((2, 3))),
        (pt.dmatrix("b"), np.ones((2, 999))),
    ):
        cases = [
            (pt.linalg.solve(a, b), none),
            (pt.linalg.solve(a, b, assume_a="pos"), indefinite),
            (pt.linalg.solve_triangular(a, b), [[1.0, 2.0], [0.0, 0.0]]),
        ]
        for output, value in cases:
            function = engine.function([a, b], output, mode=mode, name="model")
            assert np.isnan(function(np.array(value), right)).all()
            assert np.isfinite(function(np.eye(2), right)).all()


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_shapes_that_do_not_fit_are_refused_and_nothing_is_solved_to_nothing(mode, kernels_once):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    outputs = [pt.linalg.solve(a, b), pt.linalg.solve(a, b, assume_a="pos"), pt.linalg.solve_triangular(a, b)]
    function = engine.function([a, b], outputs, mode=mode)
    with pytest.raises(ValueError, match="square"):
        function(np.ones((2, 3)), np.ones((2, 1)))
    with pytest.raises(ValueError, match="a row for each"):
        function(np.eye(3), np.ones((2, 1)))
    assert [found.shape for found in function(np.ones((0, 0)), np.ones((0, 3)))] == [(0, 3)] * 3
    assert [found.shape for found in function(np.eye(3), np.ones((3, 0)))] == [(3, 0)] * 3


def test_what_is_no_system_is_refused_when_it_is_built():
    with pytest.raises(ValueError, match="must be a matrix"):
        pt.linalg.solve(pt.dvector(), pt.dvector())
    with pytest.raises(ValueError, match="square"):
        pt.linalg.solve(pt.tensor(None, "float64", (2, 3)), pt.dvector())
    with pytest.raises(ValueError, match="row for each"):
        pt.linalg.solve(pt.tensor(None, "float64", (3, 3)), pt.tensor(None, "float64", (2,)))
    with pytest.raises(ValueError, match="assume_a"):
        pt.linalg.solve(pt.dmatrix(), pt.dvector(), assume_a="hexagonal")
    with pytest.raises(ValueError, match="trans"):
        pt.linalg.solve_triangular(pt.dmatrix(), pt.dvector(), trans="X")
    with pytest.raises(ValueError, match="b_ndim"):
        pt.linalg.solve(pt.dmatrix(), pt.dtensor3(), b_ndim=3)
