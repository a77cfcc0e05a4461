"""Loops of numbers: what they compute element by element, when they end, what is refused; fused and compiled."""

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import scalar
from engine.errors import NullGradientError
from engine.graph import FrozenFunctionGraph
from engine.graph.reference import evaluate
from engine.inner import Composite, HasInnerGraph, ScalarLoop
from engine.lowering.statements import ScalarRepeat, scalar_statements
from engine.scalar import apply_scalar_op, scalar_type
from engine.tensor import Elemwise


def scalars(*dtypes):
    return [scalar_type(dtype).make_variable() for dtype in dtypes]


def series(tolerance=None, dtype="float64"):
    """exp(x) by its power series: states are the last term, the sum and its number; x does not change."""
    term, total, count, x = scalars(dtype, dtype, dtype, dtype)
    following = apply_scalar_op(scalar.add, count, 1.0)
    new = apply_scalar_op(scalar.true_div, apply_scalar_op(scalar.mul, term, x), following)
    updates = [new, apply_scalar_op(scalar.add, total, new), following]
    until = None
    if tolerance is not None:
        until = apply_scalar_op(scalar.lt, apply_scalar_op(scalar.abs, new), tolerance)
    return ScalarLoop([term, total, count], updates, [x], until)


def applied(op, n, x):
    return Elemwise(op)(n, 1.0, 1.0, 0.0, x)


STEPS, X = np.array([100, 3, 0, -2]), np.array([0.5, 2.0, 3.0, 4.0])
SUMS = np.array([np.exp(0.5), 1 + 2 + 2 + 8 / 6, 1, 1])


def test_it_is_one_frozen_graph_and_equal_graphs_make_equal_loops():
    op = series(1e-17)
    assert isinstance(op, HasInnerGraph)
    assert isinstance(op.fgraph, FrozenFunctionGraph)
    assert (op.nin, op.nout) == (5, 4)
    assert op == series(1e-17)
    assert hash(op) == hash(series(1e-17))
    assert op != series(1e-16)
    assert series() != op
    assert op.clone() is op
    assert pickle.loads(pickle.dumps(op)) == op


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_every_element_takes_its_own_number_of_steps(mode, kernels_once):
    n, x = pt.lvector("n"), pt.dvector("x")
    term, total, count = engine.function([n, x], applied(series(), n, x), mode=mode)(STEPS, X)
    np.testing.assert_allclose(total, SUMS)
    assert count.tolist() == [100, 3, 0, 0]
    np.testing.assert_allclose(term[1:], [8 / 6, 1, 1])


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_it_ends_with_the_step_that_makes_until_true_and_says_so(mode, kernels_once):
    n, x = pt.lvector("n"), pt.dvector("x")
    _, total, count, done = engine.function([n, x], applied(series(1e-3), n, x), mode=mode)(STEPS, X)
    assert done.tolist() == [True, False, True, True]
    assert done.dtype == "bool"
    assert count.tolist() == [5, 3, 0, 0]
    np.testing.assert_allclose(total, SUMS, rtol=1e-3)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_states_are_handed_on_all_at_once(mode, kernels_once):
    first, second = scalars("int64", "int64")
    op = ScalarLoop([first, second], [second, apply_scalar_op(scalar.add, first, second)])
    n = pt.ivector("n")
    outputs = Elemwise(op)(n, np.int64(0), np.int64(1))
    assert engine.function([n], outputs[0], mode=mode)(np.arange(8, dtype="i4")).tolist() == [
        0,
        1,
        1,
        2,
        3,
        5,
        8,
        13,
    ]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_loops_nest_and_fuse_with_what_is_around_them(mode, kernels_once):
    state, x = scalars("float64", "float64")
    inner = series(1e-17).make_node(100, 1.0, 1.0, 0.0, x).outputs[1]
    outer = ScalarLoop([state], [apply_scalar_op(scalar.add, state, inner)], [x])
    v = pt.dmatrix("v")
    output = pt.sum(pt.log(Elemwise(outer)(3, 0.0, v * 2) / 3), axis=1)
    value = np.array([[0.1, 0.2], [0.3, 0.5]])
    np.testing.assert_allclose(engine.function([v], output, mode=mode)(value), 2 * value.sum(1))


def test_arguments_are_cast_and_broadcast():
    n, x = pt.lvector("n"), pt.lrow("x")
    outputs = Elemwise(series(dtype="float32"))(n.dimshuffle(0, "x"), 1.0, 1.0, 0, x)
    assert [output.type.dtype for output in outputs] == ["float32"] * 3
    found = evaluate([n, x], [outputs[1]], [[1, 2], [[3]]])[0]
    assert found.tolist() == [[4], [8.5]]


