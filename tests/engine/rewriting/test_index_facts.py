"""What is known of an index with arrays before the function runs."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.assumptions import assume
from engine.graph import FunctionGraph
from engine.rewriting.index_facts import are_distinct, indices_of, joint_shape, selects_no_more

x, A = pt.vector("x"), pt.matrix("A")
k, n = pt.iscalar("k"), pt.lvector("n")
rows, columns = pt.tril_indices(pt.lscalar("m"))
NOTHING = FunctionGraph([], [])


def constants(*arrays):
    return [pt.constant(np.array(array)) for array in arrays]


DISTINCT = {
    "constants": constants([0, 2, 3]),
    "negative constants": constants([-1, -3]),
    "pairs of constants": constants([0, 1, 1], [0, 0, 1]),
    "no constants": constants(np.zeros(0, dtype="int64")),
    "a number": [k],
    "a range from 0": [pt.arange(k)],
    "a range that is shifted up": [pt.arange(k) + 2],
    "a range that is shifted below 0 as a whole": [pt.arange(5) - 10],
    "a range down to a length": [pt.arange(k, pt.minimum(x.shape[0], 3), -1)],
    "a range down to 0": [pt.arange(k, 0, -1)],
    "a range of negative numbers": [pt.arange(-6, -2)],
    "a range up to a length": [pt.arange(x.shape[0])],
    "a mask": [pt.vector("mask", dtype="bool")],
    "rows and columns of a mask": [rows, columns],
    "what a user says": [assume(n, unique_indices=True)],
    "a range beside others": [pt.arange(k), n],
}
PERHAPS_NOT = {
    "repeated constants": constants([1, 3, 3]),
    "constants of both signs": constants([0, -2]),
    "repeated pairs": constants([0, 1, 1], [0, 1, 1]),
    "data": [pt.constant(np.arange(50))],
    "a variable": [n],
    "a range from below 0": [pt.arange(-2, k)],
    "a range that is shifted below 0": [pt.arange(k) - 2],
    "constants that are shifted to both signs": [pt.arange(5) - 2],
    "a range down from anywhere": [pt.arange(5, k, -1)],
    "rows of a mask alone": [rows],
    "rows of one mask and columns of another": [rows, pt.triu_indices(pt.lscalar("m"))[1]],
    "a range that is repeated for the rows of a matrix": [pt.arange(k), pt.lmatrix("N")],
}


@pytest.mark.parametrize("name", DISTINCT)
def test_places_that_differ_are_known_to(name):
    assert are_distinct(NOTHING, x, DISTINCT[name])


@pytest.mark.parametrize("name", PERHAPS_NOT)
def test_places_that_may_be_the_same_are_not_taken_for_distinct(name):
    assert not are_distinct(NOTHING, x, PERHAPS_NOT[name])


def test_a_selection_is_compared_with_the_axes_that_arrays_index():
    T = pt.tensor("T", shape=(4, 5))
    for arrays, fits in (([[0, 1, 1, 0]], True), ([[0] * 5], False), ([[0] * 20, [1] * 20], True)):
        entries = ("i",) * len(arrays)
        indices = indices_of(T, entries, constants(*arrays))
        assert indices is not None
        assert joint_shape(indices) == (len(arrays[0]),)
        assert selects_no_more(NOTHING, T, indices) == fits


def test_a_mask_has_no_index_for_each_axis():
    assert indices_of(A, ("i",), [pt.matrix("mask", dtype="bool")]) is None
