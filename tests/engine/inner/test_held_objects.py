"""Values of users' types, and any objects, in programs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.errors import ArgumentError, DisconnectedInputError
from engine.gradient import disconnected_type
from engine.graph import Apply, Constant, Op, Type
from engine.graph.generic import generic
from engine.ifelse import ifelse
from engine.inner.from_graph import OpFromGraph
from engine.inner.held_objects import with_held_objects
from engine.tensor.optimize import minimize, root

pytestmark = pytest.mark.usefixtures("kernels_once")
MODES = ("FAST_RUN", "NUMPY")


class WordType(Type):
    """The set of all strings."""

    def filter(self, value, strict=False, allow_downcast=None):
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is no word")
        return value


word = WordType()


class Signed(Op):
    """`x` with the sign that a word says."""

    __props__ = ()

    def make_node(self, x, sign):
        return Apply(self, [x, sign], [x.type()])

    def perform(self, node, inputs, output_storage):
        x, sign = inputs
        output_storage[0][0] = np.array(-x if sign == "minus" else x)

    def connection_pattern(self, node):
        return [[True], [False]]

    def pullback(self, inputs, outputs, cotangents):
        return [self(cotangents[0], inputs[1]), disconnected_type()]


class Opposite(Op):
    """The word for the other sign."""

    __props__ = ()

    def make_node(self, sign):
        return Apply(self, [sign], [word()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = "plus" if inputs[0] == "minus" else "minus"


signed, opposite = Signed(), Opposite()


@pytest.mark.parametrize("mode", MODES)
def test_values_of_a_users_type_are_arguments_results_and_between(mode):
    x, sign = pt.dscalar("x"), word("sign")
    f = engine.function([x, sign], [signed(x, opposite(sign)), opposite(sign), sign], mode=mode)
    assert f(2.0, "plus") == [-2.0, "minus", "plus"]
    only_inside = engine.function([x], signed(x, opposite(Constant(word, "plus"))), mode=mode)
    assert only_inside(2.0) == -2.0


def test_an_argument_is_what_its_type_takes():
    sign = word("sign")
    with pytest.raises(ArgumentError, match="WordType"):
        engine.function([sign], opposite(sign))(3)


@pytest.mark.parametrize("mode", MODES)
def test_any_object_is_chosen_lazily_and_returned(mode):
    c, a, b = pt.iscalar("c"), generic("a"), generic("b")
    f = engine.function([c, a, b], ifelse(c, a, b), mode=mode)
    assert f(1, {"a": [1]}, None) == {"a": [1]}
    array = np.arange(3)
    np.testing.assert_array_equal(f(0, {}, array), array, strict=True)


def test_a_program_holds_a_copy():
    given = [1]
    a = generic("a")
    found = engine.function([a], a)(given)
    assert found == given
    assert found is not given
    held = engine.shared({"a": 1})
    assert engine.function([], held)() == {"a": 1}


def test_what_cannot_be_pickled_is_refused():
    a = generic("a")
    with pytest.raises(TypeError, match="Generic"):
        engine.function([a], a)(lambda: None)


def test_a_function_on_objects_is_not_stored_and_can_be_pickled():
    a = generic("a")
    f = engine.function([a], a)
    assert "Generic" in f.cache_info.reason
    assert pickle.loads(pickle.dumps(f))("again") == "again"


def test_an_object_is_not_updated():
    held = engine.shared({"a": 1})
    with pytest.raises(TypeError, match="set_value"):
        engine.function([], [], updates={held: held})


@pytest.mark.parametrize("solve", [minimize, root])
def test_the_graph_of_an_op_has_values_of_a_users_type(solve):
    x, shift, sign = pt.dscalar("x"), pt.dscalar("shift"), word("sign")
    solution, _ = solve((signed(x, sign) + shift) ** 2, x)
    f = engine.function([x, shift, sign], [solution, engine.gradient.grad(solution, shift)])
    np.testing.assert_allclose(f(np.pi, 2.0, "plus"), [-2.0, -1.0], rtol=1e-3)
    np.testing.assert_allclose(f(np.pi, 2.0, "minus"), [2.0, 1.0], rtol=1e-3)
    with pytest.raises(DisconnectedInputError):
        engine.gradient.grad(solution, sign)


def test_a_graph_made_an_op_has_them_too():
    x, sign = pt.dvector("x"), word("sign")
    op = OpFromGraph([x, sign], [signed(x, opposite(sign)) * 2])
    f = engine.function([x, sign], op(x, sign))
    np.testing.assert_array_equal(f([1.0, 2.0], "plus"), [-2.0, -4.0])


def test_a_graph_of_tensors_is_left_alone():
    x = pt.vector("x")
    graph = engine.graph.FrozenFunctionGraph.from_io([x], [pt.exp(x) + x])
    assert with_held_objects(graph) is graph
