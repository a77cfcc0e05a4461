"""Chains of equal layers become loops, with the same results."""

import random

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import OpFromGraph
from engine.graph import FunctionGraph
from engine.graph.reference import evaluate
from engine.inner import Scan
from engine.rewriting import DEFAULT_QUERY, run_pipeline

COUNT = 12
RANDOM = np.random.default_rng(5)
NOT_INPLACE = DEFAULT_QUERY.excluding("inplace")
"""The reference computes in any order, also where an Op overwrites."""
STATE, WEIGHTS = RANDOM.normal(size=4), RANDOM.normal(size=(4, 4)) / 4


def with_skip():
    """Return tanh(W s) + s/2 as an Op: the state keeps its length."""
    s, w = pt.dvector(), pt.dmatrix()
    return OpFromGraph([s, w], [pt.tanh(pt.dot(w, s)) + 0.5 * s])


def dense():
    """Return tanh(W s): what it computes is as long as W."""
    s, w = pt.dvector(), pt.dmatrix()
    return OpFromGraph([s, w], [pt.tanh(pt.dot(w, s))])


def repeated(op, state, *others, count=COUNT):
    """Return the states of a chain, each `op` of the one before and of what `others` give for its number."""
    states = [state]
    for number in range(count):
        states.append(op(states[-1], *[other(number) if callable(other) else other for other in others]))
    return states


def loops_and_layers(graph):
    nodes = graph.fgraph.toposort()
    return [sum(isinstance(node.op, kind) for node in nodes) for kind in (Scan, OpFromGraph)]


@pytest.fixture
def rerolled(rewritten):
    """Rewrite, compare the values, and return the numbers of loops and of OpFromGraphs left."""

    def check(inputs, outputs, *arguments):
        graph = rewritten(inputs, outputs, query=NOT_INPLACE).check_values(*arguments)
        return loops_and_layers(graph)

    return check


def test_a_chain_becomes_one_loop(rerolled):
    s, w = pt.dvector(), pt.dmatrix()
    assert rerolled([s, w], repeated(with_skip(), s, w)[-1], STATE, WEIGHTS) == [1, 0]


def test_chains_of_few_nodes_stay(rerolled):
    s, w = pt.dvector(), pt.dmatrix()
    assert rerolled([s, w], repeated(with_skip(), s, w, count=7)[-1], STATE, WEIGHTS) == [0, 7]


def test_gradients_become_one_loop_that_sums(rerolled):
    s, w = pt.dvector(), pt.dmatrix()
    value = pt.sum(pt.sqr(repeated(with_skip(), s, w)[-1]))
    found = rerolled([s, w], [value, *engine.grad(value, [s, w])], STATE, WEIGHTS)
    assert found == [2, 0]


def test_a_sum_goes_on_from_what_was_there(rerolled):
    s, w = pt.dvector(), pt.dmatrix()
    value = pt.sum(pt.sqr(w)) + pt.sum(repeated(with_skip(), s, w)[-1])
    assert rerolled([s, w], [value, *engine.grad(value, [s, w])], STATE, WEIGHTS) == [2, 0]


def test_a_layer_that_gives_the_state_its_length_stays_before_the_loop(rerolled):
    s, w = pt.dvector(), pt.dmatrix()
    value = pt.sum(repeated(dense(), s, w)[-1])
    assert rerolled([s, w], value, STATE, WEIGHTS) == [1, 1]


def test_the_first_layer_may_have_other_weights_and_another_length(rerolled):
    s, first, w = pt.dvector(), pt.dmatrix(), pt.dmatrix()
    value = pt.sum(repeated(dense(), s, lambda number: w if number else first)[-1])
    found = rerolled(
        [s, first, w], [value, *engine.grad(value, [s, first, w])], STATE[:2], WEIGHTS[:, :2], WEIGHTS
    )
    assert found[0] >= 1


def test_states_that_others_use_are_rows_of_the_loop(rerolled):
    s, w = pt.dvector(), pt.dmatrix()
    states = repeated(with_skip(), s, w)
    value = pt.sum(states[3] * states[-2]) + pt.sum(states[0])
    outputs = [value, states[5], states[12], *engine.grad(value, [s, w])]
    assert rerolled([s, w], outputs, STATE, WEIGHTS)[0] >= 1


