"""Products of vectors and matrices, against numpy."""

from itertools import product

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.graph import equal_computations
from engine.graph.reference import evaluate
from engine.graph.traversal import ancestors
from engine.tensor.checks import Assert
from tests.engine.special_values import DTYPES

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((0,), (0,)),
]


@pytest.mark.parametrize("dtypes", list(product(DTYPES, DTYPES)))
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_are_numpys(shapes, dtypes):
    rng = np.random.default_rng(0)
    values = [(rng.normal(size=s) * 2).astype(d) for s, d in zip(shapes, dtypes, strict=True)]
    variables = [pt.tensor(None, v.dtype, (None,) * v.ndim) for v in values]
    found = evaluate(variables, [pt.dot(*variables)], values)[0]
    expected = np.asarray(np.dot(*values))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)


def test_one_without_axes_multiplies_elements():
    x, s = pt.dmatrix("x"), pt.dscalar("s")
    assert evaluate([x, s], [pt.dot(s, x)], [np.ones((2, 2)), 3.0])[0].tolist() == [[3, 3], [3, 3]]


def test_numbers_are_no_matrices():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="cannot be scalar"):
        pt.matmul(x, pt.dscalar())


def test_lengths_that_do_not_fit_are_refused_with_both_shapes():
    x, v = pt.dmatrix("x"), pt.dvector("v")
    with pytest.raises(
        ValueError, match=r"shape \(2, 3\) by one of shape \(4,\): lengths 3 and 4 must be equal"
    ):
        evaluate([x, v], [x @ v], [np.ones((2, 3)), np.ones(4)])
    with pytest.raises(ValueError, match="lengths 3 and 4"):
        pt.tensor(None, "float64", (2, 3)) @ pt.tensor(None, "float64", (4,))


def test_a_length_of_one_does_not_broadcast():
    with pytest.raises(ValueError, match="lengths 1 and 4"):
        pt.tensor(None, "float64", (2, 1)) @ pt.tensor(None, "float64", (4,))


def test_static_lengths_are_kept():
    assert (pt.tensor(None, "float64", (2, None)) @ pt.tensor(None, "float64", (None, 5))).type.shape == (
        2,
        5,
    )
    assert (pt.dvector() @ pt.dvector()).type.shape == ()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_gradients(shapes, dtype):
    rng = np.random.default_rng(1)
    verify_grad(pt.dot, [rng.normal(size=shape).astype(dtype) for shape in shapes])


def test_gradients_have_their_variables_dtype():
    rng = np.random.default_rng(1)
    verify_grad(pt.dot, [rng.normal(size=(2, 3)).astype("float32"), rng.normal(size=3)])
    x, i = pt.fvector("x"), pt.lvector("i")
    node = pt.dot(x, i).owner
    assert node.op.pullback(node.inputs, node.outputs, [pt.dscalar()])[0].dtype == "float32"


def test_only_wanted_gradients_are_built():
    node = pt.dot(pt.dmatrix(), pt.dvector()).owner
    found = node.op.pullback_wanted(node.inputs, node.outputs, [pt.dvector()], [False, True])
    assert found[0] is None
    assert found[1].ndim == 1


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_tensordot_over_several_axes_compares_each_length(mode):
    x, y = pt.dtensor3("x"), pt.dtensor3("y")
    f = engine.function([x, y], pt.tensordot(x, y, axes=[[1, 2], [1, 2]]), mode=mode)
    a, b = np.arange(42.0).reshape(7, 3, 2), np.arange(30.0).reshape(5, 3, 2)
    np.testing.assert_array_equal(f(a, b), np.tensordot(a, b, [[1, 2], [1, 2]]))
    with pytest.raises(AssertionError, match="reduced axes of tensordot are not equal"):
        f(a, b.transpose(0, 2, 1).copy())
    known = pt.tensordot(pt.tensor(shape=(2, 3)), pt.tensor(shape=(2, 3)), axes=2)
    assert not [v for v in ancestors([known]) if v.owner and isinstance(v.owner.op, Assert)]


def test_a_tensordot_of_matrices_and_vectors_is_their_product():
    v, A = pt.dvector("v"), pt.dmatrix("A")
    for found, due in [
        (pt.tensordot(v, v, axes=1), pt.dot(v, v)),
        (pt.tensordot(A, v, axes=[[0], [0]]), pt.dot(A.T, v)),
        (pt.tensordot(v, A, axes=[[-1], [-1]]), pt.dot(v, A.T)),
        (pt.tensordot(A, A, axes=[[0], [1]]), pt.dot(A.T, A.T)),
        (pt.tensordot(v, A, axes=0), pt.mul.outer(v, A)),
    ]:
        assert equal_computations([found], [due])
