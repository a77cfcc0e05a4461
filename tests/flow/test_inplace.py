"""Compiled functions whose Ops overwrite give what the reference gives without overwriting anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import MODES, Mode
from tests.engine.overwritten_graphs import UNFUSED, check, overwritten_graph

REFERENCE = Mode("numpy", MODES["FAST_RUN"].optimizer)


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory, unreachable_user_cache: Any) -> Any:
    """A kernel that several graphs need is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(tmp_path_factory.mktemp("inplace") / "cache"))
        yield


@pytest.fixture(autouse=True)
def cache_directory() -> None:
    """Not a directory a test, but that of the module."""


def test_what_overwrites_gives_the_values_of_what_does_not() -> None:
    """tools/stress/overwriting.py draws more of these graphs."""
    overwriting = [check(overwritten_graph(seed), UNFUSED) for seed in range(50)]
    assert sum(overwriting) > 25


@pytest.mark.slow
def test_many_graphs() -> None:
    for seed in range(50, 400):
        check(overwritten_graph(seed), UNFUSED)


@pytest.mark.parametrize(
    "seed", [*range(5000, 5010), *(pytest.param(n, marks=pytest.mark.slow) for n in range(5010, 5030))]
)
def test_fused_too(seed: int) -> None:
    check(overwritten_graph(seed), None)


def test_the_reference_may_overwrite_too() -> None:
    overwriting = [check(overwritten_graph(seed), REFERENCE) for seed in range(100)]
    assert sum(overwriting) > 50


def test_the_value_of_a_shared_variable_is_replaced_and_not_overwritten() -> None:
    table = engine.shared(np.arange(4.0), "table")
    held = table.get_value(borrow=True)
    changed = table[1].set(5.0)[[0, 0]].inc(1.0)
    f = engine.function([], pt.sum(table), updates={table: changed})
    assert f() == 6.0
    np.testing.assert_array_equal(held, np.arange(4.0))
    np.testing.assert_array_equal(table.get_value(), [2.0, 5.0, 2.0, 3.0])
    assert [str(n.op) for n in f.maker.fgraph.toposort() if n.op.destroy_map] == ["AdvancedIncSubtensor"]


def test_data_and_constants_stay() -> None:
    n = pt.lscalar("n")
    small, data = np.arange(3.0), np.arange(40.0)
    f = engine.function(
        [n], [pt.constant(small)[n].set(9.0), pt.constant(data)[n].inc(1.0), pt.constant(data)]
    )
    for _ in range(2):
        found = f(1)
        np.testing.assert_array_equal(found[0], [0.0, 9.0, 2.0])
        assert found[1][1] == 2.0
        np.testing.assert_array_equal(found[2], np.arange(40.0))
    np.testing.assert_array_equal(data, np.arange(40.0))
