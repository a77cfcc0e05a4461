import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

X = np.arange(6.0).reshape(2, 3)


def test_reordering_axes_twice_is_reordering_them_once(rewritten):
    x = pt.dmatrix("x")
    once = pt.DimShuffle(2, (1, 0)).make_node(x).outputs[0]
    twice = pt.DimShuffle(2, (1, "x", 0)).make_node(once).outputs[0]
    back = pt.DimShuffle(2, (1, 0)).make_node(once).outputs[0]
    assert rewritten(x, twice).check_values(X).ops == ["DimShuffle{order=[0,x,1]}"]
    assert rewritten(x, back).check_values(X).ops == []


def test_reordering_that_leaves_every_axis_in_place_is_dropped(rewritten):
    x = pt.dmatrix("x")
    assert rewritten(x, pt.DimShuffle(2, (0, 1)).make_node(x).outputs[0]).check_values(X).ops == []


def test_a_reordering_that_changes_something_stays(rewritten):
    x = pt.dmatrix("x")
    assert rewritten(x, x.T).check_values(X).ops == ["DimShuffle{order=[1,0]}"]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.reshape(x, (pt.shape_i(x, 0), pt.shape_i(x, 1))),
        lambda x: pt.reshape(x, (pt.shape_i(x, 0), -1)),
        lambda x: pt.reshape(pt.reshape(x, (-1,)), (pt.shape_i(x, 0), pt.shape_i(x, 1))),
    ],
)
def test_a_reshape_to_the_shape_that_is_there_is_dropped(rewritten, build):
    x = pt.dmatrix("x")
    assert rewritten(x, build(x)).check_values(X).ops == []


def test_reshapes_that_follow_one_another_are_one(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    graph = rewritten([x, n], pt.reshape(pt.reshape(x, (-1,)), (n, 2))).check_values(X, np.array(3))
    assert graph.ops == ["Reshape{ndim=2}"]


def test_a_reshape_to_unknown_lengths_stays(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    graph = rewritten([x, n], pt.reshape(x, (n, pt.shape_i(x, 1)))).check_values(X, np.array(2))
    assert "Reshape{ndim=2}" in graph.ops


def test_a_vector_reshaped_to_a_length_stays_because_the_length_may_be_wrong(rewritten):
    x, n = pt.dvector("x"), pt.lscalar("n")
    assert rewritten([x, n], pt.reshape(x, (n,))).ops == ["Reshape{ndim=1}"]


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: pt.exp(x) + y,
        lambda x, y: (pt.exp(x).T + pt.exp(y).T).T,
        lambda x, y: pt.sum(pt.exp(x).dimshuffle(0, "x", 1), axis=1),
        lambda x, y: pt.dot(pt.exp(x), pt.exp(y).T),
        lambda x, y: pt.exp(x)[np.array([1, 0, 1])],
        lambda x, y: pt.reshape(pt.exp(x), (pt.shape_i(y, 0) + 1, 2)),
        lambda x, y: pt.sqr(pt.max(pt.exp(x), axis=0, keepdims=True) + y),
    ],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_length_keeps_no_computation_alive(rewritten, build, axis):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    graph = rewritten([x, y], pt.shape_i(build(x, y), axis)).check_values(X, X + 1)
    assert set(graph.ops) <= {"Shape_i{i=0}", "Shape_i{i=1}", "add"}
    assert len(graph.ops) <= 2


def test_a_length_that_the_type_knows_is_a_constant(rewritten):
    x, y = pt.tensor("x", dtype="float64", shape=(2, None)), pt.dmatrix("y")
    assert rewritten([x, y], pt.shape_i(pt.exp(y) + x, 0) * 1).check_values(X, X).ops == []


def test_the_length_left_to_a_reshape_stays(rewritten):
    x = pt.dmatrix("x")
    graph = rewritten(x, pt.shape_i(pt.reshape(x, (3, -1)), 1)).check_values(X)
    assert graph.ops == ["Reshape{ndim=2}", "Shape_i{i=1}"]


def test_a_length_of_a_deep_chain_is_found_at_once(rewritten):
    x = y = pt.dvector("x")
    for _ in range(3000):
        y = pt.sin(y)
    graph = rewritten(x, pt.shape_i(y, 0))
    assert graph.applied == {"local_shape_i": 1}
    assert graph.ops == ["Shape_i{i=0}"]


def test_all_of_a_tensor_is_the_tensor(rewritten):
    x = pt.dmatrix("x")
    assert rewritten(x, x[...]).check_values(X).ops == []


@pytest.mark.parametrize(
    "build",
    [lambda x: pt.exp(x)[1:], lambda x: pt.exp(x)[0, None], lambda x: pt.IncSubtensor(["i"])(x.T, 1, 0).T],
)
def test_the_length_of_an_axis_that_is_not_indexed_is_that_of_what_is_indexed(rewritten, build):
    x = pt.dmatrix("x")
    assert rewritten(x, pt.shape_i(build(x), 1)).check_values(X).ops == ["Shape_i{i=1}"]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.exp(x).shape[1],
        lambda x: pt.join(0, x, pt.exp(x)).shape[-1],
        lambda x: pt.zeros(x.shape).shape[1],
        lambda x: pt.alloc(x[0], 7, x.shape[1]).shape[1],
    ],
)
def test_a_shape_keeps_no_computation_alive(rewritten, build):
    x = pt.dmatrix("x")
    assert rewritten(x, build(x)).check_values(X).ops == ["Shape_i{i=1}"]


