"""Distinct elements of what is repeated."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import Mode
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

a, A = pt.scalar("a"), pt.tensor("A", shape=(2, 3))
M, n = pt.matrix("M"), pt.lscalar("n")

SAME = {
    "a number": (pt.unique(a), a[None]),
    "a filled array": (pt.unique(pt.alloc(A, 4, 2, 3)), pt.unique(A)),
    "a value like another": (pt.unique(pt.second(pt.zeros((4, 2, 3)), A)), pt.unique(A)),
    "rows that are repeated differently": (pt.unique(pt.repeat(A, [1, 2], axis=0)), pt.unique(A)),
}
KEPT = {
    "a fill of a length that may be 0": pt.unique(pt.alloc(A, n, 2, 3)),
    "a fill that compares lengths": pt.unique(pt.alloc(M, 4, 2, 3)),
    "rows that may be left out": pt.unique(pt.repeat(A, [0, 2], axis=0)),
    "positions": pt.unique(pt.alloc(A, 4, 2, 3), return_index=True)[1],
    "slices": pt.unique(pt.alloc(A, 4, 2, 3), axis=1),
}


@pytest.mark.parametrize("name", SAME)
def test_the_elements_of_what_is_repeated_are_enough(name):
    written, due = SAME[name]
    assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])


@pytest.mark.parametrize("name", KEPT)
def test_all_elements_are_looked_at(name):
    assert equal_computations([rewrite_graph(KEPT[name])], [KEPT[name]])


def test_the_numbers_stay(kernels_once):
    values = -0.0, np.array([[np.nan, 1.0, np.inf], [1.0, np.nan, -np.inf]])
    outputs = [written for written, _ in SAME.values()]
    found = engine.function([a, A], outputs)(*values)
    expected = engine.function([a, A], outputs, mode=Mode(optimizer=None))(*values)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_no_elements_are_none():
    f = engine.function([A, n], pt.unique(pt.alloc(A, n, 2, 3)))
    assert f(np.ones((2, 3)), 0).shape == (0,)
