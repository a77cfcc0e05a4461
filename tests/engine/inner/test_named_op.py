"""Ops that name what a graph computes: their properties, their values, and the same program as without them."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph.replace import vectorize_graph
from engine.inner.named_op import NamedOp

M, T = np.arange(12.0).reshape(3, 4), np.arange(24.0).reshape(2, 3, 4)
OPS = {
    "diagonal": (pt.diagonal, pt.ExtractDiag(1, 0, 1), [M, 1], lambda x, k: np.diagonal(x, k)),
    "alloc_diag": (pt.alloc_diag, pt.AllocDiag(-1), [M[0], -1], lambda x, k: np.diag(x, k)),
    "repeat": (
        lambda x: pt.repeat(x, pt.as_tensor([2, 0, 1, 3]), 1),
        pt.Repeat(1),
        [M],
        lambda x: np.repeat(x, [2, 0, 1, 3], 1),
    ),
    "split": (
        lambda x: pt.split(x, [1, 3], axis=-1)[1],
        pt.Split(2, 1),
        [M],
        lambda x: np.split(x, [1], axis=-1)[1],
    ),
    "join_dims": (lambda x: pt.join_dims(x, 1), pt.JoinDims(1, 2), [T], lambda x: x.reshape(2, 12)),
    "split_dims": (
        lambda x: pt.split_dims(x, (2, 2), 1),
        pt.SplitDims(1),
        [M],
        lambda x: x.reshape(3, 2, 2),
    ),
}


@pytest.mark.parametrize("name", OPS)
def test_a_function_names_its_op_and_computes_what_numpy_does(name):
    function, op, (value, *options), expected = OPS[name]
    x = pt.tensor(dtype="float64", shape=value.shape)
    out = function(x, *options)
    made = out.owner.op
    assert type(made) is type(op)
    assert all(
        getattr(made, each) == getattr(op, each)
        for each in op.__props__[len(NamedOp.__props__) :]
        if each != "known"
    )
    f = engine.function([x], [out, engine.grad(out.sum(), x)])
    found, slope = f(value)
    exact = expected(value, *options)
    np.testing.assert_array_equal(found, exact)
    assert out.type.shape == (exact.shape if name != "repeat" else (3, None))
    assert slope.sum() == (value.size if name == "alloc_diag" else exact.size)
    assert not any(isinstance(node.op, NamedOp) for node in f.maker.fgraph.apply_nodes)


def test_an_op_is_applied_as_pytensors_is():
    x, times, sizes = pt.dmatrix(), pt.ivector(), pt.lvector()
    outs = [pt.Repeat(axis=0)(x, times), *pt.Split(2, axis=1)(x, sizes), pt.ExtractDiag(offset=-1)(x)]
    found = engine.function([x, times, sizes], outs)(M, np.int32([0, 2, 1]), [3, 1])
    for each, expected in zip(
        found,
        [np.repeat(M, [0, 2, 1], 0), M[:, :3], M[:, 3:], np.diagonal(M, -1)],
        strict=True,
    ):
        np.testing.assert_array_equal(each, expected)


def test_batches_are_those_of_the_graph():
    x, batch = pt.dmatrix(), pt.dtensor3()
    out = vectorize_graph(pt.diagonal(x), {x: batch})
    np.testing.assert_array_equal(out.eval({batch: T}), np.diagonal(T, axis1=1, axis2=2))


def test_diagonals_are_filled():
    a, value, k = pt.dmatrix(), pt.dscalar(), pt.iscalar()
    outs = [pt.fill_diagonal(a, value), pt.fill_diagonal_offset(a, value, k)]
    assert [type(out.owner.op) for out in outs] == [pt.FillDiagonal, pt.FillDiagonalOffset]
    whole, above = engine.function([a, value, k], outs)(M, 7.0, 2)
    np.testing.assert_array_equal(whole, np.where(np.eye(3, 4), 7.0, M))
    np.testing.assert_array_equal(above, np.where(np.eye(3, 4, 2), 7.0, M))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pt.Split(2, -1), ValueError, "axis must be non-negative"),
        (lambda: pt.Split(2, 0.5), TypeError, "whole number"),
        (lambda: pt.Split(2, 0)(pt.dvector(), [1, 2, 3]), ValueError, "3 lengths were given"),
        (lambda: pt.JoinDims(0, 3)(pt.dmatrix()), ValueError, "has only 2 dimensions"),
        (lambda: pt.diag(pt.dtensor3()), ValueError, "Input must be 1- or 2-d"),
        (lambda: pt.fill_diagonal(pt.dvector(), 1.0), TypeError, "2 or more dimensions"),
        (lambda: pt.Repeat(0)(pt.dvector(), pt.vector(dtype="uint64")), TypeError, "below uint64"),
    ],
)
def test_what_does_not_fit_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_vector_of_lengths_that_is_too_long_is_refused_when_it_runs():
    x, sizes = pt.dvector(), pt.lvector()
    f = engine.function([x, sizes], pt.split(x, sizes, n_splits=2))
    with pytest.raises(ValueError, match="Reshap"):
        f(np.zeros(3), [1, 1, 1])