def test_the_length_of_joined_tensors_is_the_sum_of_theirs(rewritten):
    x = pt.dmatrix("x")
    assert rewritten(x, pt.join(0, pt.exp(x), x).shape[0]).check_values(X).ops == ["Shape_i{i=0}", "add"]


@pytest.mark.parametrize(
    ("build", "order"),
    [
        (lambda x: pt.reshape(x, (-1, 1)), "0,x"),
        (lambda x: pt.reshape(x, (1, pt.shape_i(x, 0), 1)), "x,0,x"),
        (lambda x: pt.reshape(x, (1, -1)), "x,0"),
    ],
)
def test_a_reshape_that_only_adds_axes_of_length_1_is_a_dimshuffle(rewritten, build, order):
    x = pt.dvector("x")
    assert rewritten(x, build(x)).check_values(X[0]).ops == [f"DimShuffle{{order=[{order}]}}"]


def test_a_reshape_that_drops_axes_known_to_have_length_1_is_a_dimshuffle(rewritten):
    x = pt.tensor("x", shape=(None, 1, 3))
    graph = rewritten(x, pt.reshape(x, (pt.shape_i(x, 0), 3))).check_values(X[:, None])
    assert graph.ops == ["DimShuffle{order=[0,2]}"]


@pytest.mark.parametrize("shape", [(1, -1), (-1, 1), (2, 1, -1)])
def test_a_reshape_of_axes_that_may_have_length_1_stays(rewritten, shape):
    x = pt.dmatrix("x")
    value = X[:1] if shape[0] == 1 else X[:, :1] if shape[0] == -1 else X
    assert rewritten(x, pt.reshape(x, shape)).check_values(value).ops[-1].startswith("Reshape")


def test_axes_that_stay_or_are_new_in_place_of_one_element_are_no_reordering():
    column, row = pt.col("column"), pt.row("row")
    assert rewrite_graph(column.dimshuffle(0, "x")) is column
    kept = row.dimshuffle("x", 0, 1)
    assert equal_computations([rewrite_graph(kept)], [kept])
    values = [np.ones((3, 1)), np.arange(3.0).reshape(1, 3)]
    graphs = [column.dimshuffle(0, "x"), row.dimshuffle(1, "x"), row.dimshuffle("x", 1)]
    found = engine.function([column, row], graphs)(*values)
    assert [each.shape for each in found] == [(3, 1), (3, 1), (1, 3)]


def test_a_number_is_reshaped_by_new_axes():
    x = pt.scalar("x")
    assert equal_computations([rewrite_graph(x.reshape((1, -1)))], [x[None, None]])
    assert engine.function([x], x.reshape((1, -1)))(2.0).tolist() == [[2.0]]


def test_axes_of_one_element_in_front_of_a_fill_are_new_axes():
    x, n = pt.vector("x"), pt.lscalar("n")
    assert equal_computations([rewrite_graph(pt.alloc(x, 1, n, 3))], [pt.alloc(x, n, 3)[None]])
    assert equal_computations([rewrite_graph(pt.alloc(1.5, 1, 1))], [pt.constant(np.full((1, 1), 1.5))])
    f = engine.function([x, n], pt.alloc(x, 1, n, 3))
    assert f([1.0, 2.0, 3.0], 2).shape == (1, 2, 3)
    with pytest.raises(ValueError):
        f([1.0, 2.0], 2)


