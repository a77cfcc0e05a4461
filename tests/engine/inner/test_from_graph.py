"""OpFromGraph: what it computes, what makes two equal, its gradient and what stands in for it, what it refuses."""

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad, verify_grad
from engine.errors import DisconnectedInputError, MissingInputError
from engine.gradient import disconnected_type
from engine.graph import FrozenFunctionGraph
from engine.graph.reference import evaluate
from engine.inner import HasInnerGraph, OpFromGraph
from engine.inner.from_graph import inlined


def layer(scale=0.5, **options):
    x, w = pt.dvector("x"), pt.dmatrix("w")
    return OpFromGraph([x, w], [pt.tanh(pt.dot(w, x)) + scale * x], **options)


def value(variables, output, *values):
    return evaluate(variables, [output], values)[0]


def doubled(inputs, outputs, cotangents):
    return [2 * cotangents[0], None]


def test_it_computes_its_graph_of_what_it_is_applied_to():
    a, b = pt.dvector("a"), pt.dmatrix("b")
    found = value([a, b], layer()(a + 1, b), [0.0, 1.0], np.eye(2))
    np.testing.assert_allclose(found, np.tanh([1.0, 2.0]) + [0.5, 1.0])


def test_it_may_have_several_outputs_and_nest():
    x = pt.dvector("x")
    inner = OpFromGraph([x], [x + 1, pt.sum(x)])
    outer = OpFromGraph([x], [inner(x * 2)[1], x])
    first, second = outer(x)
    assert value([x], first, [1.0, 2.0]) == 6
    assert value([x], second, [1.0, 2.0]).tolist() == [1, 2]


def test_it_is_immutable_and_its_own_clone():
    op = layer()
    assert isinstance(op, HasInnerGraph)
    assert isinstance(op.fgraph, FrozenFunctionGraph)
    assert op.clone() is op
    assert (op.inner_inputs, op.inner_outputs) == (op.fgraph.inputs, op.fgraph.outputs)


def test_equality_is_that_of_the_graph_and_of_all_that_changes_behaviour():
    assert layer() == layer()
    assert hash(layer()) == hash(layer())
    different = [
        layer(),
        layer(0.25),
        layer(inline=True),
        layer(name="layer"),
        layer(pullback=doubled),
        layer(connection_pattern=[[True], [False]]),
    ]
    assert len(set(different)) == len(different)


def test_another_graph_makes_another_op_that_is_alike_in_all_else():
    op = layer(pullback=doubled, name="layer", inline=True)
    hash(op)
    other = op.with_inner_graph(layer(0.25).fgraph)
    assert other == layer(0.25, pullback=doubled, name="layer", inline=True)
    assert op == layer(pullback=doubled, name="layer", inline=True)
    with pytest.raises(TypeError, match="it has 2 inputs, the graph 1"):
        op.with_inner_graph(OpFromGraph([x := pt.dvector()], [x]).fgraph)


def test_it_survives_pickling_as_an_equal_op_on_the_same_graph():
    op = layer(name="layer", pullback=doubled)
    again = pickle.loads(pickle.dumps(op))
    assert again == op
    assert again.fgraph is op.fgraph


def test_its_gradient_is_that_of_its_graph():
    random = np.random.default_rng(1)
    op = layer()
    verify_grad(lambda x, w: op(op(x, w), w), [random.normal(size=3), random.normal(size=(3, 3))])


def test_the_gradient_of_several_outputs_that_depend_on_each_other():
    x = pt.dvector("x")
    y = pt.exp(x)
    op = OpFromGraph([x], [y, pt.sum(y**2), y])
    verify_grad(lambda x: op(x)[0] * op(x)[1] + op(x)[2] ** 2, [np.array([0.3, -0.5])])
    verify_grad(lambda x: op(x)[1], [np.array([0.3, -0.5])])


def test_an_output_that_is_an_input_has_a_gradient():
    x, y = pt.dvector("x"), pt.dvector("y")
    op = OpFromGraph([x, y], [x, x * y, y])
    verify_grad(lambda x, y: op(x, y)[0] * op(x, y)[1] + op(x, y)[2], [np.array([0.3]), np.array([2.0])])


