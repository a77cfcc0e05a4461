import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import Constant
from engine.graph.reference import evaluate
from engine.rewriting import rewrite_graph
from engine.tensor import Alloc

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def named():
    return pt.dscalar("a"), pt.dvector("v"), pt.dmatrix("x"), pt.lscalar("n")


def test_a_number_repeated_for_an_operation_is_repeated_by_it(rewritten, named):
    a, _, x, _ = named
    full = pt.alloc(a, x.shape[0], x.shape[1])
    assert set(rewritten([a, x], full * x).check_values(2.5, X, exact=True).ops) == {
        "DimShuffle{order=[x,x]}",
        "mul",
    }
    assert "Alloc" not in rewritten([a, x], full - pt.exp(x)).check_values(2.5, X, exact=True).ops
    assert "Alloc" not in rewritten([a, x], pt.where(x > 0, full, x)).check_values(2.5, X, exact=True).ops


def test_rows_and_turned_arrays_are_repeated_too(rewritten, named):
    _, v, x, _ = named
    assert "Alloc" not in rewritten([v, x], pt.alloc(v, *x.shape) + x).check_values(X[0], X, exact=True).ops
    turned = pt.alloc(v, 2, 3).T
    fixed = pt.tensor("fixed", dtype="float64", shape=(3, 2))
    graph = rewritten([v, fixed], turned + fixed).check_values(X[0], X.T, exact=True)
    assert "Alloc" not in graph.ops


@pytest.mark.parametrize("shape", [(2, 3), (2, 2), (4, 3), (1, 3), (2, 1)])
def test_constant_lengths_are_checked_still(rewritten, named, shape):
    a, _, x, _ = named
    graph = rewritten([a, x], pt.alloc(a, 2, 3) + x)
    assert "Alloc" not in graph.ops
    value = np.ones(shape)
    if shape == (2, 3):
        graph.check_values(1.5, value, exact=True)
        return
    for inputs, outputs in ((graph.inputs, graph.outputs), (graph.fgraph.inputs, graph.fgraph.outputs)):
        with pytest.raises((ValueError, AssertionError)):
            evaluate(inputs, outputs, [np.array(1.5), value])


@pytest.mark.parametrize("shape", [(2, 3), (2, 2), (4, 3), (1, 3)])
@pytest.mark.parametrize("number", [1.0, 2.5, -0.0, np.inf])
def test_a_constant_of_equal_elements_is_that_number_repeated(rewritten, named, number, shape):
    _, _, x, _ = named
    graph = rewritten(x, x * np.full((2, 3), number))
    constants = [v for node in graph.fgraph.apply_nodes for v in node.inputs if isinstance(v, Constant)]
    assert all(v.data.size == 1 for v in constants)
    value = np.ones(shape)
    if shape == (2, 3):
        graph.check_values(value, exact=True)
        return
    with pytest.raises((ValueError, AssertionError)):
        evaluate(graph.fgraph.inputs, graph.fgraph.outputs, [value])


@pytest.mark.parametrize("array", [np.array([0.0, -0.0, 0.0]), np.array([1.0, 2.0, 1.0]), np.ones(40)])
def test_other_constants_stay(rewritten, named, array):
    _, v, _, _ = named
    graph = rewritten(v, 2.5 + v + array)
    graph.check_values(np.arange(float(array.shape[-1])), exact=True)
    sizes = [v.data.size for node in graph.fgraph.apply_nodes for v in node.inputs if isinstance(v, Constant)]
    assert array.size in sizes


def test_what_is_computed_of_numbers_alone_is_computed_once(rewritten, named):
    a, _, _, n = named
    graph = rewritten(a, pt.exp(a) - np.ones((4, 3))).check_values(0.5)
    assert graph.ops[-1] == "Alloc"
    assert "expm1" in graph.ops
    for found in (pt.alloc(a, n, 3) * a, pt.where(a > 0, pt.alloc(a, n), 1.0), pt.alloc(a, n)[None] + a):
        repeated = rewritten([a, n], found).check_values(2.0, 4, exact=True)
        assert "Alloc" in repeated.ops[-2:]
        repeated.check_values(2.0, 0, exact=True)


