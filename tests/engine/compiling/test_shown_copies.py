"""`maker.fgraph` shows the copies that keep results apart from arguments, constants and each other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.ops import DeepCopyOp

pytestmark = pytest.mark.usefixtures("kernels_once")


def copies(function):
    function.maker.fgraph.check_integrity()
    return [isinstance(v.owner and v.owner.op, DeepCopyOp) for v in function.maker.fgraph.outputs]


@pytest.mark.parametrize(
    ("results", "due"),
    [
        (lambda x: [x], [True]),
        (lambda x: [x.T], [True]),
        (lambda x: [x[1:].T[0]], [True]),
        (lambda x: [pt.constant(np.ones((2, 2)))], [True]),
        (lambda x: [x + 1], [False]),
        (lambda x: [x + 1, (x + 1).T], [True, False]),
        (lambda x: [x + 1, x + 1], [True, False]),
    ],
)
def test_results_that_would_share_memory_are_copied_and_shown_so(results, due):
    x, value = pt.dmatrix("x"), np.arange(4.0).reshape(2, 2)
    function = engine.function([x], results(x), on_unused_input="ignore")
    assert copies(function) == due
    found = function(value)
    held = [*found, value]
    pairs = [(a, b) for n, a in enumerate(held) for b in held[:n]]
    assert not any(np.shares_memory(a, b) for a, b in pairs)


def test_an_old_value_that_is_replaced_needs_no_copy():
    x, s = pt.dvector("x"), engine.shared(np.zeros(3), name="s")
    replaced = engine.function([x], s, updates={s: s + x})
    assert copies(replaced) == [False, False]
    kept = engine.function([x], s, on_unused_input="ignore")
    assert copies(kept) == [True]
    given = engine.function([x], [], updates={s: x})
    assert copies(given) == [True]
    value = np.ones(3)
    given(value)
    value[:] = 7
    np.testing.assert_array_equal(s.get_value(), np.ones(3))


def test_the_graph_of_a_function_is_one_of_its_variables():
    x, state = pt.vector("x"), engine.shared(np.ones(2))
    f = engine.function([x], x[1:] * state)
    assert f.maker.fgraph.inputs == [x, state]
    again = pickle.loads(pickle.dumps(f))
    assert again.maker.fgraph.inputs[0] is not x
    assert again.maker.fgraph.inputs[0].name == "x"
    assert f.copy().maker.fgraph.inputs[0] is x


def test_the_graph_says_which_output_an_input_has_in_the_next_call():
    x, state = pt.vector("x"), engine.shared(np.ones(2))
    f = engine.function([x], [x, x * 2], updates={state: state + x})
    assert f.maker.fgraph.update_mapping == {2: 1}
    assert f.copy().maker.fgraph.update_mapping == {2: 1}
    assert f.copy(delete_updates=True).maker.fgraph.update_mapping == {}
    f(np.ones(2))
    np.testing.assert_array_equal(state.get_value(), np.full(2, 2.0))


def test_a_variable_that_something_computes_is_no_input_of_the_graph():
    x = pt.vector("x")
    middle = pt.exp(x)
    f = engine.function([middle], middle * 2)
    (found,) = f.maker.fgraph.inputs
    assert found.owner is None
    assert len(f.maker.fgraph.apply_nodes) == 1
