from itertools import pairwise

import numpy as np
import pytest

import engine.tensor as pt

X = np.arange(40.0).reshape(8, 5)


@pytest.mark.parametrize("k", [0, 3, 8, 11, -2, -9])
def test_both_sides_of_any_place_are_all(rewritten, k):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    graph = rewritten([x, n], pt.join(0, x[:n], x[n:]))
    assert graph.check_values(X, k, exact=True).ops == []


@pytest.mark.parametrize(
    ("bounds", "due"),
    [
        ((1, 3, 6, None), "Subtensor{a:}"),
        ((None, 2, 4, 9), "Subtensor{:b}"),
        ((-6, -4, -1, None), "Subtensor{a:}"),
        ((2, 2, 3), "Subtensor{a:b}"),
    ],
)
def test_slices_in_order_are_one(rewritten, bounds, due):
    x = pt.dmatrix("x")
    parts = [x[start:stop] for start, stop in pairwise(bounds)]
    assert rewritten(x, pt.join(0, *parts)).check_values(X, exact=True).ops == [due]


def test_slices_along_other_axes_must_be_the_same(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    same = rewritten([x, n], pt.join(1, x[::n, :2], x[::n, 2:4]))
    assert same.check_values(X, 2, exact=True).ops == ["Subtensor{::c, :b}"]
    for wrong in (pt.join(1, x[::n, :2], x[::2, 2:4]), pt.join(0, x[:2, :4], x[2:, 1:])):
        assert "Join" in " ".join(rewritten([x, n], wrong).check_values(X, 2, exact=True).ops)


@pytest.mark.parametrize("k", [0, 3, 9])
def test_slices_that_may_overlap_stay(rewritten, k):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    for parts in ([x[1:n], x[n:5]], [x[1:n], x[n:]], [x[:n], x[n:5]], [x[:-1], x[-1:3]], [x[4:2], x[2:6]]):
        graph = rewritten([x, n], pt.join(0, *parts)).check_values(X, k, exact=True)
        assert "Join{axis=0}" in graph.ops


def test_steps_and_gaps_stay(rewritten):
    x = pt.dmatrix("x")
    for parts in ([x[:4:2], x[4::2]], [x[:3], x[4:]], [x[3:], x[:3]], [x[:2], x[2]][:1] + [x[2:3]] * 2):
        assert "Join{axis=0}" in rewritten(x, pt.join(0, *parts)).check_values(X, exact=True).ops