def test_rows_of_a_tensor_that_is_long_enough_are_a_sequence(rerolled):
    x, s = pt.tensor("x", dtype="float64", shape=(COUNT, None)), pt.dvector()
    a, b = pt.dvector(), pt.dvector()
    op = OpFromGraph([a, b], [pt.tanh(a + b) * a])
    data = RANDOM.normal(size=(COUNT, 4))
    value = pt.sum(repeated(op, s, lambda number: x[number])[-1])
    assert rerolled([s, x], [value, engine.grad(value, s)], STATE, data) == [2, 0]
    value = pt.sum(repeated(op, s, lambda number: x[COUNT - 1 - number])[-1])
    assert rerolled([s, x], [value, engine.grad(value, s)], STATE, data) == [2, 0]


def test_rows_of_a_tensor_that_may_be_too_short_stay_indexed():
    x, s = pt.dmatrix(), pt.dvector()
    a, b = pt.dvector(), pt.dvector()
    f = engine.function([s, x], repeated(OpFromGraph([a, b], [a + b]), s, lambda number: x[number])[-1])
    np.testing.assert_allclose(f(STATE, np.ones((COUNT, 4))), STATE + COUNT)
    with pytest.raises(IndexError):
        f(STATE, np.ones((COUNT - 1, 4)))


def test_layers_with_other_weights_each_stay(rerolled):
    s, w = pt.dvector(), pt.tensor3()
    value = repeated(with_skip(), s, lambda number: w[number] * (number + 1.0))[-1]
    found = rerolled([s, w], value, STATE, RANDOM.normal(size=(COUNT, 4, 4)) / 9)
    assert found == [0, COUNT]


def test_states_that_grow_stay_nodes(rerolled):
    s = pt.dvector()
    a = pt.dvector()
    op = OpFromGraph([a], [pt.concatenate([a, a[:1] + 1])])
    assert rerolled([s], repeated(op, s)[-1], STATE) == [0, COUNT]


def test_states_of_another_length_are_refused_as_without_a_loop():
    s, w = pt.dvector(), pt.dmatrix()
    f = engine.function([s, w], repeated(with_skip(), s, w)[-1])
    with pytest.raises(ValueError):
        f(STATE[:3], WEIGHTS)


def test_two_outputs_may_be_exchanged_between_layers(rerolled):
    a, b, w = pt.dvector(), pt.dvector(), pt.dvector()
    op = OpFromGraph([a, b, w], [b * w, a + pt.sin(b), a * w])
    x, y, v = pt.dvector(), pt.dvector(), pt.dvector()
    first, second, extra = x, y, 0.0
    for _ in range(COUNT):
        first, second, third = op(first, second, v)
        extra = extra + third
    value = pt.sum(first + second) + pt.sum(extra)
    assert (
        rerolled([x, y, v], [value, *engine.grad(value, [x, y, v])], STATE, STATE[::-1].copy(), STATE / 2)[0]
        >= 1
    )


def test_a_second_chain_reads_the_states_of_the_first(rerolled):
    s, w, t = pt.dvector(), pt.dmatrix(), pt.dvector()
    a, b = pt.dvector(), pt.dvector()
    merge = OpFromGraph([a, b], [pt.cos(a) + b])
    states = repeated(with_skip(), s, w)
    for rows in (states[1:], states[:-1], states[:0:-1]):
        value = repeated(merge, t, rows.__getitem__)[-1]
        assert rerolled([s, w, t], value, STATE, WEIGHTS, STATE + 1)[0] >= 1


