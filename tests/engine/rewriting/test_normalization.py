"""Softmax and its relatives are recognized in written-out form, but not where nothing can overflow."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.inner import OpFromGraph
from engine.inner.special import LogSoftmax, LogSumExp, Softmax

X = np.array([[1.0, 2.0, -3.0], [0.0, 0.5, 0.25]])


def powers(x, axis=1):
    e = pt.exp(x)
    return e / pt.sum(e, axis, keepdims=True)


def holding(graph):
    return [node.op for node in graph.fgraph.toposort() if isinstance(node.op, OpFromGraph)]


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_softmax_is_recognised(rewritten, dtype, axis):
    x = pt.matrix("x", dtype=dtype)
    graph = rewritten(x, powers(x, axis)).check_values(X.astype(dtype))
    assert graph.applied["local_stable_form"] == 1
    assert graph.applied["optimize_inner_graphs"] == 1
    assert len(holding(graph)) == 1


def test_what_overflowed_does_not(kernels_once):
    x = pt.dmatrix("x")
    outputs = [powers(x), pt.log(powers(x)), pt.log(pt.sum(pt.exp(x), 1))]
    found = engine.function([x], outputs)(np.array([[1000.0, 1000.0]]))
    np.testing.assert_allclose(found[0], [[0.5, 0.5]])
    np.testing.assert_allclose(found[1], -np.log([[2.0, 2.0]]))
    np.testing.assert_allclose(found[2], [1000 + np.log(2)])


def test_the_logarithm_of_softmax_is_recognised(rewritten):
    x = pt.dmatrix("x")
    for output in (pt.log(powers(x)), pt.log(pt.softmax(x, 1))):
        graph = rewritten(x, output).check_values(X)
        assert graph.applied["local_stable_form"] >= 1
        assert len(holding(graph)) == 1


@pytest.mark.parametrize("keepdims", [False, True])
def test_the_logarithm_of_a_sum_of_exponentials_is_recognised(rewritten, keepdims):
    x = pt.dmatrix("x")
    graph = rewritten(x, pt.log(pt.sum(pt.exp(x), 0, keepdims=keepdims))).check_values(X)
    assert graph.applied["local_stable_form"] == 1


def test_what_is_another_quotient_is_left_alone(rewritten):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    k = pt.lmatrix("k")
    e = pt.exp(x)
    different = [
        e / pt.sum(pt.exp(y), 1, keepdims=True),
        e / pt.sum(e, 1).dimshuffle("x", 0)[:, :1],
        pt.exp(x) / pt.max(pt.exp(x), 1, keepdims=True),
        pt.log(pt.sum(pt.tanh(x), 1)),
        pt.log(pt.sum(pt.exp(k), 1)),
    ]
    assert holding(rewritten([x, y, k], different)) == []


def test_what_has_its_largest_element_subtracted_is_left_alone(rewritten):
    x = pt.dmatrix("x")
    shifted = x - pt.max(x, 1, keepdims=True)
    assert holding(rewritten(x, [powers(shifted), pt.log(pt.sum(pt.exp(shifted), 1))])) == []
    other = x - pt.max(x, 0, keepdims=True)
    assert len(holding(rewritten(x, powers(other)))) == 1


@pytest.mark.parametrize("op", [Softmax, LogSoftmax, LogSumExp])
def test_no_op_is_recognised_within_its_own_graph(rewritten, op):
    x = pt.dmatrix("x")
    for axis in ((1,), (0, 1)):
        graph = rewritten(x, op(axis)(x)).check_values(X)
        (found,) = holding(graph)
        assert not [name for name in graph.applied if name.startswith("local_")]
        assert not any(isinstance(node.op, OpFromGraph) for node in found.fgraph.nodes)
