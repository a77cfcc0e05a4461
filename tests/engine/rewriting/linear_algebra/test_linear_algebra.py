"""Each rewrite of linear algebra applies where it should, and the numbers stay."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.assumptions import AssumptionFeature, assume
from engine.graph import FunctionGraph
from engine.graph.reference import evaluate
from engine.rewriting import RewriteDatabaseQuery, run_pipeline
from engine.rewriting.linear_algebra import REWRITERS
from engine.tensor.linalg import solve_sylvester

RANDOM = np.random.default_rng(7)
A = RANDOM.normal(size=(4, 4)) + 4 * np.eye(4)
B = RANDOM.normal(size=(4, 4)) + 4 * np.eye(4)
POSITIVE = A @ A.T
LOWER, UPPER = np.tril(A), np.triu(A)
Q = np.linalg.qr(A)[0]
VALUES = np.array([2.0, 0.5, 3.0, 1.5])
SIGNED = np.array([2.0, -0.5, 3.0, -1.5])
D = np.diag(VALUES)
RIGHT = RANDOM.normal(size=(4, 3))
MANY = RANDOM.normal(size=(5, 4, 3))
BATCH = np.stack([A, B])
PLACES = np.array([3, 0, 3, -4])
SMALL = RANDOM.normal(size=(2, 2)) + 2 * np.eye(2)

la = pt.linalg


def known(x, *names):
    return assume(x, **dict.fromkeys(names, True))


def square(x):
    """The product of `x` with its transposed."""
    return x @ x.T


CASES = [
    ("inv_of_inv", lambda x: la.inv(la.inv(x)), [A]),
    ("inv_of_inv", lambda x: la.pinv(la.inv(x)), [BATCH]),
    ("inv_of_orthogonal_to_transpose", lambda x: la.inv(known(x, "orthogonal")), [Q]),
    ("inv_of_orthogonal_to_transpose", lambda x: la.inv(la.qr(x, mode="full")[0]), [A]),
    ("inv_of_diag_to_diag_reciprocal", lambda v: la.inv(pt.diag(v)), [VALUES]),
    ("inv_of_diag_to_diag_reciprocal", lambda x: la.inv(pt.eye(4) * x), [BATCH]),
    ("inv_of_diag_to_diag_reciprocal", lambda v: la.pinv(pt.diag(v)), [np.array([2.0, 0.0, -3.0, 1e-17])]),
    ("transpose_of_inv", lambda x: la.inv(x).T, [A]),
    ("inv_to_solve", lambda x, b: la.inv(x) @ b, [A, RIGHT]),
    ("inv_to_solve", lambda x, b: b.T @ la.inv(x), [A, RIGHT]),
    ("inv_to_solve", lambda x, b: b @ la.inv(x), [A, VALUES]),
    ("inv_to_solve", lambda x, b: la.inv(x) @ b, [BATCH, RIGHT]),
    ("inv_to_solve", lambda x, b: la.inv(known(x, "upper_triangular")) @ b, [UPPER, RIGHT]),
    ("lift_linalg_of_expanded_matrices", lambda x, y: la.inv(la.block_diag(x, y)), [A, SMALL]),
    ("lift_linalg_of_expanded_matrices", lambda x, y: la.inv(la.kron(x, y)), [A, SMALL]),
    ("lift_linalg_of_expanded_matrices", lambda x: la.cholesky(la.block_diag(x, x)), [POSITIVE]),
    ("det_of_inv", lambda x: la.det(la.inv(x)), [A]),
    ("slogdet_of_inv", lambda x: la.slogdet(la.inv(x)), [A]),
    ("det_of_blockdiag", lambda x, y: la.det(la.block_diag(x, y)), [A, SMALL]),
    ("det_of_blockdiag", lambda x, y: la.det(la.block_diag(x, y)), [BATCH, BATCH]),
    ("slogdet_of_blockdiag", lambda x, y: la.slogdet(la.block_diag(x, y)), [A, SMALL]),
    ("det_of_kronecker", lambda x, y: la.det(la.kron(x, y)), [A, SMALL]),
    ("slogdet_of_kronecker", lambda x, y: la.slogdet(la.kron(x, y)), [-A[:3, :3], SMALL]),
    ("det_of_triangular", lambda x: la.det(known(x, "lower_triangular")), [np.stack([LOWER, -LOWER])]),
    ("det_of_triangular", lambda v: la.det(pt.diag(v)), [SIGNED]),
    ("det_of_triangular", lambda x: la.det(pt.eye(4) * x), [A]),
    ("slogdet_of_triangular", lambda x: la.slogdet(la.cholesky(x)), [POSITIVE]),
    ("slogdet_of_triangular", lambda v: la.slogdet(pt.diag(v)), [SIGNED[:3]]),
    ("slogdet_specialization", lambda x: [pt.log(pt.abs(la.det(x))), pt.sign(la.det(x))], [-A[:3, :3]]),
    ("slogdet_specialization", lambda v: pt.log(la.det(pt.diag(v))), [np.full(4, 1e150) / 1e75]),
    ("det_of_factorized_matrix", lambda x: pt.abs(la.det(la.svd(x)[0])), [A]),
    ("det_of_factorized_matrix", lambda x: la.det(la.lu(pt.specify_shape(x, (4, 4)))[1]), [A]),
    ("det_of_matrix_factorized_elsewhere", lambda x: [la.det(x), la.lu_factor(x)[0]], [A[[2, 1, 0, 3]]]),
    (
        "det_of_matrix_factorized_elsewhere",
        lambda x: [la.det(known(x, "positive_definite")), la.cholesky(x)],
        [POSITIVE],
    ),
    (
        "det_of_matrix_factorized_elsewhere",
        lambda x: [pt.sqr(la.det(pt.specify_shape(x, (4, 4)))), la.svd(pt.specify_shape(x, (4, 4)))[0]],
        [A],
    ),
    ("cholesky_of_diag", lambda v: la.cholesky(pt.diag(v)), [VALUES]),
    ("cholesky_ldotlt", lambda x: la.cholesky(known(x, "lower_triangular") @ x.T), [LOWER * SIGNED]),
    ("cholesky_ldotlt", lambda x: la.cholesky(x.T @ known(x, "upper_triangular"), lower=False), [UPPER]),
    ("cholesky_ldotlt", lambda x: la.cholesky(la.cholesky(x) @ la.cholesky(x).T), [POSITIVE]),
    (
        "cholesky_ldotlt",
        lambda x: la.cholesky(square(pt.tril(pt.specify_shape(x, (4, 4))))),
        [LOWER * SIGNED],
    ),
    (
        "cholesky_ldotlt",
        lambda v: la.cholesky(square(pt.zeros((3, 3))[[0, 1, 2], [0, 0, 2]].set(v))),
        [VALUES[:3]],
    ),
    ("lift_linalg_of_single_matrix", lambda x: la.cholesky(x[None]), [POSITIVE]),
    ("lift_linalg_of_single_matrix", lambda x: la.inv(x.T[None, None]), [A]),
    ("svd_of_diag", lambda v: la.svd(pt.diag(v), compute_uv=False), [SIGNED]),
    ("svd_uv_merge", lambda x: [la.svd(x)[0], la.svd(x, compute_uv=False)], [A]),
    ("svd_uv_merge", lambda x: la.svd(x)[1], [A]),
    ("eigh_of_diag", lambda v: la.eigh(pt.diag(v))[0], [SIGNED]),
    ("eigvalsh_of_diag", lambda v, w: la.eigvalsh(pt.diag(v), pt.diag(w)), [SIGNED, VALUES]),
    ("lu_of_diag", lambda v: la.lu(pt.diag(v)), [SIGNED]),
    ("lu_of_diag", lambda v: la.lu(pt.diag(v), p_indices=True), [SIGNED]),
    ("lu_factor_of_diag", lambda v: la.lu_factor(pt.diag(v)), [SIGNED]),
    ("qr_of_diag", lambda v: la.qr(pt.diag(v)), [SIGNED]),
    ("qr_of_diag", lambda v: la.qr(pt.diag(v), mode="raw"), [SIGNED]),
    ("schur_of_diag", lambda v: la.schur(pt.diag(v)), [SIGNED]),
    ("qz_of_diag", lambda v, w: la.qz(pt.diag(v), pt.diag(w)), [SIGNED, VALUES]),
    ("fuse_blockdiagonal", lambda x, y: la.block_diag(la.block_diag(x, y), x), [A, SMALL]),
    ("local_extract_diag_of_alloc_diag", lambda v: pt.diagonal(pt.diag(v)), [VALUES]),
    ("local_extract_diag_of_eye", lambda v: pt.diagonal(pt.eye(v.shape[0], 3)) * 2.0, [VALUES]),
    ("extract_diag_of_transpose", lambda x: pt.diagonal(x.T, 1), [A]),
    ("diag_of_alloc", lambda x: pt.diagonal(pt.alloc(x, 2, 4, 4), 1, -2, -1), [A]),
    ("diag_of_dot", lambda x, y: pt.diagonal(x @ y), [A, RIGHT]),
    ("diag_of_elementwise_matrices", lambda x: pt.diagonal(pt.exp(x) + x, 1), [A]),
    ("diag_of_elementwise", lambda x, y: pt.diagonal(pt.specify_shape(x, (4, 4)) + y), [A, VALUES]),
    ("diag_of_blockdiag", lambda x: pt.diagonal(la.block_diag(pt.specify_shape(x, (4, 4)), pt.eye(2))), [A]),
    ("diag_of_kronecker", lambda x: pt.diagonal(la.kron(pt.specify_shape(x, (4, 4)), pt.eye(2))), [A]),
    ("kron_of_diagonal_to_diagonal", lambda v, w: la.kron(pt.diag(v), pt.diag(w)), [VALUES, SIGNED]),
    ("expm_of_diag", lambda v: la.expm(pt.diag(v)), [SIGNED]),
    ("orthogonal_dot_transpose_to_eye", lambda x: known(x, "orthogonal") @ x.T, [Q]),
    ("orthogonal_dot_transpose_to_eye", lambda x: x.mT @ known(x, "orthogonal"), [np.stack([Q, Q.T])]),
    ("dot_of_diagonal", lambda v, x: pt.diag(v) @ x, [VALUES, RIGHT]),
    ("dot_of_diagonal", lambda v, x: x @ pt.diag(v), [VALUES, BATCH]),
    ("dot_of_diagonal", lambda x: pt.eye(4) @ x, [RIGHT]),
    ("dot_of_diagonal", lambda v, w: pt.diag(v) @ w, [VALUES, SIGNED]),
    ("dot_of_diagonal", lambda v, w: w @ pt.diag(v), [VALUES, SIGNED]),
    ("dot_of_diagonal", lambda v, w: pt.diag(v) @ pt.diag(w), [VALUES, SIGNED]),
    ("dot_of_diagonal", lambda v: pt.diag(v) @ pt.eye(4), [VALUES]),
    ("useless_symmetric_transpose", lambda x: pt.exp(known(x, "symmetric").T), [POSITIVE]),
    (
        "scalar_solve_to_division",
        lambda x, b: la.solve(pt.specify_shape(x, (1, 1)), b),
        [A[:1, :1], RIGHT[:1]],
    ),
    (
        "scalar_solve_to_division",
        lambda x, b: la.solve_triangular(pt.specify_shape(x, (2, 1, 1)), b, unit_diagonal=True, b_ndim=1),
        [BATCH[:, :1, :1], VALUES[:1]],
    ),
    ("diagonal_solve_to_division", lambda v, b: la.solve(pt.diag(v), b), [VALUES, RIGHT]),
    ("diagonal_solve_to_division", lambda v, b: la.cho_solve((pt.diag(v), True), b), [VALUES, RIGHT]),
    (
        "diagonal_solve_to_division",
        lambda v, b: la.solve_triangular(pt.diag(v), b, unit_diagonal=True),
        [VALUES, RIGHT],
    ),
    ("diagonal_solve_to_division", lambda v, b: la.solve(pt.eye(4) * v, b, b_ndim=1), [VALUES, SIGNED]),
    ("solve_of_inv_to_matmul", lambda x, b: la.solve(la.inv(x), b), [A, RIGHT]),
    ("solve_of_inv_to_matmul", lambda x, b: la.solve(la.inv(x), b, b_ndim=1), [A, VALUES]),
    ("solve_of_inv_to_matmul", lambda x, b: la.solve(la.inv(x), b, b_ndim=1), [BATCH, VALUES]),
    ("orthogonal_solve_to_transpose_matmul", lambda x, b: la.solve(known(x, "orthogonal"), b), [Q, RIGHT]),
    ("generic_solve_to_solve_triangular", lambda x, b: la.solve(la.cholesky(x), b), [POSITIVE, RIGHT]),
    ("generic_solve_to_solve_triangular", lambda x, b: la.solve(la.cholesky(x).mT, b), [POSITIVE, RIGHT]),
    (
        "psd_solve_to_chol_solve",
        lambda x, b: la.solve(known(x, "positive_definite"), b),
        [np.stack([POSITIVE, POSITIVE.T + np.eye(4)]), RIGHT],
    ),
    ("psd_solve_to_chol_solve", lambda x, b: la.solve(x, b, assume_a="pos"), [POSITIVE, RIGHT]),
    (
        "paired_triangular_solves_to_cho_solve",
        lambda x, b: la.solve_triangular(
            la.cholesky(x).T, la.solve_triangular(la.cholesky(x), b, lower=True), lower=False
        ),
        [POSITIVE, RIGHT],
    ),
    (
        "block_diag_solve_to_block_diag_solves",
        lambda x, y, b: la.solve(la.block_diag(pt.specify_shape(x, (4, 4)), pt.specify_shape(y, (2, 2))), b),
        [A, SMALL, RANDOM.normal(size=(6, 3))],
    ),
    (
        "block_diag_solve_to_block_diag_solves",
        lambda x: la.solve(*[la.block_diag(*[pt.specify_shape(m, (4, 4)) for m in (x, x.T)])] * 2),
        [A],
    ),
    ("batched_vector_b_solve_to_matrix_b_solve", lambda x, b: la.solve(x, b, b_ndim=1), [A, MANY[:, :, 0]]),
    (
        "batched_vector_b_solve_to_matrix_b_solve",
        lambda x, b: la.solve_triangular(x, b, lower=True, b_ndim=1),
        [A, MANY.transpose(0, 2, 1)],
    ),
    ("batched_matrix_b_solve_to_one_solve", lambda x, b: la.solve(x, b), [A, MANY]),
    ("batched_matrix_b_solve_to_one_solve", lambda x, b: la.cho_solve((x, True), b), [LOWER, MANY[None]]),
    (
        "solve_sylvester_of_diag",
        lambda v, w, c: solve_sylvester(pt.diag(v), pt.diag(w), c),
        [VALUES, VALUES, A],
    ),
    ("selection_dot_to_indexing", lambda x, i: x @ pt.eye(4)[:, i], [BATCH, PLACES]),
    ("selection_dot_to_indexing", lambda x, i: pt.eye(4)[:, i].T @ x, [RIGHT, PLACES]),
    ("selection_dot_to_indexing", lambda x, i: pt.eye(5)[:, i] @ x, [RIGHT, PLACES]),
    ("selection_dot_to_indexing", lambda x, i: x @ pt.eye(5)[:, i].T, [MANY.mT, PLACES]),
    ("selection_dot_to_indexing", lambda x: la.cholesky(x) @ np.eye(4)[:, [1, 1]], [POSITIVE]),
    ("selection_dot_to_indexing", lambda s, x: known(s, "selection").T @ x, [np.eye(4)[:, [2, 0]], RIGHT]),
    ("det_of_permutation", lambda p: la.det(known(p, "permutation")), [np.eye(4)[[1, 2, 0, 3]]]),
    ("det_of_permutation", lambda p: la.det(known(p, "permutation")), [np.eye(4)[[1, 2, 3, 0]]]),
]
CHOSEN = RewriteDatabaseQuery(include=("drain_specify_assumptions", "linear_algebra"))


def rewritten(outputs, inputs, query=CHOSEN):
    fgraph = FunctionGraph(inputs, outputs, clone=True)
    return fgraph, run_pipeline(fgraph, query).applied


@pytest.mark.parametrize(("name", "build", "values"), CASES, ids=[name for name, *_ in CASES])
def test_the_rewrite_applies_and_the_numbers_stay(name, build, values):
    inputs = [pt.tensor(dtype=value.dtype.name, shape=(None,) * value.ndim) for value in values]
    made = build(*inputs)
    outputs = list(made) if isinstance(made, list | tuple) else [made]
    fgraph, applied = rewritten(outputs, inputs)
    assert name in applied
    expected = evaluate(inputs, outputs, values)
    found = evaluate(fgraph.inputs, fgraph.outputs, values)
    for one, other, old, new in zip(expected, found, outputs, fgraph.outputs, strict=True):
        assert old.type.is_super(new.type)
        np.testing.assert_allclose(other, one, 1e-9, 1e-12)


def test_every_rewrite_has_a_case_here_or_below():
    below = {
        "local_dimshuffle_lift",
        "reuse_decomposition_multiple_solves",
    }  # the latter: test_shared_factors.py
    assert {rewriter.name for rewriter in REWRITERS} - {name for name, *_ in CASES} == below


def test_decompositions_of_diagonal_matrices_decompose_them():
    v, w = pt.dvector("v"), pt.dvector("w")
    outputs = [*la.svd(pt.diag(v)), *la.eigh(pt.diag(v), pt.diag(w)), *la.schur(pt.diag(v), sort="lhp")]
    outputs += la.qz(pt.diag(v), pt.diag(w), sort="iuc")
    fgraph, applied = rewritten(outputs, [v, w])
    assert {"svd_of_diag", "eigh_of_diag", "schur_of_diag", "qz_of_diag"} <= set(applied)
    for values in (SIGNED, np.array([0.0, -2.0, 0.5, 1.0])):
        x = np.diag(values)
        u, s, vh, eigenvalues, vectors, t, z, aa, bb, q, zz = evaluate(
            fgraph.inputs, fgraph.outputs, [values, VALUES]
        )
        np.testing.assert_allclose(u * s @ vh, x)
        np.testing.assert_allclose(vh @ vh.T, np.eye(4))
        np.testing.assert_allclose(x @ vectors, D @ vectors * eigenvalues)
        np.testing.assert_allclose(vectors.T @ D @ vectors, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(z @ t @ z.T, x)
        assert (np.diff((np.diagonal(t) >= 0).astype(int)) >= 0).all()
        np.testing.assert_allclose(q @ aa @ zz.T, x)
        np.testing.assert_allclose(q @ bb @ zz.T, D)


@pytest.mark.parametrize("diagonal", [[1.0, 2.0, 3.0], [-1.0, 0.5, -2.0]])
def test_the_factor_of_a_written_triangle_is_the_triangle(diagonal):
    v = pt.dvector("v")
    written = pt.zeros((3, 3))[np.tril_indices(3)].set(v)
    fgraph, applied = rewritten([la.cholesky(square(written)[None])], [v])
    assert {"cholesky_ldotlt", "lift_linalg_of_single_matrix"} <= set(applied)
    values = np.array([diagonal[0], 4.0, diagonal[1], -5.0, 6.0, diagonal[2]])
    matrix = np.zeros((3, 3))
    matrix[np.tril_indices(3)] = values
    (found,) = evaluate(fgraph.inputs, fgraph.outputs, [values])
    np.testing.assert_allclose(found[0], np.linalg.cholesky(matrix @ matrix.T), atol=1e-14)


def test_a_triangle_that_may_not_be_square_is_not_its_own_factor():
    n, m = pt.lscalars("n", "m")
    fgraph, _ = rewritten([la.cholesky(square(pt.eye(n, m)))], [n, m])
    (found,) = evaluate(fgraph.inputs, fgraph.outputs, [2, 3])
    np.testing.assert_array_equal(found, np.eye(2))


def test_a_factor_that_would_raise_is_computed():
    x = pt.dmatrix("x")
    triangle = known(x, "lower_triangular")
    _, applied = rewritten([la.cholesky(square(triangle), on_error="raise")], [x])
    assert "cholesky_ldotlt" not in applied


NOT = {
    "cholesky_ldotlt": lambda x: la.cholesky(x @ x.T),
    "lift_linalg_of_single_matrix": lambda x: la.inv(x[:, None] * x[:, :, None]),
    "inv_to_solve": lambda x: [la.inv(x), la.inv(x) @ x],
    "det_of_matrix_factorized_elsewhere": lambda x: [la.det(x), la.cholesky(x), la.svd(x)[0]],
    "psd_solve_to_chol_solve": lambda x: la.solve(x @ x.T, x),
    "block_diag_solve_to_block_diag_solves": lambda x: la.solve(la.block_diag(x, x), pt.ones((8, 1))),
    "dot_of_diagonal": lambda x: pt.eye(4, k=1) @ x,
    "orthogonal_dot_transpose_to_eye": lambda x: la.svd(x, full_matrices=False)[0].T @ x,
    "det_of_factorized_matrix": lambda x: la.det(la.qr(x, mode="full")[0]),
}


@pytest.mark.parametrize("name", NOT)
def test_a_rewrite_that_would_be_wrong_does_not_apply(name):
    x = pt.dmatrix("x")
    made = NOT[name](x)
    _, applied = rewritten(made if isinstance(made, list) else [made], [x])
    assert name not in applied


def test_a_selection_refuses_what_its_product_refuses():
    x, index = pt.dmatrix("x"), pt.lvector("index")
    fgraph, _ = rewritten([x @ pt.eye(3)[:, index], pt.eye(3)[:, index] @ x], [x, index])
    for values, message in (([A, PLACES[:1] * 0], "shape"), ([A[:, :3], np.array([7])], "out of bounds")):
        with pytest.raises((AssertionError, IndexError), match=message):
            evaluate(fgraph.inputs, fgraph.outputs, values)


def test_complex_matrices_stay_as_they_are():
    x = pt.zmatrix("x")
    fgraph, applied = rewritten([la.inv(la.inv(x))], [x])
    assert len(fgraph.apply_nodes) == 2
    assert "inv_of_inv" not in applied


def test_a_graph_without_linear_algebra_is_not_merged_and_no_feature_stays():
    x = pt.dmatrix("x")
    fgraph, applied = rewritten([pt.exp(x) + pt.exp(x)], [x])
    assert applied == {}
    fgraph, _ = rewritten([la.inv(assume(x, diagonal=True))], [x])
    assert not any(isinstance(feature, AssumptionFeature) for feature in fgraph.features)


@pytest.mark.parametrize(
    "build",
    [
        lambda d, row: pt.diag(d) @ row,
        lambda d, row: row.T @ pt.diag(d),
        lambda d, row: pt.eye(d.shape[0]) @ row,
        lambda d, row: row.T @ pt.eye(d.shape[0]),
        lambda d, row: pt.diag(row[:, 0]) @ pt.outer(d, d),
        lambda d, row: pt.diag(d) @ row[:, 0],
        lambda d, row: row[:, 0] @ pt.diag(d),
        lambda d, row: pt.eye(d.shape[0]) @ row[:, 0],
        lambda d, row: pt.diag(row[:, 0]) @ pt.diag(d),
    ],
)
def test_a_product_with_a_diagonal_matrix_compares_lengths_still(build):
    d, row = pt.vector("d"), pt.tensor("row", shape=(1, None))
    f = engine.function([d, row], build(d, row))
    with pytest.raises((ValueError, AssertionError)):
        f([2.0, 3.0], [[1.0, 1.0]])
