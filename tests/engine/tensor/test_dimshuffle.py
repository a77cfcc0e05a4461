"""Axes reordered, added and dropped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.tensor as pt
from engine import verify_grad
from engine.graph.reference import evaluate
from engine.rewriting import rewrite_graph
from engine.tensor import DimShuffle


@st.composite
def shuffles(draw):
    """A shape, and an order of its axes without some of length 1 and with some new ones."""
    shape = draw(st.lists(st.integers(1, 3), max_size=4))
    kept = [axis for axis, n in enumerate(shape) if n != 1 or draw(st.booleans())]
    order = draw(st.permutations(kept + ["x"] * draw(st.integers(0, 2))))
    return tuple(shape), tuple(order)


def expected(value, order):
    kept = [a for a in order if a != "x"]
    dropped = tuple([a for a in range(value.ndim) if a not in kept])
    moved = np.transpose(value, [*kept, *dropped]).reshape([value.shape[a] for a in kept])
    return moved.reshape([1 if a == "x" else value.shape[a] for a in order])


@given(shuffles(), st.booleans())
def test_an_order_puts_each_axis_in_its_place(case, is_static):
    shape, order = case
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    x = pt.tensor("x", "int64", shape if is_static else (None,) * len(shape))
    found = pt.dimshuffle(x, order)
    np.testing.assert_array_equal(evaluate([x], [found], [value])[0], expected(value, order))
    assert found.type.shape == tuple([1 if a == "x" else x.type.shape[a] for a in order])


@given(shuffles(), st.data())
def test_one_order_after_another_is_one_node(case, data):
    shape, order = case
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    x = pt.tensor("x", "int64", (None,) * len(shape))
    first = pt.dimshuffle(x, order)
    again = data.draw(st.permutations(range(len(order))))
    second = pt.dimshuffle(first, again)
    np.testing.assert_array_equal(
        evaluate([x], [second], [value])[0], expected(expected(value, order), again)
    )
    assert second is x or second.owner.inputs == [x]


def test_the_order_that_is_there_already_builds_nothing():
    x = pt.dmatrix("x")
    assert x.dimshuffle(0, 1) is x
    assert x.T.T is x
    assert pt.dimshuffle(x.dimshuffle(0, "x", 1), (0, 2)) is x


def test_an_order_that_is_written_upon_another_is_an_op_until_it_is_rewritten():
    x = pt.dmatrix("x")
    turned = x.dimshuffle(1, "x", 0)
    again = turned.dimshuffle(2, 0, 1)
    assert again.owner.inputs == [turned]
    (found,) = rewrite_graph([again])
    assert found.owner.inputs == [x]
    assert found.owner.op.new_order == (0, 1, "x")
    (same,) = rewrite_graph([turned.dimshuffle(2, 0)])
    assert same is x


def test_negative_axes_count_from_the_end():
    assert pt.dimshuffle(pt.dmatrix("x"), (-1, "x", -2)).owner.op.new_order == (1, "x", 0)


def test_an_axis_known_not_to_have_length_one_is_not_dropped():
    with pytest.raises(TypeError, match="axis 0 is dropped and has length 2"):
        pt.dimshuffle(pt.tensor("x", "float64", (2, 3)), (1,))


def test_an_axis_found_not_to_have_length_one_is_not_dropped():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="axis 0 is dropped and must have length 1, not 2"):
        evaluate([x], [x.dimshuffle(1)], [np.ones((2, 3))])


@pytest.mark.parametrize("order", [(0, 0), (2,), (0, 1, -3)])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(ValueError, match="may not appear twice"):
        pt.dimshuffle(pt.dmatrix("x"), order)


def test_another_rank_is_refused():
    with pytest.raises(TypeError, match="it takes 2 dimensions"):
        DimShuffle(2, (1, 0))(pt.dvector("x"))


def test_the_output_is_a_view():
    assert DimShuffle.view_map == {0: [0]}


@pytest.mark.parametrize("order", [(1, 0), ("x", 0, "x", 1), (1, "x", 0), (0, 1)])
def test_gradients(order):
    verify_grad(lambda x: pt.dimshuffle(x, order), [np.random.default_rng(0).normal(size=(2, 3))])


def test_gradients_where_an_axis_is_dropped():
    verify_grad(lambda x: pt.dimshuffle(x, (2, 0)), [np.random.default_rng(0).normal(size=(2, 1, 3))])


def test_transpose_squeeze_and_their_refusals():
    x, value = pt.tensor3("x"), np.arange(6.0).reshape(2, 1, 3)
    found = evaluate(
        [x], [pt.transpose(x), pt.transpose(x, (2, 0, -2)), pt.squeeze(x, 1), pt.squeeze(x, (-2,))], [value]
    )
    for f, e in zip(found, [value.T, value.transpose(2, 0, 1), value[:, 0], value[:, 0]], strict=True):
        np.testing.assert_array_equal(f, e)
    assert pt.squeeze(pt.tensor("y", "float64", (1, None, 1))).type.shape == (None,)
    with pytest.raises(ValueError, match="each axis must occur once"):
        pt.transpose(x, (0, 1))
    with pytest.raises(ValueError, match="axis 3 is out of bounds"):
        pt.squeeze(x, 3)
