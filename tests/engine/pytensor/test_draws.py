"""Draws under PyTensor: one seed gives the draws of PyTensor's numba mode, whatever `perform` would draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.basic import BernoulliRV

import engine.pytensor

Draw = Callable[[Any], Any]

DISTRIBUTIONS: dict[str, Draw] = {
    "bernoulli": lambda rng: pt.random.bernoulli(
        [0.1, 0.5, np.nan], rng=rng, return_next_rng=True, size=(4, 3)
    ),
    "cauchy": lambda rng: pt.random.cauchy(pt.arange(3) * 1.0, 2.0, rng=rng, return_next_rng=True),
    "gumbel": lambda rng: pt.random.gumbel([[1.0], [2.0]], [1.0, 3.0], rng=rng, return_next_rng=True),
    "categorical": lambda rng: pt.random.categorical(
        [[0.2, 0.8], [0.5, 0.5]], rng=rng, return_next_rng=True, size=(5, 2)
    ),
}


@pytest.fixture(autouse=True)
def registered() -> None:
    engine.pytensor.register()


def drawn(draw: Draw, mode: str) -> list[np.ndarray]:
    """Return two draws after each other, and a number that the generator gives after them."""
    rng = pytensor.shared(np.random.default_rng(7))
    following, draws = draw(rng)
    f = pytensor.function([], draws, updates={rng: following}, mode=mode)
    return [f(), f(), np.asarray(rng.get_value().random())]


def drawn_in_a_loop(mode: str) -> list[np.ndarray]:
    """Return two results of a loop that draws in its steps, within a loop that draws."""
    rng = pytensor.shared(np.random.default_rng(4))

    def inner(p: Any, rng: Any) -> Any:
        following, draw = pt.random.bernoulli(p, rng=rng, return_next_rng=True)
        return following, draw

    def outer(p: Any, rng: Any) -> Any:
        following, location = pt.random.cauchy(0.0, p, rng=rng, return_next_rng=True)
        final, draws = pytensor.scan(
            inner, sequences=[pt.stack([p, 1 - p])], outputs_info=[following, None], return_updates=False
        )
        return final, location + draws.sum()

    _, draws = pytensor.scan(
        outer, sequences=[pt.linspace(0.1, 0.9, 5)], outputs_info=[rng, None], return_updates=False
    )
    f = pytensor.function([], draws, mode=mode)
    return [f(), f()]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_and_the_generator_after_them_are_those_of_the_numba_mode(name: str) -> None:
    found, due = (drawn(DISTRIBUTIONS[name], mode) for mode in ("ENGINE", "NUMBA"))
    assert [array.dtype for array in found] == [array.dtype for array in due]
    for mine, theirs in zip(found, due, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)


@pytest.mark.slow
def test_draws_within_loops_are_those_of_the_numba_mode() -> None:
    found, due = drawn_in_a_loop("ENGINE"), drawn_in_a_loop("NUMBA")
    np.testing.assert_allclose(found, due, rtol=1e-13)


def test_a_probability_that_rounding_made_larger_than_1_draws_ones() -> None:
    (draws, *_) = drawn(
        lambda rng: pt.random.bernoulli(1.0 + 1e-15, rng=rng, return_next_rng=True, size=(5,)), "ENGINE"
    )
    assert draws.tolist() == [1] * 5


def test_a_distribution_of_a_users_own_is_drawn_by_its_own_code() -> None:
    class AlwaysTrue(BernoulliRV):
        @classmethod
        def rng_fn(cls, rng: np.random.Generator, p: Any, size: Any) -> Any:
            rng.random()
            return np.ones(size, dtype=bool)

    (draws, *_) = drawn(lambda rng: AlwaysTrue()(0.0, rng=rng, return_next_rng=True, size=(3,)), "ENGINE")
    assert draws.tolist() == [1, 1, 1]
