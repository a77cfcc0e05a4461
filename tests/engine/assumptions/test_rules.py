"""Properties of matrices are found where they hold, and are unknown elsewhere."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.assumptions import ALL_KEYS, AssumptionFeature, assume
from engine.graph import FunctionGraph
from engine.tensor.linalg import solve_discrete_lyapunov

N = 3


def known(variable):
    """Return the short names of all properties that are known of a variable."""
    feature = AssumptionFeature()
    FunctionGraph(outputs=[variable], clone=False).attach_feature(feature)
    return {key.short_name for key in ALL_KEYS if feature.check(variable, key)}


def given(*names, batch=()):
    x = pt.tensor(dtype="float64", shape=(*batch, N, N))
    return assume(x, **dict.fromkeys(names, True)) if names else x


DIAGONAL = {"diag", "tril", "triu", "sym"}
UNIT = {*DIAGONAL, "pd", "orth", "sel", "perm"}
V = pt.dvector("v")
X = given()
LOWER, UPPER = given("lower_triangular"), given("upper_triangular")
SYMMETRIC, ORTHOGONAL = given("symmetric"), given("orthogonal")
POSITIVE, D = given("positive_definite"), given("diagonal")
ROWS_BELOW, COLUMNS_BELOW = np.tril_indices(N)
COLUMNS = pt.arange(N)[None, :]

CASES = {
    "nothing": (X, set()),
    "eye": (pt.eye(N), UNIT),
    "eye of unknown length": (pt.eye(X.shape[0]), UNIT),
    "eye with more columns": (pt.eye(N, 5), {"tril", "triu"}),
    "eye that may not be square": (pt.eye(pt.lscalar(), pt.lscalar()), set()),
    "eye above the diagonal": (pt.eye(N, k=1), {"triu"}),
    "a batch of one eye": (pt.vectorize(lambda n: pt.eye(n), "()->(o00,o01)")(pt.constant([N])), UNIT),
    "diag": (pt.diag(V), DIAGONAL),
    "diag of exponentials": (pt.diag(pt.exp(V)), {*DIAGONAL, "pd"}),
    "diag below": (pt.diag(V, -1), {"tril"}),
    "zeros": (pt.zeros((N, N)), DIAGONAL),
    "a filled matrix": (pt.alloc(2.5, N, N), {"sym"}),
    "a lower triangle": (pt.tril(X), {"tril"}),
    "a lower triangle without its diagonal": (pt.tril(X, -1), {"tril"}),
    "a lower triangle with a diagonal more": (pt.tril(X, 1), set()),
    "an upper triangle": (pt.triu(X), {"triu"}),
    "an upper triangle of a triangle": (pt.triu(LOWER), {"tril", "triu"}),
    "a triangle that is too large for a constant": (pt.tril(pt.zeros((9, 9)) + V[0]), {"tril"}),
    "a triangle that may not be square": (pt.tril(pt.dmatrix()), set()),
    "a triangle with ones above": (pt.switch(pt.tri(N, dtype="bool"), X, 1.0), set()),
    "a choice of triangles": (pt.switch(X > 0, LOWER, LOWER * 2), {"tril"}),
    "a mask of the diagonal": (pt.switch(pt.eq(COLUMNS - COLUMNS.T, 0), X, 0.0), DIAGONAL),
    "zeros with a triangle written": (pt.zeros((N, N))[ROWS_BELOW, COLUMNS_BELOW].set(V), {"tril"}),
    "zeros with a triangle added to": (pt.zeros((N, N))[COLUMNS_BELOW, ROWS_BELOW].inc(V), {"triu"}),
    "zeros with places from the end written": (pt.zeros((N, N))[[-1, -2], [0, -2]].set(V), {"tril"}),
    "zeros with places on both sides written": (pt.zeros((N, N))[[0, 2], [2, 0]].set(V), set()),
    "zeros with unknown places written": (pt.zeros((N, N))[pt.lvector(), pt.lvector()].set(V), set()),
    "zeros with rows written": (pt.zeros((N, N))[[1, 2]].set(V), set()),
    "a triangle with places below written": (LOWER[ROWS_BELOW, COLUMNS_BELOW].set(V), {"tril"}),
    "a matrix with places below written": (X[ROWS_BELOW, COLUMNS_BELOW].set(V), set()),
    "a constant": (pt.constant(np.diag([1.0, 2.0])), DIAGONAL),
    "a constant that permutes": (pt.constant(np.eye(4)[[2, 0, 1, 3]]), {"sel", "perm", "orth"}),
    "a constant that is too large to be read": (pt.constant(np.eye(8)), set()),
    "transposed lower triangle": (LOWER.T, {"triu"}),
    "a batch of one": (LOWER[None], {"tril"}),
    "one of a batch": (given("diagonal", batch=(4,))[1], DIAGONAL),
    "a part of a matrix": (D[:2], set()),
    "reshaped batch": (given("symmetric", batch=(4,)).reshape((2, 2, N, N)), {"sym"}),
    "eye times a vector": (pt.eye(N) * pt.vector(shape=(N,)), DIAGONAL),
    "eye times a matrix": (pt.eye(N) * X, DIAGONAL),
    "a broadcast eye": (pt.eye(1) * X, set()),
    "sum of triangles": (LOWER + LOWER, {"tril"}),
    "sum of opposite triangles": (LOWER + UPPER, set()),
    "a triangle and a number": (LOWER + 1.0, set()),
    "quotient": (D / 2.0, DIAGONAL),
    "quotient of matrices": (D / X, set()),
    "sine": (pt.sin(LOWER), {"tril"}),
    "exponential": (pt.exp(LOWER), set()),
    "power": (LOWER**2, {"tril"}),
    "exponential of a symmetric one": (pt.exp(SYMMETRIC), {"sym"}),
    "symmetric times a row": (SYMMETRIC * pt.vector(shape=(N,)), set()),
    "sum of positive definite ones": (POSITIVE + POSITIVE, {"pd", "sym"}),
    "difference of positive definite ones": (POSITIVE - POSITIVE, {"sym"}),
    "positive multiple": (POSITIVE * 2.0, {"pd", "sym"}),
    "negative multiple": (POSITIVE * -2.0, {"sym"}),
    "product of triangles": (LOWER @ LOWER, {"tril"}),
    "product of orthogonal ones": (ORTHOGONAL @ ORTHOGONAL, {"orth"}),
    "product with the transposed": (X @ X.T, {"sym"}),
    "congruence": (X @ SYMMETRIC @ X.T, {"sym"}),
    "product of symmetric ones": (SYMMETRIC @ given("symmetric"), set()),
    "square": (SYMMETRIC @ SYMMETRIC, {"sym"}),
    "blocks": (pt.linalg.block_diag(POSITIVE, POSITIVE), {"pd", "sym"}),
    "Kronecker product": (pt.linalg.kron(LOWER, LOWER), {"tril"}),
    "inverse": (pt.linalg.inv(LOWER), {"tril"}),
    "pseudoinverse of a triangle": (pt.linalg.pinv(LOWER), set()),
    "Cholesky factor": (pt.linalg.cholesky(X), {"tril"}),
    "upper Cholesky factor in a batch": (pt.linalg.cholesky(given(batch=(4,)), lower=False), {"triu"}),
    "L of LU": (pt.linalg.lu(X)[1], {"tril"}),
    "permuted L of LU": (pt.linalg.lu(X, permute_l=True)[0], set()),
    "U of LU": (pt.linalg.lu(X, permute_l=True)[1], {"triu"}),
    "Q of QR": (pt.linalg.qr(X, mode="full")[0], {"orth"}),
    "Q of a reduced QR": (pt.linalg.qr(X, mode="economic")[0], set()),
    "R of QR": (pt.linalg.qr(X)[1], {"triu"}),
    "singular vectors": (pt.linalg.svd(X)[2], {"orth"}),
    "reduced singular vectors": (pt.linalg.svd(X, full_matrices=False)[0], set()),
    "eigenvectors": (pt.linalg.eigh(X)[1], {"orth"}),
    "eigenvectors of two matrices": (pt.linalg.eigh(X, X)[1], set()),
    "T of Schur": (pt.linalg.schur(X)[0], set()),
    "Z of Schur": (pt.linalg.schur(X)[1], {"orth"}),
    "Q of QZ": (pt.linalg.qz(X, X)[2], {"orth"}),
    "solution of Lyapunov's equation": (
        solve_discrete_lyapunov(X, SYMMETRIC, method="bilinear"),
        {"sym"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_properties_are_those_that_follow(name):
    variable, expected = CASES[name]
    assert known(variable) == expected


def test_what_was_assumed_is_known_with_what_follows_from_it():
    x = pt.dmatrix()
    assert known(assume(x, diagonal=True, positive_definite=True)) == {*DIAGONAL, "pd"}
    assert known(assume(assume(x, orthogonal=True), permutation=True)) == {"orth", "perm", "sel"}
    assert known(assume(pt.lvector(), unique_indices=True)) == {"uniq"}