def test_the_only_element_of_an_axis_is_the_rest():
    row = pt.row("row")
    assert equal_computations([rewrite_graph(row[0])], [row.dimshuffle(1)])
    assert equal_computations([rewrite_graph(row[-1, 1:])], [row[:, 1:].dimshuffle(1)])
    with pytest.raises(IndexError):
        engine.function([row], row[1])(np.ones((1, 3)))


def test_a_function_of_an_input_is_computed_after_a_reshape(rewritten):
    x = pt.dmatrix("x")
    value = np.arange(6.0).reshape(2, 3)
    graph = rewritten(x, pt.reshape(pt.log(pt.exp(-x)), (3, 2))).check_values(value)
    assert graph.ops == ["Reshape{ndim=2}", "neg"]
    f = engine.function([x], pt.exp(x).reshape((3, 2)) + 1.0)
    assert [str(node.op).partition("{")[0] for node in f.maker.fgraph.toposort()] == ["Reshape", "Composite"]
    with pytest.raises(ValueError, match="do not fill the shape"):
        f(value[:1])


def test_a_function_that_is_used_in_both_shapes_is_computed_once(rewritten):
    x = pt.dmatrix("x")
    value = pt.exp(x)
    assert rewritten(x, [value.reshape((3, 2)), value]).ops.count("exp") == 1


def test_a_function_of_a_computed_tensor_stays_in_its_loop(rewritten):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    assert rewritten([x, y], pt.exp(x * y).reshape((3, 2))).ops[-1] == "Reshape{ndim=2}"


def test_a_reshape_to_ones_drops_all_axes_and_checks_them(rewritten):
    x = pt.dmatrix("x")
    graph = rewritten(x, pt.reshape(x, (1, 1, 1))).check_values(X[:1, :1], exact=True)
    assert graph.ops == ["DimShuffle{order=[x,x,x]}"]
    f = engine.function([x], pt.reshape(x, (1, 1, 1)))
    for wrong in (X, X[:1], X[:, :1], X[:0]):
        with pytest.raises(ValueError, match="length"):
            f(wrong)


def test_a_reshape_that_fits_one_length_alone_is_a_check_of_it(rewritten):
    x = pt.tensor("x", dtype="float64", shape=(2, None))
    graph = rewritten(x, pt.reshape(x, (2, 3))).check_values(X, exact=True)
    assert graph.ops == ["SpecifyShape"]
    with pytest.raises(ValueError, match=r"Got shape .2, 2., expected .None, 3."):
        engine.function([x], pt.reshape(x, (2, 3)))(X[:, :2])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_a_reshape_of_what_may_be_empty_stays(rewritten, shape):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    empty = np.zeros((0, 5))
    graph = rewritten(x, pt.reshape(x, (x.shape[0], 3))).check_values(empty, exact=True)
    assert "Reshape{ndim=2}" in graph.ops
    known = pt.tensor("known", dtype="float64", shape=(2, None))
    f = engine.function([known, n], pt.reshape(known, (2, n)))
    assert f(X, -1).shape == (2, 3)  # n may be -1, so it is no length


def test_a_value_that_has_the_lengths_already_is_not_copied(rewritten):
    x = pt.dmatrix("x")
    assert rewritten(x, pt.alloc(x, *x.shape)).check_values(X, exact=True).ops == []
    known = pt.tensor("known", dtype="float64", shape=(2, None))
    assert rewritten(known, pt.alloc(known, 2, known.shape[1])).check_values(X, exact=True).ops == []


def test_a_value_that_is_repeated_along_no_axis_is_checked_and_not_copied(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    graph = rewritten([x, n], pt.alloc(x, n, 3)).check_values(X, np.array(2), exact=True)
    assert graph.ops == ["SpecifyShape"]
    f = engine.function([x, n], pt.alloc(x, n, 3))
    np.testing.assert_array_equal(f(X, 2), X)
    for wrong, count in ((X, 3), (X[:1], 2), (X[:, :1], 2), (X, -1)):
        with pytest.raises(ValueError, match="Got shape"):
            f(wrong, count)


def test_a_value_that_may_be_repeated_is_repeated(rewritten):
    row, n = pt.drow("row"), pt.lscalar("n")
    graph = rewritten([row, n], pt.alloc(row, n, 3)).check_values(X[:1], np.array(4), exact=True)
    assert graph.ops == ["Alloc"]


def test_an_index_of_no_axis_stays_if_the_rewrite_that_drops_it_is_left_out():
    x = pt.dscalar("x")
    whole = pt.Subtensor(())(x)
    assert rewrite_graph(whole) is x
    assert equal_computations([rewrite_graph(whole, exclude=("local_useless_subtensor",))], [whole])
