"""Generators in loops: as updates, as states, as what all steps use, and made by a step itself."""

import numpy as np
import pytest

import engine
import engine.tensor as pt

pytestmark = pytest.mark.usefixtures("kernels_once")
random = pt.random


def walks(seed, calls):
    """Return what each call gives of a walk of four normal steps, numpy's."""
    rng = np.random.default_rng(seed)
    return [np.cumsum(rng.normal(size=4)).tolist() for _ in range(calls)]


def updating(x, rng):
    next_rng, step = random.normal(rng=rng, return_next_rng=True)
    return x + step, {rng: next_rng}


def of_updates(rng):
    rows, updates = engine.scan(lambda x: updating(x, rng), outputs_info=[pt.constant(0.0)], n_steps=4)
    return rows, updates[rng]


def of_states(rng):
    def step(x, state):
        next_rng, by = random.normal(rng=state, return_next_rng=True)
        return x + by, next_rng

    (rows, last), _ = engine.scan(step, outputs_info=[pt.constant(0.0), rng], n_steps=4)
    return rows, last


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("made", [of_updates, of_states])
def test_a_loop_draws_from_one_step_to_the_next(made, mode):
    rng = random.shared_rng(seed=1)
    rows, last = made(rng)
    f = engine.function([], rows, updates={rng: last}, mode=mode)
    assert np.allclose([f(), f()], walks(1, 2), rtol=1e-14)
    due = np.random.default_rng(1)
    due.normal(size=8)
    assert rng.get_value().bit_generator.state == due.bit_generator.state


def test_without_updates_a_loop_begins_anew():
    rows, _ = of_updates(random.shared_rng(seed=1))
    f = engine.function([], rows)
    assert f().tolist() == f().tolist()


def test_a_loop_over_a_generator_that_is_given_leaves_it():
    rng = random.rng()
    rows, last = of_states(rng)
    f = engine.function([rng], [rows, last])
    mine = np.random.default_rng(1)
    found, following = f(mine)
    assert mine.bit_generator.state == np.random.default_rng(1).bit_generator.state
    again, _ = f(following)
    assert np.allclose([found, again], walks(1, 2), rtol=1e-14)


def test_all_steps_draw_the_same_from_what_they_do_not_change():
    rng, x = random.shared_rng(seed=1), pt.vector("x")
    given, _ = engine.scan(lambda each: random.normal(size=2, rng=each), non_sequences=[rng], n_steps=3)
    used, _ = engine.scan(lambda each: random.normal(each, rng=rng), sequences=[x])
    pair = engine.function([x], [given, used])(np.arange(3.0))
    due = np.random.default_rng(1)
    assert pair[0].tolist() == [due.normal(size=2).tolist()] * 3
    assert np.allclose(pair[1], np.random.default_rng(1).normal() + np.arange(3), rtol=1e-14)


def test_a_loop_that_makes_its_generator_draws_anew_in_each_step():
    rows, updates = engine.scan(lambda: random.RandomStream(3).normal(size=2), n_steps=3)
    f = engine.function([], rows, updates=updates)
    (seed,) = np.random.SeedSequence(3).spawn(1)
    due = np.random.default_rng(seed)
    for _ in range(2):
        assert f().tolist() == [due.normal(size=2).tolist() for _ in range(3)]


def test_derivatives_go_through_a_loop_that_draws():
    rng, w = random.shared_rng(seed=1), pt.scalar("w")

    def step(x):
        next_rng, by = random.normal(rng=rng, return_next_rng=True)
        return w * x + by, {rng: next_rng}

    rows, updates = engine.scan(step, outputs_info=[pt.constant(0.0)], n_steps=3)
    f = engine.function([w], [rows[-1], engine.grad(rows[-1], w)], updates=updates)
    due = np.random.default_rng(1)
    for _ in range(2):
        a, b, c = due.normal(size=3)
        assert np.allclose(f(0.5), [0.25 * a + 0.5 * b + c, a + b], rtol=1e-14)


def test_a_generator_as_a_state_has_only_its_previous_row():
    with pytest.raises(ValueError, match="has only -1"):
        engine.scan(lambda a, b: a, outputs_info=[{"initial": random.rng(), "taps": [-1, -2]}], n_steps=2)
    with pytest.raises(TypeError, match="RandomGeneratorType is needed"):
        engine.scan(lambda g: pt.constant(1.0), outputs_info=[random.rng()], n_steps=2)
