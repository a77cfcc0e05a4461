"""Parts of parts that become one part, and places that are counted from the beginning."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import equal_computations
from engine.graph.reference import evaluate
from engine.rewriting import rewrite_graph

x, A, T = pt.dvector("x"), pt.dmatrix("A"), pt.dtensor3("T")
n, m = pt.lscalar("n"), pt.lscalar("m")
five = pt.tensor("five", dtype="float64", shape=(5,))

SAME = {
    "an integer of a slice": (T[3:6, 2:6, 1:7][1], T[4, 2:6, 1:7]),
    "an integer of an integer": (A[n][m], A[n, m]),
    "an integer of a slice beside an integer": (T[3:6, n, 1:7][1], T[4, n, 1:7]),
    "a slice of a slice": (x[1:5][:3], x[1:4]),
    "a slice that ends behind the other": (x[1:5][2:9], x[3:5]),
    "a slice of a rest": (x[2:][3:], x[5:]),
    "every second of every third": (x[1:20:3][1::2], x[4:22:6]),
    "an axis where bounds are known": (A[n:, 1:5][1:, :3], A[n:, 1:4][1:]),
    "axes that are not sliced twice": (T[n:][:, :m], T[n:, :m]),
    "a slice of a slice backwards": (five[::-1][1:3], five[3:1:-1]),
    "the last of a known length": (five[1:4][-1], five[3]),
}
MERGING = ("local_subtensor_merge_slice", "local_subtensor_merge_integer")
KEPT = {
    "an integer that the slice cuts off": x[1:4][3],
    "the last of an unknown length": x[1:][-1],
    "a bound from the end": x[:-1][2:],
    "bounds that are not known": x[n:][m:],
    "a slice without elements": five[3:2][::-1],
}


@pytest.mark.parametrize("name", SAME)
def test_a_part_of_a_part_is_one_part(name):
    written, due = SAME[name]
    assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])
    assert not equal_computations([rewrite_graph(written, exclude=MERGING)], [rewrite_graph(due)])


@pytest.mark.parametrize("name", KEPT)
def test_a_part_of_a_part_stays_where_bounds_are_not_known(name):
    assert rewrite_graph(KEPT[name]).owner.inputs[0].owner is not None


def test_a_part_that_is_read_elsewhere_stays():
    part = x[2:8]
    rewritten = rewrite_graph([part[1], pt.exp(part)])
    assert rewritten[0].owner.inputs[0].owner is not None


BOUNDS, STEPS = [None, -7, -3, -1, 0, 1, 2, 4, 6], [None, -2, -1, 1, 2, 3]


def some_indices():
    """Yield a slice, and a slice or an integer of what it selects."""
    rng = np.random.default_rng(3)
    for case in range(300):
        inner, outer = [slice(*map(rng.choice, (BOUNDS, BOUNDS, STEPS))) for _ in range(2)]
        yield inner, outer if case % 2 else int(rng.integers(-4, 5))


def selected(array, inner, outer):
    """Return the elements of a part of a part, or IndexError."""
    try:
        return array[inner][outer].tolist()
    except IndexError:
        return IndexError


def selected_by(v, new, array):
    try:
        return evaluate([v], [new], [array])[0].tolist()
    except IndexError:
        return IndexError


def test_parts_of_parts_have_the_elements_and_the_errors_of_numpy():
    for case, (inner, outer) in enumerate(some_indices()):
        values = np.arange((0.0, 1.0, 3.0, 5.0, 8.0)[case % 5])
        for shape in ((None,), values.shape):
            v = pt.tensor("v", dtype="float64", shape=shape)
            found = selected_by(v, rewrite_graph(v[inner][outer]), values)
            assert found == selected(values, inner, outer), (inner, outer, shape)


def test_places_are_counted_from_the_beginning_of_a_known_length():
    y = pt.tensor("y", dtype="float64", shape=(None, 3, 1))
    a = pt.dvector("a")
    for written, due in ((y[:, -2], y[:, 1]), (y[n, -3], y[n, 0]), (y[0, -1].set(a), y[0, 2].set(a))):
        assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])
    for kept in (y[-2], y[:, :, -2], y[:, n]):
        assert equal_computations([rewrite_graph(kept)], [kept])
