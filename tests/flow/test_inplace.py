"""Compiled functions whose Ops overwrite give what the reference gives without overwriting anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from engine.mode import MODES, Mode
from tests.engine.overwritten_graphs import Overwritten, build, plans

UNFUSED = Mode("numba", MODES["NUMPY"].optimizer.including("inplace", "optimize_inner_graphs", "merge"))
"""Without fusion all graphs consist of the same few kernels."""
returned = st.lists(st.integers(0, 40), min_size=1, max_size=5)


def examples(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory, unreachable_user_cache: Any) -> Any:
    """A kernel that several examples need is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(tmp_path_factory.mktemp("inplace") / "cache"))
        yield


@pytest.fixture(autouse=True)
def cache_directory() -> None:
    """Not a directory a test, but that of the module."""


def check(graph: Overwritten, mode: Mode | None) -> None:
    """The values are the reference's, call after call; inputs stay, and every result is an array of its own."""
    inputs, outputs = graph.inputs, graph.outputs
    due = engine.function(inputs, outputs, mode="NUMPY", on_unused_input="ignore")(*graph.values)
    f = engine.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    for _ in range(2):
        values = [value.copy() for value in graph.values]
        found = f(*values)
        for before, after in zip(graph.values, values, strict=True):
            np.testing.assert_array_equal(before, after)
        for result, expected, output in zip(found, due, outputs, strict=True):
            text = engine.dprint(output, file="str")
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9, err_msg=text)
        for number, result in enumerate(found):
            assert not any(np.shares_memory(result, other) for other in (*values, *found[:number]))
            result[...] = -7


@examples(250)
@given(plans, returned)
def test_what_overwrites_gives_the_values_of_what_does_not(plan: Any, returned: list[int]) -> None:
    check(build(plan, returned), UNFUSED)


@examples(40)
@given(plans, returned)
def test_fused_too(plan: Any, returned: list[int]) -> None:
    check(build(plan, returned), None)


@pytest.mark.slow
@examples(3000)
@given(plans, returned)
def test_many_graphs(plan: Any, returned: list[int]) -> None:
    check(build(plan, returned), UNFUSED)


@examples(100)
@given(plans, returned)
def test_the_reference_may_overwrite_too(plan: Any, returned: list[int]) -> None:
    check(build(plan, returned), Mode("numpy", MODES["FAST_RUN"].optimizer))
