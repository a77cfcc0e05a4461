"""Gradients through a Scan: against finite differences, by hand where they are cut off, and what they are made of."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad, scan, verify_grad
from engine.errors import DisconnectedInputError
from engine.graph import io_toposort
from engine.graph.reference import evaluate
from engine.inner import OpFromGraph, Scan

RANDOM = np.random.default_rng(4)
X, Y, Z = RANDOM.normal(size=5), RANDOM.normal(size=(5, 3)), RANDOM.normal(size=3)
W = RANDOM.normal(size=(3, 3)) / 2


def rows(*arguments, **options):
    return scan(*arguments, **options, return_updates=False)


def scans(*variables):
    return [node for node in io_toposort((), variables) if isinstance(node.op, Scan)]


def value(output, variables=(), values=()):
    return evaluate(list(variables), [output], list(values))[0]


def recurrent(y, w, h):
    """A recurrent network: its states."""
    return rows(lambda y_t, h, w: pt.tanh(pt.dot(w, h) + y_t), y, h, w)


def test_of_sequences_initial_values_and_non_sequences():
    verify_grad(recurrent, [Y, W, Z])
    verify_grad(lambda y, w, h: recurrent(y, w, h)[-1], [Y, W, Z])
    verify_grad(lambda y, w, h: recurrent(y, w, h)[1] * 2, [Y, W, Z])


def test_of_mapped_outputs():
    verify_grad(lambda x, a: rows(lambda x_t, a: pt.exp(x_t) * a, x, None, a), [X, Z])
    verify_grad(lambda x, a: rows(lambda x_t, s: [s * x_t, s * s], x, [a, None])[1], [X, np.array(0.5)])


def test_of_all_outputs_together():
    def cost(x, a, b):
        first, second, third = rows(
            lambda x_t, p, q, b: [p * x_t + q, pt.sin(q) * b, p * q], x, [a, b, None], b
        )
        return first * second + third**2

    verify_grad(cost, [X, np.array(0.5), np.array(0.7)])


@pytest.mark.parametrize("taps", [[-2, -1], [-1, -2], [-2], [-3, -1], [-3], [-4, -2]])
def test_of_states_with_any_taps(taps):
    def cost(x, start):
        initial = {"initial": start, "taps": taps}
        return rows(lambda x_t, *s: pt.tanh(sum(k * v for k, v in enumerate(s, 1)) * x_t), x, initial)

    verify_grad(cost, [X, RANDOM.normal(size=-min(taps))])
    verify_grad(lambda x, start: cost(x, start)[-1], [X, RANDOM.normal(size=-min(taps))])


def test_of_several_states_with_several_taps():
    def cost(x, p, q):
        found = rows(
            lambda x_t, p2, p1, q3: [p2 * q3 + x_t, pt.cos(p1) * x_t],
            x,
            [{"initial": p, "taps": [-2, -1]}, {"initial": q, "taps": [-3]}],
        )
        return found[0] * found[1]

    verify_grad(cost, [X, RANDOM.normal(size=(2,)), RANDOM.normal(size=(3,))])


def test_of_sequences_with_taps_in_reverse_of_different_lengths_and_not_used_up():
    def taps(x, y):
        return rows(lambda before, after, y_t: before * after + y_t, [{"input": x, "taps": [-1, 2]}, y])

    verify_grad(taps, [X, X[:4]])
    verify_grad(lambda x: rows(lambda x_t, s: s * x_t, x, 1.0, go_backwards=True), [X])
    verify_grad(lambda x: rows(lambda x_t, s: s * x_t, x, 1.0, n_steps=3), [X])
    verify_grad(lambda x: rows(lambda x_t, s: s * x_t, x, 1.0, n_steps=3, go_backwards=True), [X])
    verify_grad(lambda x: rows(lambda a, b: a * b, [x, x]), [X])


def test_through_a_condition():
    def cost(x, a):
        return rows(
            lambda x_t, s, a: ([s * a + x_t, s * s], engine.until(s * a + x_t > 5.0)), x, [a, None], a
        )

    steps = value(cost(pt.constant(np.full(9, 2.0)), pt.constant(0.9))[0].shape[0])
    assert 1 < steps < 9
    for number in (0, 1):
        verify_grad(lambda x, a, number=number: cost(x, a)[number], [np.full(9, 2.0), np.array(0.9)])
    verify_grad(lambda x: rows(lambda x_t: (x_t**2, engine.until(x_t > 0.9)), x), [np.linspace(0, 2, 9)])


def test_through_nested_loops():
    def cost(x, y, a):
        def outer(x_t, s, y, a):
            inner = rows(lambda y_t, r: pt.sin(r * a + y_t * x_t) + s, y, s)
            return inner[-1] + pt.sum(inner)

        return rows(outer, x, a, [y, a])

    verify_grad(cost, [X[:3] / 3, Z / 3, np.array(0.3)])


def test_through_ops_that_hold_graphs_and_what_stands_in_for_their_gradients():
    a, b = pt.dscalar(), pt.dscalar()
    plain = OpFromGraph([a, b], [a * pt.sin(b)])
    verify_grad(lambda x: rows(lambda x_t, s: plain(s, x_t), x, 1.0), [X])
    twice = OpFromGraph([a], [a], pullback=lambda inputs, outputs, cotangents: [2 * cotangents[0]])
    x = pt.dscalar()
    cost = rows(lambda s: twice(s), outputs_info=x, n_steps=3)[-1]
    assert value(grad(cost, x), [x], [1.0]) == 8


def test_of_gradients():
    def slope(x, a):
        y = rows(lambda x_t, s, a: pt.sin(s * a) * x_t, x, a, a)
        first = grad(pt.sum(y**2), [x, a])
        return first[0] * first[1]

    verify_grad(slope, [X, np.array(0.6)])

    def two_taps(start):
        y = rows(lambda p, q: p * q + p, outputs_info={"initial": start, "taps": [-2, -1]}, n_steps=4)
        return grad(pt.sum(y**2), start)

    verify_grad(two_taps, [np.array([0.3, -0.4])])
    verify_grad(lambda y, w, h: grad(pt.sum(recurrent(y, w, h)[-1] ** 2), w), [Y[:3], W, Z])


def test_of_gradients_of_gradients():
    def third(a):
        y = rows(lambda s: pt.sin(s) * s, outputs_info=a, n_steps=3)[-1]
        return grad(grad(y, a), a)

    verify_grad(third, [np.array(0.7)])


def test_of_shared_variables_that_a_step_updates():
    def cost(x, a):
        scale = engine.shared(0.5)
        _, updates = scan(lambda x_t: {scale: scale * x_t + a}, x)
        return updates[scale] * x

    verify_grad(cost, [X, np.array(0.2)])
    x, scale = pt.dvector(), engine.shared(0.5)
    _, updates = scan(lambda x_t: {scale: scale * x_t}, x)
    assert value(grad(updates[scale], scale), [x], [X]) == pytest.approx(np.prod(X))


def test_no_steps_pass_everything_to_the_initial_value():
    x, w, h = pt.dmatrix(), pt.dmatrix(), pt.dvector()
    steps = pt.lscalar()
    y = rows(lambda x_t, h: pt.tanh(pt.dot(w, h) + x_t), x, h, n_steps=steps)
    gradients = grad(pt.sum(pt.concatenate([pt.expand_dims(h, 0), y])[-1] ** 2), [x, w, h])
    found = evaluate([x, w, h, steps], gradients, [Y, W, Z, 0])
    assert not found[0].any()
    assert not found[1].any()
    assert found[0].shape == Y.shape
    np.testing.assert_allclose(found[2], 2 * Z)


def test_what_is_known_not_to_matter_is_disconnected():
    x, a, b = pt.dvector("x"), pt.dscalar("a"), pt.dscalar("b")
    first, second = rows(lambda x_t, s, r: [s + x_t, r * b], x, [a, a])
    with pytest.raises(DisconnectedInputError):
        grad(pt.sum(first), b)
    with pytest.raises(DisconnectedInputError):
        grad(pt.sum(second), x)
    steps = pt.lscalar()
    found = rows(lambda s: 2 * s, outputs_info=a, n_steps=steps)
    with pytest.raises(DisconnectedInputError):
        grad(found[-1], steps)


def test_only_what_is_asked_for_is_computed():
    y, w, h = pt.dmatrix(), pt.dmatrix(), pt.dvector()
    cost = pt.sum(recurrent(y, w, h)[-1])
    (_, back) = scans(grad(cost, h))
    assert (back.op.info.n_states, back.op.info.n_mapped) == (1, 0)
    (_, back) = scans(grad(cost, y))
    assert (back.op.info.n_states, back.op.info.n_mapped) == (1, 1)


def test_what_a_step_computed_is_read_and_not_computed_again():
    y, w, h = pt.dmatrix(), pt.dmatrix(), pt.dvector()
    (_, back) = scans(*grad(pt.sum(recurrent(y, w, h)), [y, w, h]))
    assert not any(str(node.op) == "tanh" for node in back.op.fgraph.nodes)


def test_integers_are_carried_and_have_no_gradient():
    def cost(x):
        count = {"initial": np.array([1, 1]), "taps": [-2, -1]}
        both = rows(lambda x_t, n, m, s: [n + m, s * x_t + m], x, [count, 0.5])
        return both[1] * both[0]

    verify_grad(cost, [X])
    n, x = pt.lscalar(), pt.dvector()
    y = rows(lambda x_t, k: x_t * k, x, None, n)
    assert value(grad(pt.sum(y), n), [n, x], [3, X]) == pytest.approx(X.sum())
    first = rows(lambda k, s: [k, s * k], outputs_info=[n, 1.0], n_steps=3)[1][-1]
    assert value(grad(first, n), [n], [3]).dtype == np.float64


def test_gradients_of_float32_are_float32():
    x = pt.fvector()
    y = rows(lambda x_t, s: s * x_t, x, np.float32(1))
    assert grad(pt.sum(y), x).type.dtype == "float32"
    verify_grad(lambda x: rows(lambda x_t, s: s * x_t, x, np.float32(1)), [X.astype("float32")])


@pytest.mark.parametrize(("limit", "steps"), [(1, 5), (2, 5), (5, 5), (7, 5), (2, 0)])
def test_a_gradient_may_go_back_only_so_many_steps(limit, steps):
    x, start, a = pt.dvector(), pt.dscalar(), pt.dscalar()
    y = rows(lambda x_t, s, a: a * s + x_t**2, x, start, a, n_steps=steps, truncate_gradient=limit)
    gradients = grad(pt.sum(y) + start, [x, start, a])
    found = evaluate([x, start, a], gradients, [X, 0.5, 0.9])
    states = [0.5]
    for x_t in X[:steps]:
        states.append(0.9 * states[-1] + x_t**2)
    pending, of_a, of_x = 0.0, 0.0, np.zeros(5)
    for t in reversed(range(steps)):
        if steps - t > limit:
            pending = 0.0
            break
        pending += 1
        of_x[t] = 2 * X[t] * pending
        of_a += states[t] * pending
        pending *= 0.9
    np.testing.assert_allclose(found[0], of_x)
    np.testing.assert_allclose(found[1:], [1 + pending, of_a])


def test_the_gradient_of_a_loop_that_keeps_no_traces_is_refused():
    from engine.inner import ScanInfo

    s = pt.dscalar()
    op = Scan([s], [s * 2], ScanInfo(0, ((-1,),), (1,), 0, 0))
    start = pt.dvector()
    with pytest.raises(NotImplementedError, match="before it is rewritten"):
        grad(pt.sum(op(3, start)), start)
