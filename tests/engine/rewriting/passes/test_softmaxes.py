"""Softmaxes that are written out are those that keep digits."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

X = np.array([[1000.0, 1001.0, 1e8], [1.0, 2.0, -1e300]])
AXES = [0, 1, -1, None, (0, 1)]


def _stable(outputs):
    return rewrite_graph(outputs, include=("canonicalize", "stabilize"))


@pytest.mark.parametrize("axis", AXES)
def test_a_difference_to_the_logsumexp_is_a_log_softmax(rewritten, axis):
    x = pt.dmatrix("x")
    written = x - pt.logsumexp(x, axis=axis, keepdims=True)
    assert equal_computations([_stable(written)], [pt.special.log_softmax(x, axis=axis)])
    rewritten(x, written).check_values(X)


@pytest.mark.parametrize("axis", AXES)
def test_the_exponential_of_a_log_softmax_is_a_softmax(rewritten, axis):
    x = pt.dmatrix("x")
    written = pt.exp(pt.special.log_softmax(x, axis=axis))
    assert equal_computations([_stable(written)], [pt.special.softmax(x, axis=axis)])
    rewritten(x, written).check_values(X)


def test_a_logsumexp_or_log_softmax_that_is_needed_is_used():
    x = pt.dmatrix("x")
    total = pt.logsumexp(x, axis=1, keepdims=True)
    assert equal_computations(_stable([x - total, total]), [x - total, total])
    found = pt.special.log_softmax(x, axis=1)
    assert equal_computations(_stable([pt.exp(found), found]), [pt.exp(found), found])


def test_a_logsumexp_of_other_axes_or_numbers_stays():
    x, y = pt.tensor("x", shape=(2, 2)), pt.tensor("y", shape=(2, 2))
    for other in (pt.logsumexp(x, axis=1), pt.logsumexp(y, axis=1, keepdims=True)):
        assert equal_computations([_stable(x - other)], [x - other])


def test_digits_are_kept(rewritten):
    x = pt.dvector("x")
    value = np.array([1e15, 1e15 + 0.25])
    exact = [-np.log1p(np.exp(0.25)), -np.log1p(np.exp(-0.25))]
    found = rewritten(x, x - pt.logsumexp(x, keepdims=True)).evaluate(value)
    np.testing.assert_allclose(np.ravel(found), exact, rtol=1e-13)


def test_the_exponential_of_a_log_softmax_stays_where_a_stable_form_reads_it(rewritten):
    x = pt.dvector("x")
    power, y = pt.exp(pt.special.log_softmax(x)), 1.5 * x
    value = np.array([800.0, 1.0, -900.0])
    logarithm, share = pt.log(pt.exp(y) + power), pt.exp(y) / (pt.exp(y) + power)
    np.testing.assert_allclose(rewritten(x, logarithm).evaluate(value), [1200.0, 1.5, -1350.0])
    np.testing.assert_allclose(rewritten(x, share).evaluate(value), [1.0, 1.0, 1.0])
