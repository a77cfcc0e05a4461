"""Gradients of parts of a graph, which continue each other."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.gradient import grad, subgraph_grad
from engine.graph.reference import evaluate

X, W = np.linspace(-1, 1, 3), np.arange(6.0).reshape(3, 2)


def test_parts_of_a_graph_have_the_gradients_of_the_whole():
    x, w, v = pt.dvector("x"), pt.dmatrix("w"), pt.dvector("v")
    hidden = pt.tanh(pt.dot(x, w))
    cost, decay = pt.sum(hidden * v), pt.sum(w**2)
    for_v, for_hidden = subgraph_grad([v], [hidden], cost=cost)
    start = {hidden: for_hidden[0]}
    for_w, for_x, of_start, of_cost = subgraph_grad([w], [x], start, decay, details=True)
    whole = grad(cost + decay, [v, w, x])
    parts = [*for_v, *for_w, *for_x, of_start[0] + of_cost[0], of_cost[1]]
    found = evaluate([x, w, v], [*parts, *whole], [X, W, X[:2]])
    for part, expected in zip(found[:3], found[5:], strict=True):
        np.testing.assert_allclose(part, expected)
    np.testing.assert_allclose(found[3], found[1])
    assert not found[4].any()


def test_what_is_no_part_of_a_graph_is_refused():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="a cost, or a start"):
        subgraph_grad([x], [])
    with pytest.raises(TypeError, match="two lists and a dictionary"):
        subgraph_grad(x, [], cost=pt.sum(x))
