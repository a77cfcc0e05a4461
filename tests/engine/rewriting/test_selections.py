"""Indices with several arrays in functions: rewritten before rows take their places."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.assumptions import assume
from engine.tensor import AdvancedIncSubtensor

A, v = pt.matrix("A"), pt.vector("v")
rows, columns = (pt.constant(np.array(each)) for each in ([0, 2, 3], [1, 2, 4]))
i = pt.lvector("i")


def writes(f):
    return [node for node in f.maker.fgraph.apply_nodes if isinstance(node.op, AdvancedIncSubtensor)]


def test_what_was_added_to_a_selection_is_added_to_the_old_elements():
    f = engine.function([A, v], A[rows, columns].inc(v)[rows, columns])
    assert not writes(f)
    a, b = np.random.default_rng(0).normal(size=(4, 5)), np.array([np.inf, np.nan, -0.0])
    np.testing.assert_array_equal(f(a, b), a[[0, 2, 3], [1, 2, 4]] + b)


def test_what_a_user_says_of_an_index_counts():
    said = assume(i, unique_indices=True)
    assert writes(engine.function([A, i], A[i].inc(2.0 * A[i])[i]))
    f = engine.function([A, i], A[said].inc(2.0 * A[said])[said])
    assert not writes(f)
    a = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(f(a, [2, 0]), 3 * a[[2, 0]])


@pytest.mark.parametrize("places", [[0, 9], [-9, 1]])
def test_a_place_that_is_not_there_is_still_refused(places):
    index = pt.constant(np.array(places))
    f = engine.function([A, v], A[index, index].inc(v)[index, index])
    with pytest.raises(IndexError):
        f(np.ones((4, 5)), np.ones(2))
