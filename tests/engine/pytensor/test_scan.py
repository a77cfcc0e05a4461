"""Loops: every kind of recurrence and its gradient, as PyTensor's rewrites leave them, against the numba mode."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.raise_op import Assert
from pytensor.scan.utils import until

import engine.pytensor
from engine.pytensor.linker import EngineLinker
from tests.engine.pytensor.comparing import NO_REWRITES, check_same, outcome

Case = tuple[list[Any], list[Any], list[Any]]
x, a, n = pt.dvector("x"), pt.dmatrix("a"), pt.lscalar("n")
ZERO, ONE = pt.constant(np.array(0.0)), pt.constant(np.array(1.0))


def scan(step: Any, **arguments: Any) -> Any:
    return pytensor.scan(step, return_updates=False, **arguments)


def one_row_back() -> Case:
    rows = scan(lambda item, row: pt.tanh(a @ row) + item, sequences=[x], outputs_info=[pt.zeros(3)])
    outputs = [rows, rows[-1], pytensor.grad(rows.sum(), a), pytensor.grad(rows[-1].sum(), x)]
    return [x, a], outputs, [np.arange(4.0) / 3, np.eye(3) * 0.5 + 0.1]


def several_rows_back() -> Case:
    first = scan(
        lambda two, one: one * 0.5 + two * 0.3, outputs_info=[{"initial": x[:2], "taps": [-2, -1]}], n_steps=n
    )
    second = scan(
        lambda three, one: one * 0.5 + pt.sin(three),
        outputs_info=[{"initial": x[:3], "taps": [-3, -1]}],
        n_steps=n,
    )
    outputs = [
        first,
        first[-1],
        pytensor.grad(first.sum(), x),
        second[2:],
        pytensor.grad((second**2).sum(), x),
    ]
    return [x, n], outputs, [np.arange(4.0) + 1, 6]


def without_recurrence() -> Case:
    sums = scan(lambda row: (row**2).sum(), sequences=[a])
    return [a], [sums, pytensor.grad(sums.sum(), a)], [np.arange(6.0).reshape(2, 3)]


def that_ends_early() -> Case:
    rows = scan(lambda v: (v * 2, until(v > 20)), outputs_info=[ONE], n_steps=n)
    return [n], [rows, rows[-1], rows.shape], [50]


def that_does_not_end_early() -> Case:
    inputs, outputs, _ = that_ends_early()
    return inputs, outputs, [3]


def backwards_with_a_gradient_of_two_steps() -> Case:
    rows = scan(
        lambda item, row: row * item,
        sequences=[x],
        outputs_info=[ONE],
        go_backwards=True,
        truncate_gradient=2,
    )
    return [x], [rows, pytensor.grad(rows[-1], x)], [np.arange(5.0) + 1]


def of_several_outputs() -> Case:
    step = lambda item, row: (row + item, item * 2, (row * item).sum())  # noqa: E731
    rows = scan(step, sequences=[x], outputs_info=[pt.zeros(2), None, None])
    return [x], [*rows, rows[0][-2:], rows[1][-1]], [np.arange(5.0) + 1]


def of_no_steps() -> Case:
    inputs, outputs, _ = of_several_outputs()
    return inputs, outputs[:3], [np.zeros(0)]


def with_a_check() -> Case:
    step = lambda item, row: Assert("too large")(row + item, row < 5.0)  # noqa: E731
    return [x], [scan(step, sequences=[x], outputs_info=[ZERO])], [np.arange(3.0)]


def with_a_check_that_fails() -> Case:
    inputs, outputs, _ = with_a_check()
    return inputs, outputs, [np.arange(9.0)]


CASES: list[Callable[[], Case]] = [
    one_row_back,
    several_rows_back,
    without_recurrence,
    that_ends_early,
    that_does_not_end_early,
    backwards_with_a_gradient_of_two_steps,
    of_several_outputs,
    of_no_steps,
    with_a_check,
    with_a_check_that_fails,
]


FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
"""numba compiles the gradients of one_row_back for a minute."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES if FULL else CASES[1:], ids=lambda case: case.__name__)
def test_a_loop_gives_what_the_numba_mode_gives(case: Callable[[], Case]) -> None:
    engine.pytensor.register()
    inputs, outputs, values = case()
    found, expected = (pytensor.function(inputs, outputs, mode=mode) for mode in ("ENGINE", "NUMBA"))
    assert "PyTensor computes" not in engine.pytensor.explain(found)
    check_same(outcome(found, values), outcome(expected, values), [str(o.owner) for o in outputs], 1e-10)


def test_a_loop_and_its_gradient_are_computed_by_the_engine() -> None:
    engine.pytensor.register()
    inputs, outputs, values = one_row_back()
    found = pytensor.function(inputs, outputs, mode="ENGINE")
    assert "PyTensor computes" not in engine.pytensor.explain(found)
    rows, last, of_a, of_x = found(*values)
    state, states = np.zeros(3), []
    for item in values[0]:
        states.append(np.tanh(values[1] @ state) + item)
        state = states[-1]
    np.testing.assert_allclose(rows, states)
    np.testing.assert_allclose(last, state)
    assert (of_a.shape, of_x[-1]) == ((3, 3), 3.0)


def test_what_does_not_change_between_steps_leaves_the_loop() -> None:
    engine.pytensor.register()
    rows = scan(
        lambda item, row, m: pt.tanh(m[:, :2] @ m[:2, :]) @ row + item,
        sequences=[x],
        outputs_info=[pt.zeros(3)],
        non_sequences=[a],
    )
    f = pytensor.function([x, a], rows, mode=Mode(EngineLinker(), NO_REWRITES))
    given = np.arange(9.0).reshape(3, 3) / 9
    state = np.zeros(3)
    for item in (1.0, 2.0):
        state = np.tanh(given[:, :2] @ given[:2, :]) @ state + item
    np.testing.assert_allclose(f(np.array([1.0, 2.0]), given)[-1], state)
    assert "PyTensor computes" not in engine.pytensor.explain(f)


def test_a_loop_that_draws_is_left_to_pytensor() -> None:
    engine.pytensor.register()
    rng = pytensor.shared(np.random.default_rng(3))

    def step(row: Any, generator: Any) -> Any:
        following, draw = pt.random.normal(row, 1.0, rng=generator).owner.outputs
        return draw, following

    rows, following = scan(step, outputs_info=[ZERO, rng], n_steps=3)
    f = pytensor.function([], rows, updates={rng: following}, mode="ENGINE")
    first, second = f(), f()
    assert "Scan" in engine.pytensor.explain(f)
    rng.set_value(np.random.default_rng(3))
    expected = np.random.default_rng(3)
    draws = np.cumsum([expected.normal() for _ in range(6)][:3])
    np.testing.assert_allclose(first, draws)
    assert not np.array_equal(first, second)
