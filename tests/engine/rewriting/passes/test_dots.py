import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import ArgumentError
from engine.rewriting import rewrite_graph
from engine.tensor.blockwise import Blockwise, vectorize_graph
from engine.tensor.products import Dot

X = np.arange(3.0) - 0.5


@pytest.mark.parametrize(
    ("left", "right"), [((1,), (1,)), ((None, 1), (1,)), ((1,), (1, None)), ((None, 1), (1, None))]
)
def test_a_product_over_one_element_is_elementwise(rewritten, dtype, left, right):
    x, y = pt.tensor("x", dtype=dtype, shape=left), pt.tensor("y", dtype="float64", shape=right)
    values = [X.reshape(-1, 1)] if len(left) == 2 else [X[:1]]
    values.append(X.reshape(1, -1) if len(right) == 2 else X[1:2])
    graph = rewritten([x, y], pt.dot(x, y)).check_values(values[0].astype(dtype), values[1])
    assert "Dot" not in graph.ops
    assert "mul" in graph.ops


@pytest.mark.parametrize("batch", [(), (2, 1, 5)])
@pytest.mark.parametrize("known", [(1, 1), (1, None), (None, 1)])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_one_known_length_of_two_is_enough_and_the_other_is_checked(batch, known, left, right):
    x_shape, y_shape = (*batch, *[3] * left, 1), (*batch[:1], *[7, 1] * bool(batch), 1, *[4] * right)
    last, first = len(x_shape) - 1, len(y_shape) - 1 - right
    types = [list(x_shape), list(y_shape)]
    types[0][last], types[1][first] = known
    x, y = (pt.tensor(name, dtype="float64", shape=shape) for name, shape in zip("xy", types, strict=True))
    core = [pt.tensor(dtype="float64", shape=v.type.shape[len(batch) :]) for v in (x, y)]
    product = vectorize_graph(pt.dot(*core), dict(zip(core, (x, y), strict=True)))
    function = engine.function([x, y], product)
    assert not any(isinstance(n.op, Dot | Blockwise) for n in function.maker.fgraph.apply_nodes)
    values = [np.random.default_rng(3).normal(size=shape) for shape in (x_shape, y_shape)]
    found = function(*values)
    flat = [
        v.reshape(*v.shape[: len(batch)], *core) for v, core in zip(values, _cores(left, right), strict=True)
    ]
    due = (flat[0] * flat[1]).reshape(found.shape)
    np.testing.assert_allclose(found, due)
    for position, (length, axis) in enumerate(zip(known, (last, first), strict=True)):
        wrong = [np.concatenate([v] * 2, axis) if n == position else v for n, v in enumerate(values)]
        with pytest.raises((AssertionError, ArgumentError) if length is None else ArgumentError):
            function(*wrong)


def _cores(left, right):
    """Return the shapes of the operands at one place of the batch as those of elementwise ones."""
    return (3 if left else 1, 1), (1, 4 if right else 1)


def test_a_product_over_unknown_lengths_stays(rewritten):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    assert rewritten([x, y], pt.dot(x, y)).check_values(X[:, None], X[None]).ops == ["Dot"]


def test_the_canonical_form_of_a_column_times_a_row_is_a_product_of_matrices():
    x, y = pt.tensor("x", shape=(3, 1)), pt.tensor("y", shape=(1, 4))
    outer = pt.dot(x, y)
    assert rewrite_graph(outer) is outer
    assert isinstance(rewrite_graph(outer, include=("specialize",)).owner.op, pt.elemwise.Elemwise)
    batch = vectorize_graph(outer, {x: pt.tensor(shape=(2, 3, 1))})
    assert isinstance(rewrite_graph(batch).owner.op, pt.elemwise.Elemwise)
