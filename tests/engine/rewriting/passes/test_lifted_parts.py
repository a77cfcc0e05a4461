"""Parts of results as results of parts."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph, equal_computations
from engine.rewriting import rewrite_graph
from engine.rewriting.walking import out2in

A, B = pt.tensor("A", shape=(5, 3)), pt.tensor("B", shape=(5, 3))
T = pt.tensor("T", shape=(7, 5, 3))
i = pt.lscalar("i")
softmax = pt.special.softmax

SAME = {
    "a row of a function": (pt.exp(A)[i], pt.exp(A[i])),
    "rows of a sum": ((A + B)[1:], A[1:] + B[1:]),
    "a row of a sum with a row": ((A + B[0])[i], A[i] + B[0]),
    "a column of a sum with a row": ((A + B[0])[:, i], A[:, i] + B[0][i]),
    "a row of row sums": (A.sum(1)[i], A[i].sum()),
    "a column of column sums": (T.max(1)[1:, i], T[1:, :, i].max(1)),
    "a product over two axes": (T.prod((0, 2))[i], T[:, i].prod((0, 1))),
    "a row of a softmax of rows": (softmax(A, 1)[i], softmax(A[i], 0)),
    "an element of a softmax of rows": (softmax(A, 1)[i, 1], softmax(A[i], 0)[1]),
    "a row of a transposed matrix": (A.T[i], A[:, i]),
    "a part of reordered axes": (T.transpose(2, 1, 0)[0, :1, 1:], T[1:, :1, 0].T),
    "a new axis that an integer drops": (A[None][0, i], A[i]),
    "a new axis behind": (pt.expand_dims(A, 1)[1:, :, 0], pt.expand_dims(A[1:, 0], 1)),
    "a row of joined columns": (pt.join(1, A, B)[i, 1:], pt.join(0, A[i], B[i])[1:]),
    "a row of what is repeated": (pt.alloc(A[0], 4, 3)[2], A[0]),
    "a slice of what is repeated": (pt.alloc(A[0], 4, 3)[1:, 2], pt.alloc(A[0][2], 3)),
    "a row of a product": (pt.dot(A, B.T)[i], pt.dot(A[i], B.T)),
    "an element of a product": (pt.dot(A, B.T)[i, 1], pt.dot(A[i], B[1])),
    "a slice of a vector that is made": (pt.stack([i, i + 1, i * 2])[1:], pt.stack([i + 1, i * 2])),
    "elements of a vector that is made": (pt.stack([i, i + 1, i * 2])[[2, 0]], pt.stack([i * 2, i])),
}


@pytest.mark.parametrize("name", SAME)
def test_a_part_is_computed_alone(name):
    written, due = SAME[name]
    options = {"include": ("fast_run",), "exclude": ("fusion", "inplace")}
    assert equal_computations([rewrite_graph(written, **options)], [rewrite_graph(due, **options)])


def test_the_numbers_stay(kernels_once):
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=(7, 5, 3)), 1]
    outputs = [written for written, _ in SAME.values()]
    found = engine.function([A, B, T, i], outputs)(*values)
    expected = engine.function([A, B, T, i], outputs, mode="NUMPY")(*values)
    for name, one, other in zip(SAME, found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize(
    "graph",
    [
        pt.log(softmax(A, 0))[1],
        softmax(A, 0)[1],
        (pt.dmatrix("x") + pt.dmatrix("y"))[1],
        A[None][1:],
        A[None][i],
        pt.join(1, pt.dmatrix("x"), pt.dmatrix("y"))[0],
        pt.alloc(1.0, 4, 3)[i],
        pt.alloc(1.0, 4, i)[:, :2],
        pt.alloc(pt.dvector("x"), 3)[:2],
        pt.alloc(pt.dvector("x"), 4, 3)[0, 1],
    ],
)
def test_what_would_lose_a_check_or_hide_a_pattern_stays(graph):
    found = rewrite_graph(graph, include=("local_subtensor_of_batch_dims",))
    for name in ("reduce", "softmax", "join", "dimshuffle", "alloc"):
        found = rewrite_graph(found, include=(f"local_subtensor_of_{name}",))
    assert equal_computations([found], [graph])


def test_a_result_that_is_needed_whole_is_computed_once():
    whole = pt.exp(A)
    found = rewrite_graph([whole, whole[1]], include=("canonicalize",))
    assert equal_computations(found, [whole, whole[1]])


def test_the_logarithm_of_a_softmax_stays_stable(kernels_once):
    x = pt.dvector("x")
    f = engine.function([x], pt.log(softmax(x))[0])
    assert f([-2000.0, 0.0]) == -2000.0


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_an_index_out_of_range_is_still_refused(mode, kernels_once):
    x, y = pt.tensor("x", shape=(1, None)), pt.dmatrix("y")
    for graph in (
        pt.exp(y)[i],
        y.sum(1)[i],
        (x + y)[i],
        pt.dot(y, y.T)[i],
        pt.alloc(y[0], 4, 3)[i],
        y.T[:, i],
    ):
        f = engine.function([x, y, i], graph, mode=mode, on_unused_input="ignore")
        with pytest.raises(IndexError):
            f(np.ones((1, 3)), np.ones((4, 3)), 7)


def test_a_deep_chain_is_lifted_through_in_one_pass():
    found = A
    for _ in range(2_000):
        found = pt.sin(found)
    assert rewrite_graph(found[0], include=("canonicalize",)).owner.op == pt.sin


@pytest.mark.parametrize("name", ["of_expand_dims", "of_squeeze", "of_transpose"])
def test_parts_of_moved_axes_have_pytensors_names(name):
    rewriter = getattr(engine.tensor.rewriting.subtensor_lift, f"local_subtensor_{name}")
    graph = FunctionGraph([A, i], [A.T[i]], clone=False)
    out2in(rewriter).rewrite(graph)
    assert equal_computations(graph.outputs, [A[:, i]])
    kept = rewrite_graph(A.T[i], exclude=(f"local_subtensor_{name}",))
    assert equal_computations([kept], [A.T[i]])
