"""`ifelse`: the values of one branch, of which only one is computed."""

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.gradient import pushforward
from engine.graph import Apply, Op
from engine.tensor.conditional import IfElse, ifelse

X, Y = np.array([1.0, 2.0]), np.array([0.5, 3.0, 4.0])
c, x, y = pt.dscalar("c"), pt.dvector("x"), pt.dvector("y")


class Watched(Op):
    """The identity, which writes its name down when it is computed."""

    __props__ = ("name",)
    computed: list[str] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def make_node(self, value: Any) -> Apply:
        value = pt.as_tensor_variable(value)
        return Apply(self, [value], [value.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        self.computed.append(self.name)
        output_storage[0][0] = inputs[0].copy()

    def infer_shape(self, fgraph: None, node: Apply, shapes: Any) -> Any:
        return shapes


def computed(f: engine.Function, *arguments: Any) -> tuple[Any, list[str]]:
    """Return the result of a call, and what it computed."""
    Watched.computed.clear()
    return f(*arguments), list(Watched.computed)


def test_only_what_the_chosen_branch_needs_is_computed():
    f = engine.function([c, x, y], ifelse(c, Watched("yes")(x * 2), Watched("no")(pt.exp(y))))
    value, names = computed(f, 1.0, X, Y)
    np.testing.assert_array_equal(value, X * 2)
    assert names == ["yes"]
    value, names = computed(f, 0.0, X, Y)
    np.testing.assert_allclose(value, np.exp(Y), rtol=1e-15)
    assert names == ["no"]


def test_what_both_branches_need_is_computed_once():
    both = Watched("both")(x)
    f = engine.function([c, x], [ifelse(c, pt.exp(both), Watched("no")(both).sum() + both), both])
    assert computed(f, 1.0, X)[1] == ["both"]
    assert computed(f, 0.0, X)[1] == ["both", "no"]


def test_a_choice_within_a_branch_is_lazy_too():
    inner = ifelse(c > 0, Watched("b")(x + 1), Watched("c")(y))
    f = engine.function([c, x, y], ifelse(c > 1, Watched("a")(x), inner))
    assert [computed(f, at, X, Y)[1] for at in (2.0, 0.5, -1.0)] == [["a"], ["b"], ["c"]]


def test_an_error_of_the_other_branch_is_not_raised():
    f = engine.function([c, x], ifelse(c, x[0], x[5]))
    assert f(1.0, X) == 1.0
    with pytest.raises(IndexError):
        f(0.0, X)


def test_branches_may_differ_in_shape_even_if_only_their_values_tell_it():
    chosen = ifelse(c, x[x > 1], y)
    f = engine.function([c, x, y], [chosen, chosen.shape[0]])
    assert [f(1.0, X, Y)[1], f(0.0, X, Y)[1]] == [1, 3]
    np.testing.assert_array_equal(f(1.0, X, Y)[0], [2.0])
    m = pt.dmatrix("m")
    g = engine.function([c, m], ifelse(c, m, m.T[:1]))
    assert g(1.0, np.ones((2, 3))).shape == (2, 3)
    assert g(0.0, np.ones((2, 3))).shape == (1, 2)


def test_static_lengths_that_both_branches_have_stay():
    row, other = pt.tensor("row", shape=(1, 3)), pt.tensor("other", shape=(2, 3))
    chosen = ifelse(c, row, other)
    assert chosen.type.shape == (None, 3)
    f = engine.function([c, row, other], chosen)
    assert [f(at, np.ones((1, 3)), np.ones((2, 3))).shape for at in (1.0, 0.0)] == [(1, 3), (2, 3)]


def test_nan_chooses_the_first_branch_and_several_values_come_together():
    first, second = ifelse(c, [x.sum(), x], [y.sum(), y * 2])
    f = engine.function([c, x, y], [first, second])
    assert f(np.nan, X, Y)[0] == 3.0
    assert f(0.0, X, Y)[0] == 7.5
    assert isinstance(ifelse(c, (x, x), (y, y)), tuple)


@pytest.mark.parametrize("condition", [1.0, 0.0])
def test_gradients_and_tangents_are_those_of_the_chosen_branch(condition: float):
    cost = (ifelse(c, x**2, y**3) * 3).sum()
    gradients = engine.function([c, x, y], engine.grad(cost, [x, y]))(condition, X, Y)
    due = [6 * X, 0 * Y] if condition else [0 * X, 9 * Y**2]
    for found, expected in zip(gradients, due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    tangent = pushforward(cost, [x, y], [pt.ones_like(x), pt.ones_like(y)])
    assert engine.function([c, x, y], tangent)(condition, X, Y) == pytest.approx(sum(map(np.sum, due)))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", engine.Mode("numpy"), engine.Mode("numba", None)])
def test_every_mode_gives_the_chosen_values(mode: Any):
    f = engine.function([c, x, y], ifelse(c, x * 2, y), mode=mode)
    np.testing.assert_array_equal(f(1.0, X, Y), X * 2)
    np.testing.assert_array_equal(f(0.0, X, Y), Y)


def test_in_a_loop_each_step_chooses():
    values = engine.scan(
        lambda v: ifelse(v > 1, Watched("large")(v) * 10, -v), sequences=x, return_updates=False
    )
    f = engine.function([x], values)
    value, names = computed(f, np.array([0.5, 2.0, 1.0, 3.0]))
    np.testing.assert_array_equal(value, [-0.5, 20.0, -1.0, 30.0])
    assert names == ["large", "large"]


def test_branches_of_different_types_are_refused():
    with pytest.raises(TypeError, match="one dtype and one number of dimensions"):
        ifelse(c, x, x.sum())
    with pytest.raises(TypeError, match="one dtype"):
        ifelse(c, x, pt.cast(x, "float32"))
    with pytest.raises(TypeError, match="must have 0 dimensions"):
        ifelse(x, x, x)
    with pytest.raises(ValueError, match="one has 2 values, the other 1"):
        ifelse(c, [x, x], [x])
    with pytest.raises(ValueError, match="4 values are needed"):
        IfElse(2)(c, x, x)


def test_a_condition_is_connected_without_a_slope():
    x = pt.dscalar("x")
    found = engine.grad(ifelse(x > 0, x, 2 * x), x)
    assert found.eval({x: -1.0}, mode="NUMPY") == 2
    assert engine.grad(ifelse(x > 0, 0, 1), x).eval({x: 1.0}, on_unused_input="ignore") == 0
