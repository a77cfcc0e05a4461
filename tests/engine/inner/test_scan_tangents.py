"""Tangents through a Scan: against finite differences, and what they are made of."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.gradient import grad, pushforward
from engine.graph import io_toposort
from engine.graph.reference import evaluate
from engine.inner import Scan, ScanInfo

RANDOM = np.random.default_rng(9)
X, Y, Z = RANDOM.normal(size=5), RANDOM.normal(size=(5, 3)), RANDOM.normal(size=3)
W = RANDOM.normal(size=(3, 3)) / 2


def rows(*arguments, **options):
    return engine.scan(*arguments, **options, return_updates=False)


def check(fun, *points):
    """The tangents of what `fun` gives for random ones of its arguments, together and each for itself."""
    variables = [pt.tensor(None, value.dtype, (None,) * value.ndim) for value in points]
    output = fun(*variables)
    directions = [pt.constant(RANDOM.normal(size=value.shape)) for value in points]
    for chosen in [list(range(len(points))), *([k] for k in range(len(points)))]:
        found = pushforward(output, [variables[k] for k in chosen], [directions[k] for k in chosen])
        step = 1e-6
        ends = []
        for sign in (step, -step):
            moved = [v + sign * directions[k].data * (k in chosen) for k, v in enumerate(points)]
            ends.append(evaluate(variables, [output], moved)[0])
        expected = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(evaluate(variables, [found], points)[0], expected, rtol=1e-6, atol=1e-7)


def test_of_states_and_mapped_outputs():
    check(lambda y, w, h: rows(lambda y_t, h, w: pt.tanh(pt.dot(w, h) + y_t), y, h, w), Y, W, Z)
    check(lambda x, a: rows(lambda x_t, s: [s * x_t, s * pt.exp(x_t)], x, [a, None])[1], X, np.array(0.5))
    check(lambda x, a: rows(lambda x_t: pt.exp(x_t) * a, x), X, np.array(0.5))


def test_of_states_with_several_taps_and_of_what_reaches_them_through_others():
    def cost(x, start, a):
        info = [{"initial": start, "taps": [-3, -1]}, a]
        found = rows(lambda x_t, s3, s1, r: [s3 * s1 + r, r * x_t], x, info)
        return found[0] * found[1]

    check(cost, X, Z, np.array(0.3))


def test_of_parts_of_sequences_in_reverse_and_through_a_condition():
    check(lambda x: rows(lambda x_t, s: s * x_t, x, 1.0, n_steps=3, go_backwards=True), X)
    check(
        lambda x, a: rows(lambda x_t, s: (s * a + x_t, engine.until(s * a + x_t > 5.0)), x, a),
        np.full(9, 2.0),
        np.array(0.9),
    )


def test_through_nested_loops():
    def cost(x, y, a):
        return rows(lambda x_t, s: pt.sum(rows(lambda y_t, r: pt.sin(r * a + y_t * x_t), y, s)), x, a)

    check(cost, X[:3] / 3, Z, np.array(0.3))


def test_of_gradients_and_gradients_of_them():
    x, a, t = pt.dvector(), pt.dscalar(), pt.dscalar()
    cost = pt.sum(rows(lambda x_t, s: pt.sin(s * a) * x_t, x, a) ** 2)
    tangent = pushforward(cost, a, t)
    first = grad(cost, a)
    found = evaluate([x, a, t], [tangent, grad(tangent, a), pushforward(first, a, t)], [X, 0.6, 2.0])
    due = evaluate([x, a], [first, grad(first, a)], [X, 0.6])
    np.testing.assert_allclose(found, [2 * due[0], 2 * due[1], 2 * due[1]])


def test_integers_are_carried_and_have_no_tangent():
    def cost(x):
        found = rows(lambda x_t, n, s: [n + 1, s * x_t * n], x, [np.int64(1), 0.5])
        return found[0] * found[1]

    check(cost, X)


def test_what_no_tangent_reaches_has_none():
    x, a, b = pt.dvector(), pt.dscalar(), pt.dscalar()
    first, second = rows(lambda x_t, s, r: [s + x_t, r * 2], x, [a, b])
    found = pushforward([first, second], b, b, disconnected_outputs="ignore", return_disconnected="none")
    assert found[0] is None
    tangents = [node for node in io_toposort((), found[1:]) if isinstance(node.op, Scan)]
    assert [node.op.info.n_states for node in tangents] == [1]


def test_a_loop_that_keeps_no_traces_is_refused():
    s, start = pt.dscalar(), pt.dvector()
    op = Scan([s], [s * 2], ScanInfo(0, ((-1,),), (1,), 0, 0))
    with pytest.raises(NotImplementedError, match="before it is rewritten"):
        pushforward(op(3, start), start, start)
