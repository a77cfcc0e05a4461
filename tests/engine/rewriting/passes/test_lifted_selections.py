"""Selections by index arrays, of functions, fills and products."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import Mode
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

A, B = pt.tensor("A", shape=(6, 4)), pt.tensor("B", shape=(6, 4))
S, T = pt.tensor("S", shape=(3, 6, 4)), pt.tensor("T", shape=(1, 4, 6))
M, one = pt.matrix("M"), pt.tensor("one", shape=(1, 4))
n = pt.lvector("n")
i, j = pt.constant(np.array([0, 3, 5, 1])), pt.constant(np.array([2, 2, 4, 0]))
far = pt.constant(np.arange(6)[[0, 5, 2]])

MOVED = {
    "of a sum": ((A + B)[i], A[i] + B[i]),
    "of a sum with a row": ((A + one)[i], A[i] + one[pt.constant(np.zeros((1,), dtype="int64"))]),
    "by a range": (pt.exp(M)[pt.arange(M.shape[0]) + 0], pt.exp(M[pt.arange(M.shape[0]) + 0])),
    "of one row": (one[pt.constant(np.array([0, 0, -1]))], pt.alloc(one, 3, 4)),
    "of a fill": (pt.alloc(A, 3, 6, 4)[:, i], pt.alloc(A[i], 3, 4, 4)),
    "of repeats of a fill": (pt.alloc(A, 3, 6, 4)[[0, 2]], pt.alloc(A, 2, 6, 4)),
    "of rows of a product": (pt.dot(A, B.T)[i], pt.dot(A[i], B.T)),
    "of columns of a product": (pt.dot(A, B.T)[:, i], pt.dot(A, B.T[:, i])),
    "of elements of a product": (pt.dot(A, B.T)[i, j], (A[i] * B.T.T[j]).sum(-1)),
    "of rows of a batch of products": ((S @ T)[:, i], S[:, i] @ T),
    "of elements of a batch of products": ((S @ T)[:, i, j], (S[:, i] * T.mT[:, j]).sum(-1)),
    "of a new axis": (A[None][:, i], A[i][None]),
}
KEPT = {
    "that may be larger": pt.exp(M)[n],
    "that is larger": (A + B)[pt.constant(np.zeros(7, dtype="int64"))],
    "of lengths that must be compared": (M + pt.matrix("N"))[i],
    "of one row at places that may not be there": one[n],
    "of a fill at places that may not be there": pt.alloc(A, 3, 6, 4)[n],
    "of a fill whose length is compared": pt.alloc(M, 3, 6, 4)[:, i],
    "of a part of a batch of products": (S @ T)[1:, i],
    "of a product by a mask": pt.dot(A, B.T)[pt.vector("mask", dtype="bool")],
}
TAGS = ("canonicalize", "specialize")


@pytest.mark.parametrize("name", MOVED)
def test_what_is_selected_is_computed_alone(name):
    written, due = MOVED[name]
    assert equal_computations([rewrite_graph(written, TAGS)], [rewrite_graph(due, TAGS)])


@pytest.mark.parametrize("name", KEPT)
def test_a_selection_stays(name):
    found = rewrite_graph(KEPT[name], TAGS)
    assert type(found.owner.op) is type(KEPT[name].owner.op)


def test_the_numbers_stay(kernels_once):
    rng = np.random.default_rng(0)
    values = (
        rng.normal(size=(6, 4)),
        rng.normal(size=(6, 4)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(1, 4)),
        rng.normal(size=(3, 6, 4)),
        rng.normal(size=(1, 4, 6)),
    )
    values[0][2, 1], values[1][3] = np.nan, np.inf
    outputs = [written for written, _ in MOVED.values()]
    found = engine.function([A, B, M, one, S, T], outputs)(*values)
    expected = engine.function([A, B, M, one, S, T], outputs, mode=Mode(optimizer=None))(*values)
    for name, got, wanted in zip(MOVED, found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, err_msg=name)


def test_a_row_is_not_repeated_for_elements_of_a_product():
    row, places = pt.drow("row"), pt.constant(np.array([3, 1]))
    f = engine.function([M, row], pt.dot(M, row)[places, places])
    np.testing.assert_array_equal(f(np.ones((6, 1)), np.ones((1, 4))), np.ones(2))
    with pytest.raises(ValueError, match="1"):
        f(np.ones((6, 2)), np.ones((1, 4)))


def test_an_index_in_front_of_a_selection_moves_below_it_where_asked_for():
    T = pt.tensor("T", shape=(7, 5, 3))
    index = pt.constant(np.array([2, 0, 1]))
    tags = ("canonicalize", "local_subtensor_of_adv_subtensor")
    assert equal_computations([rewrite_graph(T[:, index][0], tags)], [T[0][index]])
    kept = T[index][0]
    assert equal_computations([rewrite_graph(kept, tags)], [kept])