def test_lengths_that_nothing_else_has_are_made_or_compared(rewritten, named):
    a, v, x, n = named
    for found in (pt.alloc(a, n) + v, pt.alloc(a, n, 3) * v, pt.alloc(v, n, 3) * a, pt.exp(pt.alloc(a, n))):
        graph = rewritten([a, v, x, n], found)
        graph.check_values(2.0, X[0], X, 3, exact=True)
        assert not {"Alloc", "SpecifyShape"}.isdisjoint(graph.ops)


def test_gradients_flow_to_the_value_that_is_repeated(named):
    a, _, x, _ = named
    slope = engine.grad(pt.sum(pt.alloc(a, x.shape[0], x.shape[1]) * x), a)
    assert slope.eval({x: X, a: 3.0}, on_unused_input="ignore") == X.sum()


def test_a_fill_of_an_input_becomes_an_alloc_that_checks_the_value(named):
    _, v, x, _ = named
    f = engine.function([x, v], pt.second(x, v))
    assert [str(node.op) for node in f.maker.fgraph.toposort()][-1] == "Alloc"
    np.testing.assert_array_equal(f(X, X[0]), [X[0], X[0]])
    for wrong in (X[0, :2], X[0, :1]):
        with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
            f(X, wrong)


def test_a_fill_of_slices_of_an_input_becomes_an_alloc_and_one_of_a_place_stays(named):
    _, v, x, n = named
    f = engine.function([x, v, n], pt.second(x[:n, ::2], v[:2]))
    assert [str(node.op) for node in f.maker.fgraph.toposort()][-1] == "Alloc"
    np.testing.assert_array_equal(f(X, X[0], 1), [X[0, :2]])
    with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
        f(X, X[0, :1], 2)
    of_place = engine.function([x, v, n], pt.second(x[n], v))
    assert "Alloc" not in [str(node.op) for node in of_place.maker.fgraph.toposort()]


def test_a_fill_of_a_computed_tensor_stays_in_the_loop_that_need_not_compute_it(named):
    _, v, x, _ = named
    f = engine.function([x, v], pt.second(pt.exp(pt.outer(v, v)), 1.0), on_unused_input="ignore")
    assert "Alloc" not in [str(node.op) for node in f.maker.fgraph.toposort()]
    np.testing.assert_array_equal(f(X, X[0]), np.ones((3, 3)))


def test_a_fill_of_a_reshaped_tensor_becomes_an_alloc_if_it_is_reshaped_anyway(named):
    v = pt.dvector("v")
    x = v.reshape((3, 4))
    f = engine.function([v], [pt.second(x, 2.0), x + 1])
    assert "Alloc" in [str(node.op) for node in f.maker.fgraph.toposort()]
    np.testing.assert_array_equal(f(np.ones(12))[0], np.full((3, 4), 2.0))
    with pytest.raises(ValueError, match="do not fill the shape"):
        f(np.ones(11))


@pytest.mark.parametrize(
    "build",
    [
        lambda x, n: pt.second(x.reshape((3, 4)), 2.0),
        lambda x, n: [pt.second(x.reshape((3, 4)), 2.0), pt.second(x.reshape((3, 4)), 3.0)],
        lambda x, n: [pt.second(x.reshape((n, 4)), 2.0), x.reshape((n, 4)) + 1],
    ],
)
def test_a_fill_of_a_reshaped_tensor_stays_where_it_makes_the_only_check(named, build):
    v, n = pt.dvector("v"), pt.lscalar("n")
    f = engine.function([v, n], build(v, n), on_unused_input="ignore")
    assert "Alloc" not in [str(node.op) for node in f.maker.fgraph.toposort()]
    with pytest.raises(ValueError, match="do not fill the shape"):
        f(np.ones(11), 3)


