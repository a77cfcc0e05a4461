"""Numbers and tensors of 0 dimensions: conversions, and functions of numbers."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import scalar
from engine.compile.mode import Mode
from engine.graph import ancestors
from engine.inner import Composite, ScalarLoop
from engine.scalar import ScalarOp, ScalarType

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_functions_take_and_return_numbers(mode: str) -> None:
    x, y = scalar.floats("xy")
    f = engine.function([x, engine.In(y, value=3.0)], [x + y * 2, x < y, abs(-x) ** 2 // 3], mode=mode)
    assert [value.item() for value in f(1.0)] == [7.0, True, 0.0]
    assert f(x=1, y=0)[1].dtype == "bool"
    assert engine.function([], scalar.constant(3) * 2, mode=mode)() == 6
    assert (x / 4).eval({"x": 2.0}) == 0.5


def test_ops_that_hold_a_graph_of_numbers_are_compiled() -> None:
    x, y = scalar.floats("xy")
    n = scalar.int64("n")
    loop = ScalarLoop([x], [x + y], [y])
    assert engine.function([n, x, y], loop(n, x, y))(5, 0, 2) == 10
    both = engine.function([x, y], Composite([x, y], [x + y, x * y]).make_node(x, y).outputs)
    assert [value.item() for value in both(2.0, 3.0)] == [5.0, 6.0]


def test_numbers_and_tensors_mix() -> None:
    x, v, t = scalar.float64("x"), pt.dvector("v"), pt.dscalar("t")
    f = engine.function([x, v, t], v * pt.as_tensor_variable(x * 2) + pt.exp(scalar.sqrt(t)))
    np.testing.assert_allclose(f(3.0, np.ones(2), 4.0), np.full(2, 6 + np.exp(2)))
    number = pt.scalar_from_tensor(t)
    assert number.type == ScalarType("float64")
    assert pt.as_tensor_variable(number) is t
    assert pt.tensor_from_scalar(number).owner.inputs == [number]
    gradient = engine.grad(pt.tensor_from_scalar(number**3), t)
    assert gradient.eval({t: 2.0}) == 12
    with pytest.raises(TypeError, match="0 dimensions"):
        pt.scalar_from_tensor(v)


def test_references_convert() -> None:
    node = pt.TensorFromScalar().make_node(scalar.float32("x"))
    storage: list[list[object]] = [[None]]
    node.op.perform(node, [np.float32(2)], storage)
    assert isinstance(storage[0][0], np.ndarray)
    node = pt.ScalarFromTensor().make_node(pt.fscalar())
    node.op.perform(node, [np.array(2, "float32")], storage)
    assert isinstance(storage[0][0], np.float32)


def test_gradients_of_numbers_are_numbers() -> None:
    x, y = scalar.floats("xy")
    gradients = engine.grad(scalar.log(x) * y, [x, y])
    assert all(g.type == x.type for g in gradients)
    assert [g.item() for g in engine.function([x, y], gradients)(2.0, 3.0)] == [1.5, np.log(2.0)]
    assert engine.grad(x > y, y).eval({"y": 2.0}) == 0


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_an_op_that_makes_a_tensor_of_a_computed_number_is_compiled(mode: str) -> None:
    t = pt.dscalar("t")
    number = pt.scalar_from_tensor(t)
    outputs = [pt.TensorFromScalar()(number), pt.exp(pt.TensorFromScalar()(number**2 + 1))]
    f = engine.function([t], outputs, mode=mode)
    np.testing.assert_allclose(f(2.0), [2.0, np.exp(5.0)])
    if mode == "FAST_RUN":
        assert [str(node.op) for node in f.maker.fgraph.apply_nodes if "Scalar" in str(node.op)] == []


def test_a_number_of_a_tensor_and_its_tensor_need_no_rewrite() -> None:
    t = pt.lscalar("t")
    output = pt.TensorFromScalar()(pt.scalar_from_tensor(t)) * 2
    assert engine.function([t], output, mode=Mode(optimizer=None))(4) == 8


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY", Mode(optimizer=None)])
def test_numbers_between_tensors_are_computed(mode: Mode | str) -> None:
    t, k = pt.dscalar("t"), pt.lscalar("k")
    x, n = pt.scalar_from_tensor(t), pt.scalar_from_tensor(k)
    loop = ScalarLoop([x], [x * 2.0], until=x > 9.0).make_node(n, x).outputs
    numbers = [x**3 + 1, scalar.exp(x) + n, n // 2 - n, x < n, scalar.switch(x < n, x, 7.0), *loop]
    f = engine.function([t, k], [pt.tensor_from_scalar(number) for number in numbers], mode=mode)
    found = f(2.0, 5)
    assert [value.dtype.name for value in found] == [
        *["float64"] * 2,
        "int64",
        "bool",
        *["float64"] * 2,
        "bool",
    ]
    np.testing.assert_allclose(found, [9, np.exp(2) + 5, -3, True, 2, 32, True])


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
def test_numbers_that_kernels_do_not_compute_become_tensors_too(dtype: str) -> None:
    t = pt.scalar("t", dtype=dtype)
    number = pt.scalar_from_tensor(t)
    f = engine.function([t], [pt.tensor_from_scalar(number), pt.tensor_from_scalar(number * number)])
    assert not any("Scalar" in str(node.op) for node in f.maker.fgraph.apply_nodes)
    assert f(np.array(3, dtype)) == [3, 9]


@pytest.mark.parametrize("mode", ["FAST_RUN", Mode(optimizer=None)])
def test_gradients_flow_through_numbers_between_tensors(mode: Mode | str) -> None:
    t, u = pt.dscalar("t"), pt.fscalar("u")
    x, y = pt.scalar_from_tensor(t), pt.scalar_from_tensor(u)
    cost = pt.tensor_from_scalar(scalar.log(x) * y + x) * t
    gradients = engine.grad(cost, [t, u])
    assert [g.type.dtype for g in gradients] == ["float64", "float32"]
    tangent = engine.pushforward(cost, [t, u], [pt.constant(2.0), pt.constant(np.float32(1.0))])
    expected = [3 + 2 * 2 + np.log(2) * 3, 2 * np.log(2)]
    found = engine.function([t, u], [*gradients, tangent], mode=mode)(2.0, 3.0)
    np.testing.assert_allclose(found, [*expected, 2 * expected[0] + expected[1]], rtol=1e-6)
    counted = pt.tensor_from_scalar(scalar.cast(x, "int64") * y)
    assert engine.grad(counted, t).eval({t: 2.0}) == 0


def test_a_gradient_of_numbers_is_a_graph_of_numbers() -> None:
    x, k = scalar.float32("x"), scalar.float64("k")
    cost = scalar.log(x) * scalar.exp(x * 2)
    slope = Composite([x], [engine.grad(cost, x)])
    np.testing.assert_allclose(
        engine.function([x], slope(x))(2.0), np.exp(4.0) * (0.5 + 2 * np.log(2.0)), rtol=1e-6
    )
    gradients = engine.grad(scalar.gammainc(k, x), [k, x])
    ops = [variable.owner.op for variable in ancestors(gradients) if variable.owner is not None]
    assert all(isinstance(op, ScalarOp) for op in ops)
    assert any(isinstance(op, ScalarLoop) for op in ops)
    a, b = pt.dscalar("a"), pt.fscalar("b")
    found = engine.function([k, x], gradients)(2.0, 3.0)
    due = engine.function([a, b], engine.grad(pt.gammainc(a, b), [a, b]))(2.0, 3.0)
    assert [value.item() for value in found] == [value.item() for value in due]


def test_what_no_number_can_compute_stays_a_tensor_in_a_gradient_of_numbers() -> None:
    x, v = scalar.float64("x"), pt.dvector("v")
    cost = pt.tensor_from_scalar(x * x) * pt.sum(v)
    gradient = engine.grad(cost, x)
    assert gradient.type == x.type
    assert engine.function([x, v], gradient)(3.0, [1.0, 2.0]) == 18


@pytest.mark.parametrize(("dtype", "slope"), [("int64", 0.0), ("float64", 1.0)])
def test_a_tensor_changes_with_the_number_that_it_is_if_that_is_no_whole_one(dtype, slope):
    number = engine.scalar.get_scalar_type(dtype)("number")
    found = engine.grad(pt.tensor_from_scalar(number), number)
    assert engine.function([number], found, on_unused_input="ignore")(3) == slope