def test_it_is_one_statement_with_statements_of_its_own():
    body = scalar_statements(series(1e-3), ("int64", *["float64"] * 4))
    (loop,) = body.statements
    assert isinstance(loop, ScalarRepeat)
    assert [statement.op for statement in loop.body] == [
        "mul",
        "add",
        "true_div",
        "add",
        "abs",
        "lt",
    ]
    assert body.outputs == tuple(("result", 0, k) for k in range(4))
    assert loop.results == ("float64", "float64", "float64", "bool")


def test_composites_within_composites_stay_so_until_they_are_lowered():
    (x,) = scalars("float64")
    twice = Composite([x], [apply_scalar_op(scalar.add, x, x)])
    nested = Composite([x], [twice.make_node(apply_scalar_op(scalar.exp, x)).outputs[0]])
    assert [node.op for node in nested.fgraph.nodes][1] == twice
    assert [s.op for s in scalar_statements(nested, ("float64",)).statements] == ["exp", "add"]


def test_a_scalar_node_is_computed():
    n, x = scalars("int64", "float64")
    node = series().make_node(n, 1.0, 1.0, 0.0, x)
    storage = [[None] for _ in node.outputs]
    series().perform(node, [2, 1.0, 1.0, 0.0, 3.0], storage)
    assert [cell[0] for cell in storage] == [4.5, 8.5, 2]


def test_nothing_flows_back_through_a_loop():
    x = pt.dvector("x")
    for output in applied(series(), 5, x):
        with pytest.raises(NullGradientError, match="ScalarLoop"):
            engine.grad(pt.sum(output), x)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_loop_on_numbers_of_another_dtype_computes_in_that_dtype(mode, kernels_once):
    n, term, total, count, x = scalars("int64", *["float32"] * 4)
    outputs = series(1e-3).make_node(n, term, total, count, x).outputs
    assert [output.type.dtype for output in outputs] == ["float32"] * 3 + ["bool"]
    found = engine.function([n, term, total, count, x], outputs, mode=mode)(9, 1, 1, 0, 0.5)
    np.testing.assert_allclose(found, [0.5**5 / 120, np.exp(0.5), 5, True], rtol=1e-3)


def test_a_loop_on_numbers_of_which_some_have_another_dtype_is_refused_if_a_state_would_change_it():
    n, state, number, x = scalars("int64", "float64", "float64", "float64")
    op = ScalarLoop([state], [apply_scalar_op(scalar.add, apply_scalar_op(scalar.mul, state, x), 1)], [x])
    assert op.make_node(n, *scalars("float32", "float32")).outputs[0].type.dtype == "float32"
    assert op.make_node(n, number, *scalars("int8")).op.input_dtypes == ("int64", "float64", "int8")
    with pytest.raises(TypeError, match="must be the same"):
        op.make_node(n, *scalars("float32", "float64"))


def test_constants_take_another_dtype_only_as_numbers_of_python_do():
    (x,) = scalars("float64")
    half = Composite([x], [apply_scalar_op(scalar.add, x, 0.5)])
    assert half.make_node(*scalars("int32")).outputs[0].type.dtype == "float64"
    assert half.make_node(*scalars("float16")).outputs[0].type.dtype == "float16"
    (k,) = scalars("int64")
    wide = Composite([k], [apply_scalar_op(scalar.add, k, 1000)])
    assert wide.make_node(*scalars("int16")).outputs[0].type.dtype == "int16"
    with pytest.raises(OverflowError, match="out of bounds"):
        wide.make_node(*scalars("int8"))


def test_what_is_no_loop_of_scalars_is_refused():
    state, k = scalars("float64", "int64")
    with pytest.raises(ValueError, match="must be given for each"):
        ScalarLoop([state], [])
    with pytest.raises(TypeError, match="cast it"):
        ScalarLoop([k], [apply_scalar_op(scalar.mul, k, 0.5)])
    with pytest.raises(TypeError, match="not a bool"):
        ScalarLoop([state], [apply_scalar_op(scalar.exp, state)], until=state)
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="no scalar"):
        ScalarLoop([x], [pt.exp(x)])
    with pytest.raises(TypeError, match="must be of integer type"):
        Elemwise(series())(1.5, 1.0, 1.0, 0.0, x)
