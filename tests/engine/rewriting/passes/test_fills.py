import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.mode import OPT_FAST_RUN, Mode
from engine.graph import FunctionGraph
from engine.graph.reference import evaluate
from engine.inner import Composite
from engine.rewriting.passes.fills import topological_second_sink
from engine.tensor import Elemwise
from engine.tensor.checks import assert_op

X = np.arange(6.0).reshape(2, 3)


def test_a_fill_with_what_has_the_shape_already_is_dropped(rewritten):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    assert rewritten([x, y], pt.second(x, y)).check_values(X, X + 1, exact=True).ops == []


def test_a_fill_meets_its_consumer_where_another_operand_has_the_shape(rewritten):
    x, c = pt.dmatrix("x"), pt.dscalar("c")
    graph = rewritten([x, c], pt.second(x, c) * x).check_values(X, np.array(3.0), exact=True)
    assert graph.ops == ["DimShuffle{order=[x,x]}", "mul"]


def test_a_fill_moves_outward_where_nothing_else_has_the_shape(rewritten):
    x, c = pt.dmatrix("x"), pt.dscalar("c")
    graph = rewritten([x, c], pt.exp(pt.second(x, c))).check_values(X, np.array(3.0), exact=True)
    assert graph.ops == ["DimShuffle{order=[x,x]}", "exp", "second"]


def test_fills_of_different_axes_both_stay(rewritten):
    row, col = pt.drow("row"), pt.dcol("col")
    total = pt.second(row, np.float64(2.0)) + pt.second(col, np.float64(3.0))
    graph = rewritten([row, col], total).check_values(X[:1], X[:, :1], exact=True)
    assert graph.ops.count("second") == 2


def test_what_only_gives_a_shape_is_not_computed(rewritten):
    x = pt.dvector("x")
    graph = rewritten(x, pt.zeros_like(pt.exp(x) + 1)).check_values(X[0], exact=True)
    assert graph.ops == ["second"]


@pytest.mark.parametrize("mode", ["FAST_RUN", Mode("py", OPT_FAST_RUN)])
def test_a_check_whose_value_only_gives_a_shape_is_not_made(mode):
    x, c = pt.dvector("x"), pt.bscalar("c")
    f = engine.function([x, c], engine.grad(pt.sum(assert_op(x, c)), x), mode=mode)
    assert f(X[0], 0).tolist() == [1.0, 1.0, 1.0]


def test_a_fill_is_kept_where_its_shape_is_known_better_than_the_value(rewritten):
    x, y = pt.tensor("x", dtype="float64", shape=(3,)), pt.dvector("y")
    assert rewritten([x, y], pt.second(x, y)).check_values(X[0], X[1]).ops == ["second"]


@pytest.mark.parametrize(
    "build",
    [
        lambda v, i: pt.zeros_like(v[i]),
        lambda v, i: pt.ones_like(pt.exp(v[i]) * v[0]),
        lambda v, i: pt.fill(v[i], 3.0) * v[0] + v[1],
        lambda v, i: pt.zeros_like(v[i]) + pt.zeros_like(v[-1] * v[i]),
        lambda v, i: engine.grad(v[i] * 3, v),
        lambda v, i: pt.zeros_like(v.dimshuffle("x", 0)[0, i])[None] + v,
    ],
)
def test_an_element_of_which_only_the_shape_is_asked_for_is_refused_where_it_is_not_there(
    build, kernels_once
):
    v, i = pt.dvector("v"), pt.lscalar("i")
    for index in (7, -4):
        for index_or_number, more in ((i, (index,)), (index, ())):
            for mode in ("FAST_RUN", "NUMPY"):
                f = engine.function([v, i][: 1 + len(more)], build(v, index_or_number), mode=mode)
                f(np.ones(8), *more)
                with pytest.raises(IndexError, match="out of bounds"):
                    f(np.ones(3), *more)


def test_an_element_that_is_there_or_is_read_anyway_costs_no_fill(rewritten):
    v, w = pt.tensor("v", shape=(8,)), pt.dvector("w")
    assert rewritten(v, pt.zeros_like(v[7])).check_values(np.ones(8)).ops == []
    assert "second" not in rewritten(w, pt.ones_like(w[1]) * w[1] * 2).check_values(X[0]).ops


def test_a_fill_moves_out_of_operations_with_several_results():
    s = engine.scalar.float64("s")
    both = Elemwise(Composite([s], [s + 1, s + 2]))
    x, z = pt.tensor("x", shape=(1,)), pt.dvector("z")
    fgraph = FunctionGraph([x, z], [pt.add(*both(pt.exp(pt.full_like(z, x))))])
    topological_second_sink.rewrite(fgraph)
    assert [str(node.op) for node in fgraph.toposort()].count("second") == 1
    assert fgraph.outputs[0].owner.op == pt.second
    (found,) = evaluate(fgraph.inputs, fgraph.outputs, [np.array([0.0]), np.zeros(3)])
    assert found.tolist() == [5.0] * 3


def test_lengths_are_compared_where_a_mode_leaves_out_what_trusts_them():
    x, y = pt.dvector("x"), pt.dvector("y")
    mode = engine.compile.mode.get_default_mode()
    for graph in (x * y / y, pt.second(x, y), pt.switch(True, x, y)):
        trusting, comparing = (
            engine.function([x, y], graph, mode=each) for each in (mode, mode.excluding("shape_unsafe"))
        )
        np.testing.assert_array_equal(comparing(X[0], X[0] + 1), trusting(X[0], X[0] + 1))
        with pytest.raises(ValueError, match="length"):
            comparing(X[0], np.ones(2))
