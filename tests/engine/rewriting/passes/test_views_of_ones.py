"""Axes of length 1 beside a reshape or an index: one view where there were two, and no check is lost."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.rewriting import RewriteDatabaseQuery

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("order", "left"), [(("x", 0, "x", 1), []), ((1, "x", 0), ["DimShuffle{order=[1,0]}"]), ((1, 0), None)]
)
def test_new_axes_of_what_is_reshaped_are_dropped(rewritten, order, left):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    graph = rewritten([x, n], pt.reshape(x.dimshuffle(order), (n, 2))).check_values(
        X, np.array(3), exact=True
    )
    assert graph.ops == [*(["DimShuffle{order=[1,0]}"] if left is None else left), "Reshape{ndim=2}"]


def test_a_dropped_axis_of_known_length_need_not_be_dropped_before_a_reshape(rewritten):
    column, n = pt.dcol("column"), pt.lscalar("n")
    graph = rewritten([column, n], pt.reshape(column[:, 0], (n, 2))).check_values(
        X.reshape(6, 1), np.array(3)
    )
    assert graph.ops == ["Reshape{ndim=2}"]


def test_a_dropped_axis_of_unknown_length_is_checked_before_a_reshape():
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    f = engine.function([x, n], pt.reshape(x.dimshuffle(0), (n, 2)))
    assert f(X.reshape(6, 1), 3).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="dropped"):
        f(X, 3)


@pytest.mark.parametrize(
    ("shape", "order", "ndim"),
    [
        ((3, 2), (0, "x", 1), 3),
        ((3, 2), ("x", 0, 1, "x"), 4),
        ((3, -1), (0, 1, "x"), 3),
        ((3, 1, 2), (0, 2), 2),
        ((1, 3, 2), (1, 2, "x"), 3),
    ],
)
def test_axes_of_length_1_come_and_go_in_the_reshape_before(rewritten, shape, order, ndim):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    for first in (n, 3):
        lengths = [first if length == 3 else length for length in shape]
        moved = pt.reshape(x, lengths).dimshuffle(order)
        graph = rewritten([x, n], moved).check_values(X, np.array(3), exact=True)
        assert graph.ops == [f"Reshape{{ndim={ndim}}}"]
        with pytest.raises(ValueError, match="elements"):
            engine.function([x, n], moved, on_unused_input="ignore")(np.ones((2, 4)), 3)


def test_a_reshape_that_is_used_elsewhere_and_other_orders_stay(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    shaped = pt.reshape(x, (n, 2))
    values = X, np.array(3)
    assert "Reshape{ndim=2}" in rewritten([x, n], shaped.dimshuffle(1, "x", 0)).ops
    graph = rewritten([x, n], [shaped[:, None], shaped]).check_values(*values, exact=True)
    assert graph.ops.count("Reshape{ndim=2}") == 1
    dropped = rewritten([x, n], pt.reshape(x, (n, 2, 3)).dimshuffle(1, 2))
    assert dropped.check_values(X, np.array(1)).ops[-1].startswith("DimShuffle")


def test_a_whole_axis_of_length_1_is_indexed_where_somebody_asks_for_uncanonical_forms(rewritten):
    x, n = pt.tensor("x", dtype="float64", shape=(None, 1, None)), pt.lscalar("n")
    part = x[:, :, n:].dimshuffle(0, 2)
    value = X.reshape(2, 1, 3)
    query = RewriteDatabaseQuery(include=("uncanonicalize",))
    graph = rewritten([x, n], part, query=query).check_values(value, np.array(1), exact=True)
    assert graph.ops == ["Subtensor{:, i, a:}"]
    trailing = rewritten([x, n], x[n].dimshuffle(1), query=query).check_values(value, np.array(1), exact=True)
    assert trailing.ops == ["Subtensor{i, i}"]
    assert "Subtensor{:, :, a:}" in rewritten([x, n], part).ops


def test_an_axis_that_only_a_part_has_with_length_1_is_dropped_from_it(rewritten):
    x = pt.tensor("x", dtype="float64", shape=(5, 3))
    query = RewriteDatabaseQuery(include=("uncanonicalize",))
    graph = rewritten(x, x[4:9].dimshuffle(1), query=query).check_values(np.ones((5, 3)), exact=True)
    assert graph.ops[-1] == "DimShuffle{order=[1]}"


def test_a_repeated_value_gets_its_axes_at_once_where_somebody_asks_for_uncanonical_forms(rewritten):
    x, n = pt.dvector("x"), pt.lscalar("n")
    query = RewriteDatabaseQuery(include=("uncanonicalize",))
    repeated = pt.alloc(x, n, 3)
    graph = rewritten([x, n], repeated.dimshuffle("x", "x", 0, 1), query=query)
    graph.check_values(X[0], np.array(2), exact=True)
    assert graph.ops == ["DimShuffle{order=[x,x,x,0]}", "Alloc"]
    turned = rewritten([x, n], repeated.dimshuffle("x", 1, 0), query=query)
    assert turned.check_values(X[0], np.array(2), exact=True).ops[-1] == "DimShuffle{order=[x,1,0]}"
