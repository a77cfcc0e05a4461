"""Derivatives of user Ops, by PyTensor's protocol and by its older methods."""

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import NullGradientError
from engine.gradient import (
    DisconnectedType,
    disconnected_type,
    grad,
    grad_not_implemented,
    grad_undefined,
    pushforward,
)
from engine.graph import Apply, Op

X = np.array([1.0, 2.0, -3.0])
x, y = pt.dvector("x"), pt.dvector("y")


class Product(Op):
    """x * y; the derivatives are those of subclasses."""

    __props__ = ()

    def make_node(self, x: Any, y: Any) -> Apply:
        x, y = pt.as_tensor_variable(x), pt.as_tensor_variable(y)
        return Apply(self, [x, y], [x.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] * inputs[1]


class ByPullback(Product):
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        return [cotangents[0] * inputs[1], cotangents[0] * inputs[0]]


class ByLop(Product):
    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> Any:
        return [output_grads[0] * inputs[1], output_grads[0] * inputs[0]]


class ByGrad(Product):
    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [output_grads[0] * inputs[1], output_grads[0] * inputs[0]]


class ByRop(ByGrad):
    def R_op(self, inputs: Any, eval_points: Any) -> Any:
        if eval_points[0] is None:
            return [eval_points[1] * inputs[0]]
        return [eval_points[0] * inputs[1] * 10]


class OfFirst(Product):
    """Has a gradient for its first input only; the other's is what `second` says."""

    __props__ = ("second",)

    def __init__(self, second: str) -> None:
        self.second = second

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        absent = {
            "disconnected": lambda: disconnected_type(),
            "undefined": lambda: grad_undefined(self, 1, inputs[1], "because"),
            "unwritten": lambda: grad_not_implemented(self, 1, inputs[1]),
            "few": lambda: None,
        }[self.second]()
        first = cotangents[0] * inputs[1]
        return [first] if self.second == "few" else [first, absent]


@pytest.mark.parametrize("op", [ByPullback(), ByLop(), ByGrad()], ids=str)
def test_each_method_gives_the_gradient(op: Op):
    f = engine.function([x, y], grad((op(x, y) ** 2).sum(), [x, y]))
    first, second = f(X, X + 1)
    np.testing.assert_allclose(first, 2 * X * (X + 1) ** 2)
    np.testing.assert_allclose(second, 2 * X**2 * (X + 1))


def test_an_older_forward_method_gets_none_and_is_used_only_if_asked():
    along = pushforward(ByRop()(x, y), x, pt.ones_like(x))
    np.testing.assert_allclose(engine.function([x, y], along)(0 * X, X), 10 * X)
    other = pushforward(ByRop()(x, y), y, pt.ones_like(y))
    np.testing.assert_allclose(engine.function([x, y], other)(X, 0 * X), X)
    twice = pushforward(ByRop()(x, y), x, pt.ones_like(x), use_op_pushforward=False)
    np.testing.assert_allclose(engine.function([x, y], twice)(0 * X, X), X)


def test_a_gradient_that_is_not_there_counts_only_where_it_is_asked_for():
    for second in ("disconnected", "undefined", "unwritten"):
        found = grad(OfFirst(second)(x, y).sum(), x)
        np.testing.assert_allclose(engine.function([x, y], found, on_unused_input="ignore")(X, 2 * X), 2 * X)
    with pytest.raises(NullGradientError, match="for its input 1, y: it is not defined: because"):
        grad(OfFirst("undefined")(x, y).sum(), y)
    with pytest.raises(NullGradientError, match="it is not implemented"):
        grad(OfFirst("unwritten")(x, y).sum(), [x, y])
    with pytest.raises(ValueError, match="2 inputs, and gave 1 gradients"):
        grad(OfFirst("few")(x, y).sum(), x)


class Second(Op):
    """Gives a copy and a number that does not depend on its input."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type(), pt.dscalar()])

    def connection_pattern(self, node):
        return [[True, False]]

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0]]


def test_an_undefined_gradient_is_not_needed_behind_what_does_not_depend():
    copied, number = Second()(x)
    assert grad(OfFirst("undefined")(copied, pt.fill(y, number)).sum(), x).type == x.type


def test_a_disconnected_gradient_is_returned_as_one_if_asked():
    found = grad(x.sum(), y, disconnected_inputs="ignore", return_disconnected="disconnected")
    assert isinstance(found.type, DisconnectedType)
    with pytest.raises(TypeError, match="it has none"):
        disconnected_type.filter(1.0)


def test_gradients_of_named_variables_have_names():
    cost = (x**2).sum()
    cost.name = "cost"
    assert grad(cost, x).name == "(dcost/dx)"
    assert grad(cost, x, add_names=False).name is None