def test_chains_that_wait_for_each_other_do_not_become_loops_that_do(rerolled):
    a, b = pt.dvector(), pt.dvector()
    one, other = OpFromGraph([a, b], [pt.sin(a) + b]), OpFromGraph([a, b], [pt.cos(a) * b])
    s, t = pt.dvector(), pt.dvector()
    first = one(s, s)
    states = [s]
    for _ in range(COUNT):
        states.append(other(states[-1], first))
    value = t
    for number in range(COUNT):
        value = one(value, states[number]) if number else first
    assert rerolled([s, t], [value, states[-1]], STATE, STATE)[0] == 1
    x, y = s, t
    for _ in range(COUNT):
        x = one(x, y)
        y = other(y, x)
    assert rerolled([s, t], [x, y], STATE, STATE + 1) == [0, 2 * COUNT]


def test_a_tree_of_equal_nodes_is_no_chain(rerolled):
    a, b = pt.dvector(), pt.dvector()
    op = OpFromGraph([a, b], [a * b + 1])
    s = pt.dvector()
    level = [s + number for number in range(16)]
    while len(level) > 1:
        level = [op(x, y) for x, y in zip(level[::2], level[1::2], strict=True)]
    assert rerolled([s], level[0], STATE / 9) == [0, 15]


def test_layers_of_generators_stay_nodes():
    rng = engine.shared(np.random.default_rng(3))
    generator, s = rng.type(), pt.dvector()
    following, draw = pt.random.normal(s, rng=generator).owner.outputs
    op = OpFromGraph([generator, s], [following, s + draw])
    state, x = rng, pt.dvector()
    value = x
    for _ in range(COUNT):
        state, value = op(state, value)
    f = engine.function([x], value)
    expected, numbers = STATE, np.random.default_rng(3)
    for _ in range(COUNT):
        expected = expected + numbers.normal(expected)
    np.testing.assert_allclose(f(STATE), expected, rtol=1e-13)


def test_a_layer_inside_a_layer_is_rerolled_there():
    s, w = pt.dvector(), pt.dmatrix()
    block = OpFromGraph([s, w], [repeated(with_skip(), s, w)[-1]])
    outputs = [block(block(s, w), w)]
    graph = FunctionGraph([s, w], outputs)
    run_pipeline(graph, DEFAULT_QUERY)
    inner = {
        node for outer in graph.toposort() if hasattr(outer.op, "fgraph") for node in outer.op.fgraph.nodes
    }
    assert any(isinstance(node.op, Scan) for node in inner)
    f = engine.function([s, w], outputs)
    np.testing.assert_allclose(f(STATE, WEIGHTS), evaluate([s, w], outputs, [STATE, WEIGHTS]), rtol=1e-12)


def random_step(number):
    """Return a random Op of two states, a constant and a row, which gives two states and a third vector."""
    draw = random.Random(number)
    inputs = [pt.dvector() for _ in range(4)]
    known = list(inputs)
    for _ in range(draw.randint(2, 7)):
        x, y = draw.choice(known), draw.choice(known)
        known.append(
            draw.choice([lambda x, y: pt.sin(x) + y, lambda x, y: x * pt.cos(y), lambda x, y: x - 0.3 * y])(
                x, y
            )
        )
    return OpFromGraph(inputs, draw.sample(known, 3))


@pytest.mark.parametrize("number", range(40))
def test_random_chains_and_their_gradients_keep_their_values(rewritten, number):
    draw = random.Random(number)
    op = random_step(number)
    s, t, c, x = pt.dvector(), pt.dvector(), pt.dvector(), pt.tensor("x", dtype="float64", shape=(COUNT, 4))
    first, second, kept = s, t, []
    for place in range(COUNT):
        row = {0: c, 1: x[place], 2: x[COUNT - 1 - place], 3: first}[number % 4]
        one, other, third = op(first, second, c, row)
        first, second = draw.choice([(one, other), (other, one)]) if number % 8 == 7 else (one, other)
        if draw.random() < 0.5 or number % 3 == 0:
            kept.append(third)
    value = pt.sum(first) + pt.sum(sum(kept, pt.sqr(second)))
    gradients = engine.grad(value, [s, t, c, x], disconnected_inputs="ignore")
    rewritten([s, t, c, x], [value, *gradients], query=NOT_INPLACE).check_values(
        STATE / 3, STATE[::-1] / 3, STATE / 5, RANDOM.normal(size=(COUNT, 4)) / 3
    )