def test_equal_layers_have_one_pullback():
    x, w = pt.dvector("x"), pt.dmatrix("w")
    h = layer()(layer()(layer()(x, w), w), w)
    found = grad(pt.sum(h), [x, w])
    ops = {v.op for v in engine.graph.io_toposort([x, w], [h, *found]) if isinstance(v.op, OpFromGraph)}
    assert sorted(len(op.inner_outputs) for op in ops) == [1, 2]


def test_second_derivatives_go_through():
    x = pt.dvector("x")
    op = OpFromGraph([x], [pt.exp(x) * x])
    verify_grad(lambda x: grad(pt.sum(op(x)), x), [np.array([0.3, -0.5])])


def test_an_input_without_influence_is_disconnected():
    x, y = pt.dvector("x"), pt.dvector("y")
    op = OpFromGraph([x, y], [x * 2, y * 3])
    assert op.connection_pattern(op.make_node(x, y)) == [[True, False], [False, True]]
    with pytest.raises(DisconnectedInputError):
        grad(pt.sum(op(x, y)[0]), y)
    assert value(
        [x, y], grad(pt.sum(op(x, y)[0]), y, disconnected_inputs="ignore"), [1.0], [1.0]
    ).tolist() == [0]


def test_a_given_connection_pattern_is_believed():
    x = pt.dvector("x")
    op = OpFromGraph([x], [x * 2], connection_pattern=[[False]])
    assert op.connection_pattern(op.make_node(x)) == [[False]]


def test_inputs_may_be_repeated_if_unused_ones_are_ignored():
    x, y = pt.dvector("x"), pt.dvector("y")
    first = OpFromGraph([x, x, y], [x - y], on_unused_input="ignore")
    assert value([x, y], first(x, y, y), [3.0], [1.0]).tolist() == [2.0]


@pytest.mark.parametrize("argument", ["pullback", "lop_overrides"])
@pytest.mark.filterwarnings("ignore:lop_overrides is deprecated:FutureWarning")
def test_a_callable_stands_in_for_the_gradient(argument):
    x = pt.dvector("x")
    op = OpFromGraph(
        [x], [pt.exp(x)], **{argument: lambda inputs, outputs, g: [g[0] * outputs[0] * inputs[0]]}
    )
    np.testing.assert_allclose(value([x], grad(pt.sum(op(x)), x), [2.0]), 2 * np.exp([2.0]))


def test_another_op_stands_in_for_the_gradient():
    x, y, g = pt.dvector("x"), pt.dvector("y"), pt.dvector("g")
    op = OpFromGraph([x], [pt.exp(x)], pullback=OpFromGraph([x, y, g], [g * y * 7]))
    np.testing.assert_allclose(value([x], grad(pt.sum(op(x)), x), [2.0]), 7 * np.exp([2.0]))


def test_a_list_stands_in_for_the_gradients_of_some_inputs():
    x, y = pt.dvector("x"), pt.dvector("y")
    op = OpFromGraph([x, y], [x * y], pullback=[None, lambda inputs, outputs, g: g[0] * 100])
    of_x, of_y = evaluate([x, y], grad(pt.sum(op(x, y)), [x, y]), [[2.0], [3.0]])
    assert (of_x.tolist(), of_y.tolist()) == ([3.0], [100.0])


def test_what_stands_in_gets_zeros_for_outputs_that_the_cost_does_not_depend_on():
    x = pt.dvector("x")
    op = OpFromGraph([x], [x + 1, x * 2], pullback=lambda inputs, outputs, g: [g[0] + 10 * g[1]])
    assert value([x], grad(pt.sum(op(x)[0]), x), [5.0]).tolist() == [1.0]


