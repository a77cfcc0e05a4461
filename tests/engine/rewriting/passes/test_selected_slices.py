"""Index arrays that select what a slice or a diagonal selects."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import Mode
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

x, A = pt.tensor("x", shape=(10,)), pt.tensor("A", shape=(4, 3))
unknown = pt.vector("unknown")


def at(*places):
    return pt.constant(np.array(places, dtype="int64"))


SAME = {
    "the first places": (x[at(0, 1, 2, 3)], x[:4]),
    "places between": (x[at(2, 3, 4)], x[2:5]),
    "every second": (x[at(2, 4, 6, 8)], x[2::2]),
    "backwards": (x[at(5, 4, 3, 2, 1, 0)], x[5::-1]),
    "backwards between": (x[at(7, 5, 3)], x[7:1:-2]),
    "all": (x[pt.arange(10)], x),
    "a shifted range": (x[pt.arange(8) + 2], x[2:]),
    "columns": (A[:, at(1, 2)], A[:, 1:]),
    "a diagonal": (A[at(0, 1, 2), at(0, 1, 2)], pt.diagonal(A)),
    "a diagonal below": (A[at(1, 2, 3), at(0, 1, 2)], pt.diagonal(A, -1)),
}
KEPT = {
    "unequal steps": x[at(0, 1, 3)],
    "one place twice": x[at(1, 1)],
    "negative places": x[at(-2, -1, 0)],
    "places that are not there": x[at(8, 9, 10)],
    "an unknown length": unknown[at(0, 1)],
    "a part of a diagonal": A[at(0, 1), at(0, 1)],
    "places beside a diagonal": A[at(1, 2), at(1, 2)],
}


@pytest.mark.parametrize("name", SAME)
def test_a_view_takes_the_place_of_a_selection(name):
    written, due = SAME[name]
    assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])


@pytest.mark.parametrize("name", KEPT)
def test_a_selection_stays(name):
    assert equal_computations([rewrite_graph(KEPT[name])], [KEPT[name]])


def test_the_numbers_stay(kernels_once):
    values = np.arange(10.0), np.arange(12.0).reshape(4, 3)
    outputs = [written for written, _ in SAME.values()]
    found = engine.function([x, A], outputs)(*values)
    expected = engine.function([x, A], outputs, mode=Mode(optimizer=None))(*values)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_place_that_is_not_there_is_still_refused():
    f = engine.function([unknown], unknown[at(0, 1, 2)])
    with pytest.raises(IndexError):
        f([1.0, 2.0])
