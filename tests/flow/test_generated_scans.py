"""Random loops: compiled as by the reference, and derivatives that agree with each other."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.gradient import pushforward
from engine.graph.reference import evaluate
from tests.engine.generated_loops import GeneratedLoop, generated_loop

FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory, unreachable_user_cache: Any) -> Any:
    """A kernel that several examples need is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(tmp_path_factory.mktemp("loops") / "cache"))
        yield


@pytest.fixture(autouse=True)
def cache_directory() -> None:
    """Not a directory a test, but that of the module."""


def gradients(loop: GeneratedLoop) -> list[Any]:
    return engine.grad(loop.cost, loop.floats, disconnected_inputs="ignore")


def check_compiled(loop: GeneratedLoop, outputs: list[Any], *modes: Any) -> None:
    due = evaluate(loop.inputs, outputs, loop.values)
    for mode in modes:
        f = engine.function(loop.inputs, outputs, mode=mode, on_unused_input="ignore")
        for _ in range(2):
            for found, expected in zip(f(*loop.values), due, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
                assert found.shape == expected.shape


def check_derivatives(loop: GeneratedLoop) -> None:
    """What a gradient makes of a direction is the tangent of the cost, and what differences give."""
    numbers = np.random.default_rng(0)
    directions = [numbers.normal(size=v.shape) for v in loop.values if v.dtype == np.float64]
    if not directions:
        return
    tangent = pushforward(
        loop.cost, loop.floats, [pt.constant(d) for d in directions], disconnected_outputs="ignore"
    )
    slope, *found = evaluate(loop.inputs, [tangent, *gradients(loop)], loop.values)
    product = sum(float(np.sum(g * d)) for g, d in zip(found, directions, strict=True))
    np.testing.assert_allclose(product, slope, rtol=1e-9, atol=1e-11)
    ends = []
    for step in (1e-6, -1e-6):
        moving = iter(directions)
        moved = [v + step * next(moving) if v.dtype == np.float64 else v for v in loop.values]
        ends.append(evaluate(loop.inputs, [loop.cost], moved)[0])
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-6)


REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)


@pytest.mark.parametrize("seed", range(60))
def test_derivatives_of_a_generated_loop_agree(seed: int) -> None:
    check_derivatives(generated_loop(Random(seed)))


@pytest.mark.parametrize("seed", range(60))
def test_a_generated_loop_rewritten_computes_the_same(seed: int) -> None:
    loop = generated_loop(Random(seed))
    check_compiled(loop, loop.outputs, REWRITTEN)
    check_compiled(loop, gradients(loop), REWRITTEN)


@pytest.mark.parametrize("seed", range(6))
def test_a_generated_loop_compiles(seed: int) -> None:
    loop = generated_loop(Random(1000 + seed))
    check_compiled(loop, [*loop.outputs, *gradients(loop)], None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40 if FULL else 10))
def test_generated_loops_compile_in_all_modes(seed: int) -> None:
    loop = generated_loop(Random(2000 + seed))
    unrewritten = engine.Mode("numba", engine.compiling.mode.MODES["NUMPY"].optimizer)
    check_compiled(loop, [*loop.outputs, *gradients(loop)], None, "FAST_COMPILE", unrewritten)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(1000 if FULL else 50))
def test_many_generated_loops(seed: int) -> None:
    loop = generated_loop(Random(10_000 + seed), depth=2)
    check_derivatives(loop)
    check_compiled(loop, [*loop.outputs, *gradients(loop)], REWRITTEN)