def test_what_stands_in_may_say_that_nothing_depends_and_is_not_asked_where_nothing_does():
    x, y = pt.dvector("x"), pt.dvector("y")
    first = OpFromGraph([x, y], [x * y], pullback=lambda inputs, outputs, g: [g[0], disconnected_type()])
    of_x, of_y = evaluate([x, y], grad(pt.sum(first(x, y)), [x, y]), [[2.0], [3.0]])
    assert (of_x.tolist(), of_y.tolist()) == ([1.0], [0.0])
    two = OpFromGraph([x, y], [x * 2, y * 3], pullback=lambda inputs, outputs, g: [g[0] * 2, g[1] * 3])
    assert value([x, y], grad(pt.sum(two(x, y)[0]), x), [1.0], [1.0]).tolist() == [2.0]
    with pytest.raises(DisconnectedInputError):
        grad(pt.sum(two(x, y)[0]), y)


def test_it_takes_the_types_of_its_inputs_and_broadcasts_as_they_do():
    x, y = pt.dvector("x"), pt.dvector("y")
    op = OpFromGraph([x, y], [x + y])
    one = pt.tensor("one", "float64", (1,))
    assert value([one, y], op(one, y), [1.0], [1.0, 2.0]).tolist() == [2.0, 3.0]
    assert op(x, y).owner.op is op
    with pytest.raises(TypeError):
        op(pt.dmatrix("m"), y)
    with pytest.raises(ValueError, match=r"Expected 2 input\(s\), 1 were given"):
        op(x)


def test_shared_variables_are_refused_unless_they_are_inputs():
    x, w = pt.dvector("x"), engine.shared(2.0, "w")
    with pytest.raises(MissingInputError, match=r"shared variable w .* add it to the inputs"):
        OpFromGraph([x], [x * w])
    op = OpFromGraph([x, w], [x * w])
    f = engine.function([x], op(x, w), updates={w: w + 1}, mode="NUMPY")
    assert [f([1.0]).tolist(), f([1.0]).tolist()] == [[2.0], [3.0]]


def test_what_cannot_be_an_op_is_refused():
    x, y = pt.dvector("x"), pt.dvector("y")
    for error, arguments in (
        (MissingInputError, {"inputs": [x], "outputs": [x + y]}),
        (TypeError, {"inputs": [1.0], "outputs": [x]}),
        (TypeError, {"inputs": [pt.constant(1.0)], "outputs": [x]}),
        (ValueError, {"inputs": [x, x], "outputs": [x]}),
        (ValueError, {"inputs": [x], "outputs": [x], "pullback": [None, None]}),
        (TypeError, {"inputs": [x], "outputs": [x], "pullback": 3}),
        (TypeError, {"inputs": [x], "outputs": [x], "pullback": doubled, "lop_overrides": doubled}),
        (ValueError, {"inputs": [x], "outputs": [x], "connection_pattern": [[True, True]]}),
        (ValueError, {"inputs": [x], "outputs": [x], "strict": False}),
    ):
        with pytest.raises(error):
            OpFromGraph(**arguments)


def test_a_pullback_of_another_length_is_refused():
    x, y = pt.dvector("x"), pt.dvector("y")
    op = OpFromGraph([x, y], [x * y], pullback=lambda inputs, outputs, g: [g[0]])
    with pytest.raises(ValueError, match="gave 1 variables, 2 are expected"):
        grad(pt.sum(op(x, y)), x)


def test_for_compilation_only_the_graph_counts():
    plain = layer()
    assert plain.for_compilation() is plain
    assert layer(name="layer", pullback=doubled, inline=True).for_compilation() == plain
    assert layer(name="layer", pullback=doubled).key_props() == plain.key_props()
    assert layer(inline=True).key_props() != plain.key_props()


def test_inlining_leaves_no_graph_within_an_op_and_the_same_values():
    x, w = pt.dvector("x"), pt.dmatrix("w")
    op = layer()
    outer = OpFromGraph([x, w], [op(op(x, w), w), x])
    out = outer(x * 2, w)
    nodes, flat = inlined(engine.graph.io_toposort([x, w], [*out, w]), [x, w], [*out, w])
    assert nodes == engine.graph.io_toposort([x, w], flat)
    assert not any(isinstance(node.op, OpFromGraph) for node in nodes)
    values = [[0.5, 1.0], [[1.0, 0.25], [0.0, 1.0]]]
    for found, due in zip(evaluate([x, w], flat, values), evaluate([x, w], [*out, w], values), strict=True):
        np.testing.assert_array_equal(found, due)
