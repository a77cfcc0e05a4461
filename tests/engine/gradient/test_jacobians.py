"""Jacobians and Hessians: of every shape, of several variables, in rows and in loops."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import DisconnectedInputError
from engine.gradient import hessian, hessian_vector_product, jacobian
from engine.graph import io_toposort
from engine.graph.reference import evaluate
from engine.inner.scan import Scan

A = np.random.default_rng(0).normal(size=(3, 4))
V = np.random.default_rng(1).normal(size=4)


def scans(*outputs):
    return [node for node in io_toposort([], outputs) if isinstance(node.op, Scan)]


@pytest.mark.parametrize("length", [None, 4])
def test_the_jacobian_of_a_vector_has_a_row_for_each_element(length):
    x = pt.tensor("x", "float64", (length,))
    found = jacobian(pt.tanh(x) * x[0], x)
    expected = np.diag(V[0] / np.cosh(V) ** 2)
    expected[:, 0] += np.tanh(V)
    np.testing.assert_allclose(evaluate([x], [found], [V])[0], expected)
    assert bool(scans(found)) == (length is None)


@pytest.mark.parametrize("rows", [None, 3])
def test_the_jacobian_has_the_axes_of_both(rows):
    x, m = pt.tensor("x", "float64", (None,)), pt.tensor("m", "float64", (rows, 4))
    of_product = jacobian(pt.dot(m, x)[:, None] * pt.ones((1, 2)), [m, x])
    of_number = jacobian(pt.sum(x**2), (x,))
    first, second = evaluate([m, x], of_product, [A, V])
    assert first.shape == (3, 2, 3, 4)
    np.testing.assert_allclose(first[1, 1], np.outer([0, 1, 0], V))
    np.testing.assert_allclose(second, np.stack([A, A], 1))
    assert isinstance(of_number, tuple)
    np.testing.assert_allclose(evaluate([x], of_number, [V])[0], 2 * V)


def test_the_jacobian_of_nothing_has_no_rows():
    x = pt.dvector("x")
    assert evaluate([x], [jacobian(x[:0] * 2, x)], [V])[0].size == 0


def test_what_no_row_needs_anew_is_computed_once():
    x, m = pt.dvector("x"), pt.dmatrix("m")
    (loop,) = scans(jacobian(pt.tanh(pt.dot(m, pt.exp(x))), x))
    assert not [node for node in loop.op.fgraph.nodes if str(node.op) in ("exp", "tanh")]


def test_what_is_not_connected_is_refused_or_zeros():
    x, y = pt.dvector("x"), pt.tensor("y", "float64", (2,))
    with pytest.raises(DisconnectedInputError):
        jacobian(y * 2, x)
    found = jacobian(y * 2, [x, y], disconnected_inputs="ignore")
    zeros, twos = evaluate([x, y], found, [V, V[:2]])
    np.testing.assert_array_equal(zeros, np.zeros((2, 4)))
    np.testing.assert_array_equal(twos, 2 * np.eye(2))
    with pytest.raises(TypeError, match="tensor variable"):
        jacobian([x], x)


@pytest.mark.parametrize("length", [None, 4])
def test_a_jacobian_compiles(length, kernels_once):
    x = pt.tensor("x", "float64", (length,))
    function = engine.function([x], jacobian(pt.sin(x) * x.sum(), x))
    expected = np.diag(np.cos(V) * V.sum()) + np.sin(V)[:, None]
    np.testing.assert_allclose(function(V), expected)


@pytest.mark.parametrize("length", [None, 4])
def test_the_hessian_of_rosenbrocks_function(length):
    x = pt.tensor("x", "float64", (length,))
    cost = pt.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    (found,) = evaluate([x], [hessian(cost, x)], [V])
    expected = np.diag(np.append(1200 * V[:-1] ** 2 - 400 * V[1:] + 2, 0) + np.append(0, [200] * 3))
    expected += np.diag(-400 * V[:-1], 1) + np.diag(-400 * V[:-1], -1)
    np.testing.assert_allclose(found, expected)
    p = pt.dvector("p")
    (product,) = evaluate([x, p], [hessian_vector_product(cost, x, p)], [V, A[0]])
    np.testing.assert_allclose(product, expected @ A[0])


def test_the_hessian_of_a_linear_cost_is_zero_and_several_vectors_get_one_each():
    x, y = pt.dvector("x"), pt.dvector("y")
    found = hessian(pt.sum(x) + pt.sum(y**3), [x, y])
    first, second = evaluate([x, y], found, [V, V[:2]])
    np.testing.assert_array_equal(first, np.zeros((4, 4)))
    np.testing.assert_allclose(second, np.diag(6 * V[:2]))


def test_what_has_no_hessian_is_refused():
    x, m = pt.dvector("x"), pt.dmatrix("m")
    with pytest.raises(ValueError, match="must be a vector"):
        hessian(pt.sum(m), m)
    with pytest.raises(TypeError, match="must be a scalar"):
        hessian(x, x)
    with pytest.raises(ValueError, match="one for each"):
        hessian_vector_product(pt.sum(x), x, [x, x])


@pytest.mark.parametrize("rows", [None, 3])
def test_all_rows_are_one_batch_if_asked(rows):
    x, m = pt.dvector("x"), pt.tensor("m", "float64", (rows, 4))
    targets, expression = [m, x], pt.tanh(pt.dot(m, x)) * x[0]
    at_once = jacobian(expression, targets, vectorize=True)
    in_turn = jacobian(expression, targets)
    assert not scans(*at_once)
    found = evaluate([m, x], [*at_once, *in_turn], [A, V])
    np.testing.assert_allclose(found[0], found[2])
    np.testing.assert_allclose(found[1], found[3])


def test_a_batch_of_rows_is_zeros_without_a_connection():
    x, y = pt.dvector("x"), pt.dvector("y")
    found = jacobian(y * 2, [x, y], disconnected_inputs="ignore", vectorize=True)
    zeros, twos = evaluate([x, y], found, [V, V[:2]])
    assert zeros.shape == (2, 4)
    assert not zeros.any()
    np.testing.assert_array_equal(twos, 2 * np.eye(2))
