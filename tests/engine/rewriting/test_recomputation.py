"""Cheap operations that a reduction shares with elementwise ones are computed in both loops."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.inner import Composite
from engine.rewriting import RewriteDatabaseQuery
from engine.tensor import Elemwise

QUERY = RewriteDatabaseQuery(include=["fusion", "merge", "recompute_for_reductions"])
X = np.arange(6.0).reshape(2, 3) - 2.5


@pytest.fixture
def fused(rewritten):
    return lambda inputs, outputs: rewritten(inputs, outputs, query=QUERY)


def composites(graph):
    return [
        sorted(inner.op.name for inner in node.op.scalar_op.fgraph.nodes)
        for node in graph.fgraph.toposort()
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Composite)
    ]


def test_a_difference_is_taken_for_the_sum_and_for_what_uses_the_sum(fused):
    x, row = pt.dmatrix("x"), pt.drow("row")
    moved = x - row
    graph = fused([x, row], moved * pt.sum(pt.exp(moved), 1, keepdims=True)).check_values(X, X[:1])
    assert graph.applied["recompute_for_reductions"] == 1
    assert sorted(composites(graph)) == [["exp", "sub"], ["mul", "sub"]]


def test_a_sum_of_what_is_shared_gets_its_own_too(fused):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    product = x * y
    graph = fused([x, y], [pt.sum(pt.tanh(product)), pt.exp(product)]).check_values(X, X)
    assert sorted(composites(graph)) == [["exp", "mul"], ["mul", "tanh"]]


def test_what_is_dear_or_stored_anyway_or_made_of_what_would_be_stored_instead_is_shared(fused):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    dear, stored, long = pt.exp(x), x + y, pt.exp(x) - y
    for shared, others in ((dear, []), (stored, [stored]), (stored, [pt.dot(stored, y.T)]), (long, [])):
        outputs = [pt.sum(pt.tanh(shared)), pt.sin(shared), *others]
        assert "recompute_for_reductions" not in fused([x, y], outputs).check_values(X, X).applied


def test_what_a_reduction_shares_with_nothing_stays(fused):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    assert fused([x, y], pt.sum(pt.exp(x - y))).applied == {"fusion": 1}
