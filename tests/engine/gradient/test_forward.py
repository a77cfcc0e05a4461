"""Tangents pushed forward: what finite differences and the pullback say, and what is refused."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import engine
import engine.tensor as pt
from engine.errors import DisconnectedInputError, NullGradientError
from engine.gradient import Rop, pushforward
from engine.graph import Apply, Op, io_toposort
from engine.graph.reference import evaluate
from engine.inner import OpFromGraph
from tests.engine.generated_graphs import FLOATS, Graph, graphs

RANDOM = np.random.default_rng(0)
X, DX = RANDOM.normal(size=(2, 3, 4)), RANDOM.normal(size=(2, 3, 4))
FUNCTIONS = {
    "elementwise": lambda x: pt.exp(x) * pt.tanh(x) + x**2,
    "broadcast": lambda x: x[0] * x[:, 1][:, None] - pt.sum(x, keepdims=True),
    "one of two arguments": lambda x: pt.where(x > 0, x, 0.0) + pt.maximum(x, 0.25),
    "reduced": lambda x: pt.sum(x, 1) * pt.max(x, (0, 2))[0] + pt.mean(x),
    "rearranged": lambda x: x.dimshuffle(2, 0, "x", 1).reshape((4, -1)),
    "indexed": lambda x: x[:, [0, 2, 0]][..., ::2] * x[0, 0, 0],
    "set and added to": lambda x: x[:, 1].set(2 * x[:, 0])[0].inc(x[1]),
    "joined": lambda x: pt.concatenate([x, x[:1] ** 2], 0),
    "products": lambda x: pt.dot(x[0], x[1].T) @ x[0, :, 0],
    "softmax": lambda x: pt.softmax(x, 1) + pt.log_softmax(x, (0, 2)) + pt.logsumexp(x),
    "solved": lambda x: pt.linalg.solve(x[0] @ x[0].T + pt.eye(3), x[1]),
    "factored": lambda x: pt.linalg.cholesky(x[0] @ x[0].T + pt.eye(3)),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_a_tangent_is_what_differences_give(what):
    x, dx = pt.dtensor3("x"), pt.dtensor3("dx")
    output = FUNCTIONS[what](x)
    (found,) = evaluate([x, dx], [pushforward(output, x, dx)], [X, DX])
    step = 1e-6
    above, below = (evaluate([x], [output], [X + sign * step * DX])[0] for sign in (1, -1))
    assert found.shape == above.shape
    np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_the_compiled_tangent_is_the_references(kernels_once):
    x, dx = pt.dtensor3("x"), pt.dtensor3("dx")
    outputs = pushforward([make(x) for make in FUNCTIONS.values()], x, dx)
    found, expected = (engine.function([x, dx], outputs, mode=m)(X, DX) for m in ("FAST_RUN", "NUMPY"))
    for what, one, other in zip(FUNCTIONS, found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=what)


@settings(max_examples=60, derandomize=True, database=None)
@given(graphs(8))
def test_forward_and_backward_are_adjoint(graph: Graph):
    inputs = [v for v in graph.inputs if v.type.dtype in FLOATS]
    outputs = [v for v in graph.sinks if v.type.dtype in FLOATS]
    random = np.random.default_rng(1)

    def constants(variables):
        return [pt.constant(random.normal(size=graph.known[v].shape).astype(v.type.dtype)) for v in variables]

    def products(variables, others):
        return [pt.sum(pt.cast(a, "float64") * b) for a, b in zip(variables, others, strict=True)]

    tangents, cotangents = constants(inputs), constants(outputs)
    forward = pushforward(outputs, inputs, tangents, "ignore")
    back = engine.gradient.pullback(outputs, inputs, cotangents, disconnected_inputs="ignore")
    pairs = [*products(forward, cotangents), *products(back, tangents)]
    found = evaluate(graph.inputs, pairs, graph.values)
    assume(np.all(np.isfinite(found)))  # x mod 0 has no derivative
    here, there = found[: len(outputs)], found[len(outputs) :]
    scale = 1 + max([abs(float(value)) for value in found], default=0) * graph.scale**2
    assert abs(sum(here) - sum(there)) <= 1e-4 * scale


def test_an_elementwise_operation_adds_up_what_its_arguments_change_and_nothing_else():
    x, y, dx = pt.dvector("x"), pt.dvector("y"), pt.dvector("dx")
    found = pushforward(x * y, x, dx)
    assert len(io_toposort([], [found])) == 1
    assert evaluate([x, y, dx], [found], [[1.0], [5.0], [2.0]])[0].tolist() == [10]


def test_several_outputs_come_in_the_form_in_which_they_were_given():
    x, dx = pt.dscalar("x"), pt.dscalar("dx")
    assert isinstance(pushforward([x * 2], x, dx), list)
    first, second = pushforward((x * 2, x**2), [x], [dx])
    assert evaluate([x, dx], [first, second], [3.0, 1.0]) == [2, 6]
    for pushes in (True, False):
        product = Rop(x**2, x, eval_points=dx, use_op_rop_implementation=pushes)
        assert evaluate([x, dx], [product], [3.0, 1.0]) == [6]


def test_the_tangent_of_the_variable_itself_is_its_own():
    x, dx = pt.dscalar("x"), pt.dscalar("dx")
    assert pushforward(x, x, dx) is dx


def test_what_does_not_depend_on_it_is_refused_or_zeros():
    x, y, dx = pt.dvector("x"), pt.dvector("y"), pt.dvector("dx")
    with pytest.raises(DisconnectedInputError, match="does not depend"):
        pushforward(y * 2, x, dx)
    with pytest.warns(UserWarning, match="does not depend"):
        pushforward(y * 2, x, dx, disconnected_outputs="warn")
    zeros = pushforward([y * 2, x > 0], x, dx, disconnected_outputs="ignore")
    assert [v.tolist() for v in evaluate([x, y], zeros, [[1.0], [1.0, 2.0]])] == [[0, 0], [0]]
    assert pushforward(y, x, dx, "ignore", return_disconnected="none") is None


def test_integers_change_as_if_they_were_real():
    k, x, dk = pt.lscalar("k"), pt.dscalar("x"), pt.dscalar("dk")
    assert evaluate([k, x, dk], [pushforward(k * x, k, dk)], [2, 3.0, 0.5]) == [1.5]


def test_tangents_that_do_not_fit_are_refused():
    x, dx = pt.dvector("x"), pt.dscalar("dx")
    with pytest.raises(ValueError, match="the same number of dimensions"):
        pushforward(x, x, dx)
    with pytest.raises(ValueError, match="one for each"):
        pushforward(x, x, [x, x])
    with pytest.raises(ValueError, match="return_disconnected"):
        pushforward(x, x, x, return_disconnected="nothing")


class Twice(Op):
    """An Op that says how it changes, or not, and has no pullback."""

    __props__ = ("knows",)

    def __init__(self, knows):
        self.knows = knows

    def make_node(self, x):
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]

    def pushforward(self, inputs, outputs, tangents):
        return [3 * tangents[0]] if self.knows else NotImplemented


def test_an_op_may_say_how_it_changes_itself():
    x, dx = pt.dvector("x"), pt.dvector("dx")
    assert evaluate([x, dx], [pushforward(Twice(True)(x), x, dx)], [[1.0], [1.0]])[0].tolist() == [3]
    with pytest.raises(NullGradientError):
        pushforward(Twice(False)(x), x, dx)


def layer(**options):
    x, w = pt.dvector("x"), pt.dmatrix("w")
    return OpFromGraph([x, w], [pt.tanh(pt.dot(w, x)), pt.sum(x)], **options)


def test_a_graph_within_an_op_changes_as_its_graph_does():
    x, w, dx = pt.dvector("x"), pt.dmatrix("w"), pt.dvector("dx")
    values = [X[0, 0, :3], X[0, :, :3], DX[0, 0, :3]]
    found = pushforward(layer()(x, w), x, dx)
    assert isinstance(found[0].owner.op, OpFromGraph)
    expected = pushforward([pt.tanh(pt.dot(w, x)), pt.sum(x)], x, dx)
    for one, other in zip(*(evaluate([x, w, dx], v, values) for v in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other)


def test_equal_layers_change_by_equal_layers():
    x, w, dx = pt.dvector("x"), pt.dmatrix("w"), pt.dvector("dx")
    found = pushforward(layer()(layer()(x, w)[0], w)[0], x, dx)
    ops = [node.op for node in io_toposort([], [found]) if isinstance(node.op, OpFromGraph)]
    assert len(set(ops)) == 2


def tripled(inputs, tangents):
    return [3 * tangents[0], pt.sum(inputs[0] * tangents[0])]


@pytest.mark.parametrize("name", ["pushforward", "rop_overrides"])
@pytest.mark.filterwarnings("ignore:rop_overrides is deprecated:FutureWarning")
def test_what_stands_in_for_the_tangents_of_a_graph_is_asked(name):
    x, w, dx = pt.dvector("x"), pt.dmatrix("w"), pt.dvector("dx")
    values = [np.array([1.0, 2.0]), np.eye(2), np.array([1.0, 1.0])]
    first, second = pushforward(layer(**{name: tripled})(x, w), x, dx)
    assert [v.tolist() for v in evaluate([x, w, dx], [first, second], values)] == [[3, 3], 3]
    one = pushforward(layer(**{name: [None, lambda inputs, tangents: 7 * tangents[0][0]]})(x, w), x, dx)
    assert evaluate([x, w, dx], [one[1]], values) == [7]
    as_op = OpFromGraph([x, w, dx, w.type()], tripled([x, w], [dx, w]))
    found = pushforward(layer(**{name: as_op})(x, w), x, dx)
    assert evaluate([x, w, dx], [found[1]], values) == [3]


def test_what_stands_in_for_tangents_is_checked_and_is_a_part_of_the_op_but_of_no_key():
    with pytest.raises(TypeError, match="two names of one argument"):
        layer(pushforward=tripled, rop_overrides=tripled)
    with pytest.raises(ValueError, match="1 items for 2 outputs"):
        layer(pushforward=[tripled])
    x, w = pt.dvector("x"), pt.dmatrix("w")
    with pytest.raises(ValueError, match="gave 1 variables, 2 are expected"):
        pushforward(layer(pushforward=lambda inputs, tangents: [tangents[0]])(x, w), x, x)
    assert layer(pushforward=tripled) != layer()
    assert "tangents" not in layer(pushforward=tripled).key_props()
    assert layer(pushforward=tripled).for_compilation() == layer()


def test_a_loop_over_states_of_known_lengths_takes_a_tangent_of_unknown_ones():
    x, dx = pt.tensor("x", dtype="float64", shape=(3,)), pt.dvector("dx")
    states, _ = engine.scan(lambda state: state * x, outputs_info=[x], n_steps=4)
    at, along = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, 2.0])
    f = engine.function([x, dx], pushforward(states[-1], x, dx))
    np.testing.assert_allclose(f(at, along), 5 * at**4 * along, rtol=1e-14)
    with pytest.raises(AssertionError, match=r"Got shape \(2,\), expected \(3,\)"):
        f(at, along[:2])
