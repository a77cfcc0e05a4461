"""Models that have something in common reuse the kernels they have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.object_code.cpu import machine_levels
from engine.runtime.program import N_COMMON
from tests.flow.model_process import expected, in_fresh_process


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels compiled while a test runs, in words."""
    from engine.compiling import programs as kernel_compiler

    compiled: list[str] = []
    original = kernel_compiler.compile_kernel

    def remember(kernel: Any, symbol: str, level: str) -> bytes:
        compiled.append(kernel.summary)
        return original(kernel, symbol, level)

    monkeypatch.setattr(kernel_compiler, "compile_kernel", remember)
    return compiled


def test_a_second_model_that_shares_a_part_misses_its_function_and_finds_the_kernels(
    kernels: list[str],
) -> None:
    x, y = pt.vector("x"), pt.vector("y")
    shared_part = pt.exp(x) / (1 + pt.exp(x))
    first = engine.function([x], [shared_part, pt.max(x)])
    assert first.cache_info.found["kernel"] == [0, 2 + N_COMMON]
    kernels.clear()

    second = engine.function([x, y], [shared_part, pt.min(y)])
    assert (second.cache_info.outcome, second.cache_info.reason) == ("miss", "never-seen")
    assert second.cache_info.found == {"function": [0, 1], "kernel": [1 + N_COMMON, 1]}
    assert second.cache_info.compilations == len(kernels) == 1
    assert second.cache_info.seconds_saved > 0
    value = np.linspace(-1, 1, 4)
    for found, due in zip(second(value, value), [1 / (1 + np.exp(-value)), -1.0], strict=True):
        np.testing.assert_allclose(found, due)


def test_the_same_loop_over_other_variables_is_the_same_kernel(kernels: list[str]) -> None:
    x, z = pt.vector("x"), pt.vector("z")
    engine.function([x], pt.tanh(x) + 2)
    kernels.clear()
    g = engine.function(
        [z, x], [pt.dot(x, x) * pt.sum(z) * 0 + 1, pt.tanh(pt.exp(z) * 1) + 2, pt.tanh(x) + 2]
    )
    assert g.cache_info.found["kernel"][0] == 1 + N_COMMON
    assert not any(summary.count("tanh") and not summary.count("exp") for summary in kernels)


def test_a_function_whose_kernels_are_all_known_compiles_nothing(kernels: list[str]) -> None:
    x, y = pt.vector("x"), pt.vector("y")
    engine.function([x], [pt.sqrt(x), pt.sum(x)])
    kernels.clear()
    again = engine.function([x, y], [pt.sqrt(y), pt.sum(x), pt.sqrt(x), pt.sum(y)])
    assert again.cache_info.outcome == "miss"
    assert again.cache_info.found["kernel"] == [1 + N_COMMON, 0]  # one loop computes both for a vector
    assert (again.cache_info.compilations, kernels) == (0, [])
    found = again([1.0, 4.0], [9.0])
    assert [np.asarray(r).tolist() for r in found] == [[3.0], 5.0, [1.0, 2.0], 9.0]


def test_one_kernel_that_a_function_uses_twice_is_compiled_once(kernels: list[str]) -> None:
    x, y = pt.vector("x"), pt.vector("y")
    f = engine.function([x, y], [pt.exp(x), pt.exp(y), pt.exp(pt.sum(x) + y * 0)])
    assert len(kernels) == len(set(kernels)) == f.cache_info.found["kernel"][1] - N_COMMON


def test_another_process_with_a_related_model_reuses_kernels(tmp_path: Any) -> None:
    cache = {"CACHEGRAPH_DIR": str(tmp_path / "cache")}
    first = in_fresh_process("regression", **cache)
    second = in_fresh_process("related", **cache)
    assert (second["outcome"], second["found"]["function"]) == ("miss", [0, 1])
    hits, misses = second["found"]["kernel"]
    assert hits > N_COMMON
    assert misses == second["compilations"] > 0
    assert first["key"] != second["key"]
    for found, due in zip(second["results"], expected("related"), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)


@pytest.mark.skipif(len(machine_levels()) == 1, reason="this machine has but one CPU level")
def test_processes_of_two_cpu_levels_compile_one_variant_each_and_share_a_directory(tmp_path: Any) -> None:
    environments = [
        {"CACHEGRAPH_DIR": str(tmp_path / "cache"), "CACHEGRAPH_CPU": level} for level in machine_levels()
    ]
    first, *others = (in_fresh_process("regression", **environment) for environment in environments)
    assert first["outcome"] == "miss"
    for other in others:
        assert (other["outcome"], other["reason"]) == ("miss", "foreign-target")
        assert other["compilations"] == first["compilations"] == other["found"]["kernel"][1]
        for found, due in zip(other["results"], expected("regression"), strict=True):
            np.testing.assert_allclose(found, due, rtol=1e-12)
    for environment, before in zip(environments, [first, *others], strict=True):
        again = in_fresh_process("regression", **environment)
        assert (again["outcome"], again["key"]) == ("hit", before["key"])
        assert again["results"] == before["results"]
