import numpy as np

import engine.tensor as pt

X = np.arange(6.0).reshape(2, 3)


def test_a_fill_with_what_has_the_shape_already_is_dropped(rewritten):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    assert rewritten([x, y], pt.second(x, y)).check_values(X, X + 1, exact=True).ops == []


def test_a_fill_meets_its_consumer_where_another_operand_has_the_shape(rewritten):
    x, c = pt.dmatrix("x"), pt.dscalar("c")
    graph = rewritten([x, c], pt.second(x, c) * x).check_values(X, np.array(3.0), exact=True)
    assert graph.ops == ["DimShuffle{order=[x,x]}", "mul"]


def test_a_fill_moves_outward_where_nothing_else_has_the_shape(rewritten):
    x, c = pt.dmatrix("x"), pt.dscalar("c")
    graph = rewritten([x, c], pt.exp(pt.second(x, c))).check_values(X, np.array(3.0), exact=True)
    assert graph.ops == ["DimShuffle{order=[x,x]}", "exp", "second"]


def test_fills_of_different_axes_both_stay(rewritten):
    row, col = pt.drow("row"), pt.dcol("col")
    total = pt.second(row, np.float64(2.0)) + pt.second(col, np.float64(3.0))
    graph = rewritten([row, col], total).check_values(X[:1], X[:, :1], exact=True)
    assert graph.ops.count("second") == 2


def test_what_only_gives_a_shape_is_not_computed(rewritten):
    x = pt.dvector("x")
    graph = rewritten(x, pt.zeros_like(pt.exp(x) + 1)).check_values(X[0], exact=True)
    assert graph.ops == ["second"]


def test_a_fill_is_kept_where_its_shape_is_known_better_than_the_value(rewritten):
    x, y = pt.tensor("x", dtype="float64", shape=(3,)), pt.dvector("y")
    assert rewritten([x, y], pt.second(x, y)).check_values(X[0], X[1]).ops == ["second"]
