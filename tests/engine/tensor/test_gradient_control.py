"""Ops that change the gradient and not the value."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import gradient
from engine.errors import NullGradientError
from engine.gradient import (
    disconnected_grad,
    grad_clip,
    grad_scale,
    pushforward,
    undefined_grad,
    zero_grad,
)
from engine.tensor.gradient_control import GradientControl

X = np.array([0.5, -2.0, 3.0])
x = pt.dvector("x")


@pytest.mark.parametrize(
    ("control", "due"),
    [
        (zero_grad, X**2),
        (disconnected_grad, X**2),
        (lambda v: grad_clip(v, -1, 2), X**2 + 2 * X * np.clip(X, -1, 2)),
        (lambda v: grad_scale(v, 0.5), X**2 + X * X),
    ],
)
def test_the_value_stays_and_the_gradient_changes(control, due):
    squares = control(x**2)
    f = engine.function([x], [squares, engine.grad((x * squares).sum(), x)])
    value, gradient = f(X)
    np.testing.assert_array_equal(value, X**2)
    np.testing.assert_allclose(gradient, due, rtol=1e-14)


def test_no_such_op_is_left_in_what_runs():
    f = engine.function([x], grad_clip(zero_grad(x), 0, 1) + 1)
    assert not any(isinstance(node.op, GradientControl) for node in f.maker.fgraph.apply_nodes)


def test_without_rewrites_the_value_is_the_same():
    f = engine.function([x], grad_scale(x, 3.0), mode=engine.Mode("numba", None))
    np.testing.assert_array_equal(f(X), X)


def test_tangents_stop_where_gradients_do():
    one = pt.ones_like(x)
    stopped = pushforward(zero_grad(x) * x, x, one)
    np.testing.assert_array_equal(engine.function([x], stopped)(X), X)
    halted = pushforward(disconnected_grad(x) * x, x, one)
    np.testing.assert_array_equal(engine.function([x], halted)(X), X)


def test_an_undefined_gradient_and_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(NullGradientError, match="declared undefined"):
        engine.grad(undefined_grad(x).sum(), x)
    with pytest.raises(ValueError, match="the lower one must be the first"):
        grad_clip(x, 2, 1)


def test_the_ops_of_the_functions_have_names_of_their_own():
    x = pt.dscalar("x")
    for op, function in (
        (gradient.zero_grad_, gradient.zero_grad),
        (gradient.disconnected_grad_, gradient.disconnected_grad),
        (gradient.undefined_grad_, gradient.undefined_grad),
    ):
        assert function(x).owner.op is op
        assert op(x).owner.op == function(x).owner.op
