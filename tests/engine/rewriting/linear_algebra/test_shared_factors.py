"""Solutions with one matrix share its factors, if a mode names the rewrite."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile import get_default_mode
from engine.inner.scan import Scan
from engine.inner.tridiagonal import LUFactorTridiagonal
from engine.tensor.linalg import Cholesky, CholeskySolve, LUFactor, Solve, solve

RANDOM = np.random.default_rng(11)
A = RANDOM.normal(size=(4, 4)) + 4 * np.eye(4)
MATRICES = {"gen": A, "pos": A @ A.T, "tridiagonal": np.triu(np.tril(A, 1), -1)}
RIGHT = RANDOM.normal(size=(4, 3))
FACTORS = {"gen": LUFactor, "pos": Cholesky, "tridiagonal": LUFactorTridiagonal}
REUSE, SPLIT = "reuse_decomposition_multiple_solves", "scan_split_non_sequence_decomposition_and_solve"
MODE = get_default_mode().excluding("psd_solve_to_chol_solve")


def ops_of(nodes):
    return [type(getattr(node.op, "core_op", node.op)) for node in nodes]


def ops(function):
    return ops_of(function.maker.fgraph.apply_nodes)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("kind", FACTORS)
def test_a_solution_and_its_gradient_share_one_factorization(kind, is_turned):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    x = solve(a, b, assume_a=kind, lower=True, transposed=is_turned)
    outputs = [x, *engine.grad(pt.sum(x**2), [a, b])]
    plain = engine.function([a, b], outputs, mode=MODE)
    shared = engine.function([a, b], outputs, mode=MODE.including(REUSE))
    assert ops(plain).count(Solve) == 2
    assert ops(shared).count(FACTORS[kind]) == 1
    assert Solve not in ops(shared)
    for one, other in zip(plain(MATRICES[kind], RIGHT), shared(MATRICES[kind], RIGHT), strict=True):
        np.testing.assert_allclose(other, one, 1e-9, 1e-12)


def test_one_solution_has_no_factors_to_share():
    a, b, c = pt.dmatrix("a"), pt.dvector("b"), pt.dmatrix("c")
    outputs = [solve(a, b), solve(c, b)]
    assert ops(engine.function([a, b, c], outputs, mode=MODE.including(REUSE))).count(Solve) == 2


def test_a_matrix_that_is_also_a_right_hand_side_is_factored_once_only():
    a, c = pt.dmatrix("a"), pt.dmatrix("c")
    outputs = [solve(a, c), solve(c, a), a.T, a]
    assert ops(engine.function([a, c], outputs, mode=MODE.including(REUSE))).count(Solve) == 2


def test_solutions_that_read_other_triangles_share_nothing():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    outputs = [solve(a, b, assume_a="pos", lower=lower) for lower in (False, True)]
    assert ops(engine.function([a, b], outputs, mode=MODE.including(REUSE))).count(Solve) == 2


def test_factors_that_are_there_are_used():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    outputs = [*pt.linalg.lu_factor(a), solve(a, b), solve(a.T, 2 * b)]
    function = engine.function([a, b], outputs, mode=MODE.including(REUSE))
    assert ops(function).count(LUFactor) == 1
    assert Solve not in ops(function)
    *_, x, y = function(A, RIGHT[:, 0])
    np.testing.assert_allclose(x, np.linalg.solve(A, RIGHT[:, 0]))
    np.testing.assert_allclose(y, np.linalg.solve(A.T, 2 * RIGHT[:, 0]))


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("b_ndim", [1, 2])
def test_a_batch_of_right_hand_sides_shares_one_factorization(kind, is_turned, b_ndim):
    a, b = pt.dmatrix("a"), pt.dtensor3("b")
    x = solve(a, b, assume_a=kind, lower=True, transposed=is_turned, b_ndim=b_ndim)
    function = engine.function([a, b], x, mode=MODE.including(REUSE))
    assert ops(function).count(FACTORS[kind]) == 1
    assert Solve not in ops(function)
    matrix = MATRICES[kind].T if is_turned else MATRICES[kind]
    many = RANDOM.normal(size=(2, 3, 4) if b_ndim == 1 else (2, 4, 3))
    rows = many[..., None] if b_ndim == 1 else many
    expected = np.linalg.solve(matrix, rows)
    np.testing.assert_allclose(
        function(matrix, many) if not is_turned else function(matrix.T, many),
        expected[..., 0] if b_ndim == 1 else expected,
    )


def test_a_batch_of_matrices_is_factored_once():
    a, b = pt.dtensor3("a"), pt.dtensor3("b")
    function = engine.function([a, b], [solve(a, b), solve(a.mT, b)], mode=MODE.including(REUSE))
    assert ops(function).count(LUFactor) == 1
    assert Solve not in ops(function)
    matrices, rows = np.stack([A, MATRICES["pos"]]), np.stack([RIGHT, 2 * RIGHT])
    x, y = function(matrices, rows)
    np.testing.assert_allclose(x, np.linalg.solve(matrices, rows))
    np.testing.assert_allclose(y, np.linalg.solve(np.moveaxis(matrices, 1, 2), rows))


@pytest.mark.parametrize("kind", FACTORS)
def test_a_singular_matrix_has_a_solution_of_nan(kind):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    outputs = [solve(a, b, assume_a=kind), solve(a, b + 1, assume_a=kind)]
    for found in engine.function([a, b], outputs, mode=MODE.including(REUSE))(np.zeros((4, 4)), RIGHT):
        assert np.isnan(found).all()


@pytest.mark.parametrize("rows", [3, 5])
def test_a_right_hand_side_of_another_length_is_refused(rows):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    outputs = [solve(a, b), solve(a, b + 1)]
    function = engine.function([a, b], outputs, mode=MODE.including(REUSE))
    with pytest.raises(AssertionError, match="Got shape"):
        function(A, np.ones((rows, 2)))


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("kind", FACTORS)
def test_a_loop_uses_the_factors_of_a_matrix_that_does_not_change(kind, is_turned):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")

    def step(x, a):
        return solve(a, x, assume_a=kind, transposed=is_turned)

    xs = engine.scan(step, outputs_info=[b], non_sequences=[a], n_steps=5, return_updates=False)
    plain = engine.function([a, b], xs, mode=MODE)
    split = engine.function([a, b], xs, mode=MODE.including(SPLIT))
    (loop,) = [node for node in split.maker.fgraph.apply_nodes if isinstance(node.op, Scan)]
    inside = ops_of(loop.op.fgraph.apply_nodes)
    assert FACTORS[kind] in ops(split)
    assert FACTORS[kind] not in inside
    assert Solve not in inside
    assert (CholeskySolve in inside) == (kind == "pos")
    np.testing.assert_allclose(split(MATRICES[kind], RIGHT), plain(MATRICES[kind], RIGHT), 1e-9)


def test_a_matrix_that_changes_is_factored_in_each_step():
    matrices, b = pt.dtensor3("matrices"), pt.dmatrix("b")
    xs = engine.scan(lambda a, x: solve(a, x), sequences=[matrices], outputs_info=[b], return_updates=False)
    function = engine.function([matrices, b], xs, mode=MODE.including(SPLIT))
    (loop,) = [node for node in function.maker.fgraph.apply_nodes if isinstance(node.op, Scan)]
    assert Solve in ops_of(loop.op.fgraph.apply_nodes)
    np.testing.assert_allclose(function(np.stack([A, A]), RIGHT)[0], np.linalg.solve(A, RIGHT))
