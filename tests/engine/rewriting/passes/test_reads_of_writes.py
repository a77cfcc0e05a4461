"""Reads, at constant places, of what was changed at constant places."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations, io_toposort
from engine.rewriting import rewrite_graph
from engine.tensor import AdvancedIncSubtensor

x, y = pt.dvector("x"), pt.dvector("y")
five, three = pt.tensor("five", dtype="float64", shape=(5,)), pt.tensor("three", dtype="float64", shape=(3,))
A, B = pt.tensor("A", dtype="float64", shape=(2, 5)), pt.tensor("B", dtype="float64", shape=(2, 3))


def at(*places):
    return pt.constant(np.array(places, dtype="int64"))


def where(*is_chosen):
    return pt.constant(np.array(is_chosen, dtype=bool))


SAME = {
    "all that was written": (five[at(0, 1, 2)].set(three)[:3], three),
    "some of what was written": (five[at(0, 2, 4)].set(three)[:3], five[:3][at(0, 2)].set(three[:2])),
    "nothing of what was written": (five[at(2, 3, 4)].set(three)[:2], five[:2]),
    "in another order": (five[at(0, 2, 4)].set(three)[at(4, 0)], three[at(2, 0)]),
    "the last of what was written twice": (five[at(0, 3, 0)].set(three)[at(0)], three[at(2)]),
    "one of what was written": (five[at(0, 2, 4)].set(three)[2], three[1]),
    "one of what was not": (five[at(0, 2, 4)].set(three)[1], five[1]),
    "a place from the end": (five[at(0, -1, 1)].set(three)[4], three[1]),
    "what was added": (five[at(0, 2, 4)].inc(three)[at(4, 0)], five[at(4, 0)] + three[at(2, 0)]),
    "some of what was added": (five[at(0, 2, 4)].inc(three)[:2], five[:2][at(0)].inc(three[at(0)])),
    "columns": (A[:, at(0, 2, 4)].set(B)[:, at(4, 0)], B[:, at(2, 0)]),
    "by masks": (five[where(1, 0, 1, 0, 1)].set(three)[where(0, 1, 0, 1, 0)], five[where(0, 1, 0, 1, 0)]),
    "of an unknown length, which the read refuses": (
        x[at(0, 1, 3)].set(three)[at(2, 4)],
        x[at(2, 4)],
    ),
}
KEPT = {
    "another axis": A[at(0, 1)].set(A)[:, at(0, 2)],
    "what was added twice": five[at(0, 3, 0)].inc(three)[at(0)],
    "places that the read does not refuse": x[at(0, 1, 5)].set(three)[at(2, 4)],
    "a slice of an unknown length": x[at(0, 1, 3)].set(three)[:2],
    "places that are not constant": five[pt.lvector("places")].set(y)[at(0)],
    "lengths along other axes that are not known": pt.dmatrix("m")[at(0, 1)].set(pt.dmatrix("n"))[at(0)],
}


def writes(variable):
    return [node for node in io_toposort([], [variable]) if isinstance(node.op, AdvancedIncSubtensor)]


@pytest.mark.parametrize("name", SAME)
def test_what_was_written_is_read_from_its_source(name):
    written, due = SAME[name]
    assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])


@pytest.mark.parametrize("name", KEPT)
def test_a_write_stays_where_a_check_or_a_value_would_be_lost(name):
    assert len(writes(rewrite_graph(KEPT[name]))) == 1


def test_a_tensor_that_is_read_as_a_whole_is_written():
    whole = five[at(0, 2, 4)].set(three)
    assert len(writes(rewrite_graph([whole[at(0)], whole])[0])) == 1


@pytest.mark.parametrize("read", [at(2, 4), where(0, 0, 1, 0, 1)])
@pytest.mark.parametrize("written", [at(0, 1, 3), where(1, 1, 0, 1, 0)])
def test_lengths_that_the_write_refuses_are_refused(written, read):
    f = engine.function([x, y], x[written].set(y)[read])
    assert not [node for node in f.maker.fgraph.toposort() if isinstance(node.op, AdvancedIncSubtensor)]
    np.testing.assert_array_equal(f(np.arange(5.0), np.ones(3)), [2, 4])
    for n_there, n_written in ((4, 3), (5, 2), (5, 4)):
        with pytest.raises((IndexError, ValueError)):
            f(np.arange(float(n_there)), np.ones(n_written))


INDICES = {
    "numbers": lambda rng, n: rng.integers(-n, n, size=rng.integers(0, 5)),
    "a mask": lambda rng, n: rng.random(n) < 0.5,
    "a slice": lambda rng, n: slice(
        *map(int, rng.integers(-n - 1, n + 2, size=2)), int(rng.choice([1, 2, -1]))
    ),
    "an integer": lambda rng, n: int(rng.integers(-n, n)),
}


@pytest.mark.parametrize("reading", INDICES)
@pytest.mark.parametrize("writing", ["numbers", "a mask"])
@pytest.mark.parametrize("is_set", [True, False])
def test_what_is_read_is_what_numpy_reads(writing, reading, is_set):
    rng = np.random.default_rng(1)
    for n in (1, 3, 5):
        written, read = INDICES[writing](rng, n), INDICES[reading](rng, n)
        values = rng.random(np.arange(n)[written].size)
        v = pt.tensor("v", dtype="float64", shape=rng.choice([(n,), (None,)]))
        w = pt.tensor("w", dtype="float64", shape=rng.choice([(values.size,), (None,)]))
        part = v[pt.constant(written)]
        changed = part.set(w) if is_set else part.inc(w)
        due = np.arange(float(n))
        if is_set:
            due[written] = values
        else:
            np.add.at(due, written, values)
        index = read if isinstance(read, slice | int) else pt.constant(read)
        found = rewrite_graph(changed[index]).eval(
            {v: np.arange(float(n)), w: values}, on_unused_input="ignore"
        )
        np.testing.assert_array_equal(found, due[read])
