"""`Variable.eval` makes a function once, and again when the graph is another one."""

from __future__ import annotations

import pickle

import pytest

import engine
import engine.tensor as pt
from engine import evaluation
from engine.graph import FrozenFunctionGraph, FunctionGraph

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.fixture
def made(monkeypatch):
    """The functions that are made while the test runs."""
    found = []

    def counted(*arguments, **options):
        found.append(arguments)
        return engine.function(*arguments, **options)

    monkeypatch.setattr(evaluation, "function", counted)
    return found


def test_a_function_is_made_once_for_the_same_inputs_and_options(made):
    x, y = pt.dscalars("x", "y")
    total = x + 2 * y
    values = [total.eval({x: 1.0, "y": float(n)}) for n in range(4)]
    assert values == [1, 3, 5, 7]
    assert len(made) == 1
    assert total.eval({y: 1.0, x: 1.0}) == 3
    assert total.eval({x: 1.0, y: 1.0}, mode="NUMPY") == 3
    assert total.eval({x: 1.0}, givens=((y, x),)) == 3
    assert len(made) == 4


def test_a_changed_graph_is_evaluated_as_it_is(made):
    x, y = pt.dscalars("x", "y")
    middle = x * y
    total = middle + x
    assert total.eval({x: 2.0, y: 3.0}) == 8
    FunctionGraph([x, y], [total], clone=False).replace(middle, x + y)
    assert total.eval({x: 2.0, y: 3.0}) == 7
    assert len(made) == 2


def test_shared_variables_have_their_values_and_updates():
    state = engine.shared(1.0)
    total = state * 2
    assert total.eval() == 2
    state.set_value(3.0)
    assert total.eval() == 6
    state.default_update = state + 1
    assert [total.eval(), total.eval()] == [6, 8]


def test_options_that_cannot_be_hashed_are_warned_of(made):
    x, y = pt.dscalars("x", "y")
    for _ in range(2):
        with pytest.warns(UserWarning, match="could not be used to create a cache key"):
            assert (x + y).eval({x: 1.0}, givens={y: x}) == 2
    assert len(made) == 2


def test_functions_are_not_pickled_with_a_variable():
    x = pt.dscalar("x")
    total = x + 1
    total.eval({x: 1.0})
    assert not hasattr(pickle.loads(pickle.dumps(total)), "_fn_cache")


def test_a_variable_of_a_frozen_graph_is_evaluated_too(made):
    x = pt.dscalar("x")
    graph = FrozenFunctionGraph.from_io([x], [x + 1])
    for _ in range(2):
        assert graph.outputs[0].eval({graph.inputs[0]: 1.0}) == 2
    assert len(made) == 2
