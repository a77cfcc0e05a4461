"""Ops that graphs replace: values of numpy and SciPy, gradients, batches; in a function their graphs replace them."""

import numpy as np
import pytest
import scipy.linalg

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.tensor.linalg.least_squares import TensorInv
from engine.tensor.replaced_op import ReplacedOp

RANDOM = np.random.default_rng(5)
A = RANDOM.normal(size=(3, 3)) + 3 * np.eye(3)
B = RANDOM.normal(size=(2, 4))
FACTOR = np.tril(A)
TENSOR = RANDOM.normal(size=(2, 3, 6))

CASES = {
    "Det": (pt.linalg.det, [A], np.linalg.det),
    "MatrixInverse": (pt.linalg.inv, [A], np.linalg.inv),
    "BlockDiagonal": (pt.linalg.block_diag, [A, B], scipy.linalg.block_diag),
    "KroneckerProduct": (pt.linalg.kron, [A, B], np.kron),
    "TensorInv": (lambda x: pt.linalg.tensorinv(x, 2), [TENSOR], lambda x: np.linalg.tensorinv(x, 2)),
    "CholeskySolve of a vector": (
        lambda c, b: pt.linalg.cho_solve((c, True), b, b_ndim=1),
        [FACTOR, B[0, :3]],
        lambda c, b: scipy.linalg.cho_solve((c, True), b),
    ),
    "CholeskySolve of a matrix": (
        lambda c, b: pt.linalg.cho_solve((c, False), b, b_ndim=2),
        [FACTOR.T.copy(), B[:, :3].T.copy()],
        lambda c, b: scipy.linalg.cho_solve((c, False), b),
    ),
}


def _names(f):
    return {type(node.op).__name__ for node in f.maker.fgraph.apply_nodes}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_definition(name):
    build, values, computed = CASES[name]
    inputs = [pt.tensor(dtype="float64", shape=(None,) * value.ndim) for value in values]
    output = build(*inputs)
    assert isinstance(output.owner.op, ReplacedOp)
    assert type(output.owner.op).__name__ == name.split()[0]
    for mode in ("FAST_RUN", "NUMPY"):
        np.testing.assert_allclose(
            engine.function(inputs, output, mode=mode)(*values), computed(*values), 1e-10, 1e-12
        )
    verify_grad(build, values, n_tests=1)


def test_the_reference_knows_of_constants_what_a_function_does():
    x, rows, column = pt.dmatrix("x"), np.array([True, False, True]), np.array([False, True, False])
    for mode in ("FAST_RUN", "NUMPY"):
        f = engine.function([x], x[pt.constant(rows), pt.constant(column)], mode=mode)
        np.testing.assert_array_equal(f(A), A[rows, column])


def test_a_function_has_the_graph_instead_of_the_op():
    x = pt.dmatrix("x")
    f = engine.function([x], [pt.linalg.inv(x) + pt.eye(3), pt.linalg.det(x)])
    assert not _names(f) & {"MatrixInverse", "Eye"}
    np.testing.assert_allclose(f(A)[0], np.linalg.inv(A) + np.eye(3))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_batches_are_computed_at_each_place(mode, kernels_once):
    x, y = pt.tensor3("x", dtype="float64"), pt.tensor3("y", dtype="float64")
    outputs = [pt.linalg.inv(x), pt.linalg.det(x), pt.linalg.block_diag(x, y)]
    several, others = np.stack([A, A.T, 2 * A]), np.stack([B, -B, 3 * B])
    inverses, determinants, blocks = engine.function([x, y], outputs, mode=mode)(several, others)
    np.testing.assert_allclose(inverses, np.linalg.inv(several))
    np.testing.assert_allclose(determinants, np.linalg.det(several))
    np.testing.assert_array_equal(blocks[2], scipy.linalg.block_diag(2 * A, 3 * B))


def test_lengths_that_are_known_stay_known():
    assert pt.eye(3, 4).type.shape == (3, 4)
    assert pt.linalg.block_diag(pt.matrix(shape=(1, 2)), pt.matrix(shape=(3, 3))).type.shape == (4, 5)
    assert pt.linalg.kron(pt.matrix(shape=(2, 3)), pt.matrix(shape=(3, 3))).type.shape == (6, 9)


def test_without_rewrites_the_reference_computes_a_replaced_op():
    x = pt.dmatrix("x")
    f = engine.function([x], pt.linalg.inv(x), mode=engine.Mode(optimizer=None))
    assert _names(f) == {"MatrixInverse"}
    np.testing.assert_allclose(f(A), np.linalg.inv(A))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="square"):
        pt.linalg.inv(pt.matrix(shape=(2, 3)))
    with pytest.raises(ValueError, match="from 1 to 2"):
        TensorInv(3)(pt.tensor3())
    with pytest.raises(TypeError, match="as many dimensions"):
        pt.linalg.KroneckerProduct()(pt.dmatrix(), pt.dvector())
