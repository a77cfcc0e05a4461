"""Batches of Ops that are Ops of batches."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.rewriting import rewrite_graph
from engine.tensor.blockwise import Blockwise, vectorize_graph


def batch_of(batch, lengths):
    """Return allocs of each number of `batch` in one of `lengths`."""
    x, n = pt.dscalar("x"), pt.iscalar("n")
    return vectorize_graph(pt.alloc(x, n), {x: batch, n: lengths})


def test_allocs_of_one_length_are_an_alloc():
    v, n = pt.tensor("v", shape=(5,)), pt.iscalar("n")
    batch = batch_of(v, pt.alloc(n, 5))
    assert isinstance(batch.owner.op, Blockwise)
    found = rewrite_graph(batch)
    assert [str(found.owner.op), found.owner.inputs[0].type.shape] == ["Alloc", (5, 1)]
    value = np.arange(5.0)
    for graph in (found, batch):
        f = engine.function([v, n], graph)
        np.testing.assert_array_equal(f(value, 3), np.repeat(value[:, None], 3, axis=1))
        assert f(value, 0).shape == (5, 0)
        with pytest.raises(ValueError, match="negative"):
            f(value, -1)


def test_allocs_of_lengths_that_may_differ_stay_a_batch():
    v, w, n, k = pt.tensor("v", shape=(5,)), pt.dvector("w"), pt.iscalar("n"), pt.tensor("k", "int64", (5,))
    for batch in (batch_of(v, k), batch_of(w, pt.alloc(n, 5)), batch_of(v, pt.alloc(n, n))):
        assert isinstance(rewrite_graph(batch).owner.op, Blockwise)