def test_lengths_that_one_operand_can_have_are_checked_once(rewritten, named):
    _, v, _, _ = named
    y = pt.dtensor3("y")
    graph = rewritten([v, y], pt.alloc(v, 2, 3).dimshuffle(0, 1, "x") + y)
    assert graph.check_values(X[0], np.ones((2, 3, 1)), exact=True).ops.count("SpecifyShape") == 1
    for shape in ((1, 3, 1), (2, 4, 1), (3, 3, 2)):
        with pytest.raises((ValueError, AssertionError)):
            evaluate(graph.fgraph.inputs, graph.fgraph.outputs, [X[0], np.ones(shape)])


def test_repetitions_beside_one_another_are_repeated_by_the_operation(rewritten):
    x, y = pt.tensor("x", dtype="float64", shape=(3,)), pt.tensor("y", dtype="float64", shape=(9,))
    graph = rewritten([x, y], x[None].repeat(9, axis=0) <= y[:, None].repeat(3, axis=1))
    graph.check_values(X[0], np.arange(9.0), exact=True)
    assert set(graph.ops) == {"DimShuffle{order=[x,0]}", "DimShuffle{order=[0,x]}", "le"}


@pytest.mark.parametrize(
    "build",
    [
        lambda v, n: pt.exp(pt.alloc(v, n, 3)),
        lambda v, n: pt.alloc(v, n, 3) * v[0] + v,
        lambda v, n: pt.switch(pt.alloc(v, n, 3) > 1, pt.alloc(v + 1, n, 3), v),
        lambda v, n: pt.sqr(pt.alloc(v[:, None], 3, n) - v[:, None]),
        lambda v, n: pt.alloc(v, n, 3).T / v[:, None],
        lambda v, n: v * np.full((2, 3), 2.5) + n,
    ],
)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_an_operation_is_computed_before_its_result_is_repeated(rewritten, named, build, count):
    _, v, _, n = named
    graph = rewritten([v, n], build(v, n)).check_values(
        np.array([0.5, np.nan, -0.0]), np.array(count), exact=True
    )
    behind = graph.ops[graph.ops.index("Alloc") + 1 :]
    assert all(op.startswith(("DimShuffle", "SpecifyShape")) for op in behind)


@pytest.mark.parametrize(("length", "count"), [(3, 2), (1, 4), (4, 3)])
def test_lengths_are_compared_behind_the_operation_too(named, length, count):
    _, v, _, n = named
    for mode in ("FAST_RUN", "NUMPY"):
        f = engine.function([v, n], pt.alloc(1.5, n) * v + v, mode=mode)
        assert f(np.ones(count), count).tolist() == [2.5] * count
        with pytest.raises(ValueError, match=r"length|shape"):
            f(np.ones(length), count)


def test_columns_and_rows_of_one_number_are_repeated_along_both_axes(rewritten, named):
    a, v, _, n = named
    column, row = np.full((6, 1), 0.5), pt.alloc(v, 1, 3)
    graph = rewritten([a, v, n], (column + row) * a + pt.alloc(a, n, 1))
    graph.check_values(np.array(2.0), X[1], np.array(6), exact=True)
    assert graph.evaluate(np.array(2.0), X[1], np.array(6)).shape == (6, 3)


def test_what_is_compiled_fast_repeats_what_it_says(named):
    _, v, x, _ = named
    sums = {
        mode: engine.function([v, x], pt.alloc(v, *x.shape) + x, mode=mode)
        for mode in ("FAST_RUN", "FAST_COMPILE")
    }
    for f in sums.values():
        np.testing.assert_array_equal(f(X[0], X), X[0] + X)
    kept = [any(node.op == Alloc() for node in f.maker.fgraph.apply_nodes) for f in sums.values()]
    assert kept == [False, True]


def test_specialized_forms_fill_the_shape_of_an_input_by_an_alloc(named):
    _, v, _, n = named
    for include, op in ((("canonicalize",), "second"), (("canonicalize", "specialize"), "Alloc")):
        assert str(rewrite_graph(pt.second(v, pt.cast(n, "float64")), include=include).owner.op) == op
