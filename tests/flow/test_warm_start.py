"""A function is compiled once. What every later process does with it, and in which modes of the cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import default_cache
from cachegraph.errors import CacheMissError
from engine.graph import Apply, Op
from tests.flow.model_process import ROOT, expected, in_fresh_process, report, softened


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A cache that one process has compiled the regression into, and what that process reported."""
    directory = str(tmp_path_factory.mktemp("warm") / "cache")
    return directory, in_fresh_process("regression", CACHEGRAPH_DIR=directory)


@pytest.fixture(scope="module")
def warm(filled: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """What a second process reports, which may not compile."""
    return in_fresh_process("regression", CACHEGRAPH_DIR=filled[0], CACHEGRAPH_ON_MISS="error")


def test_the_first_process_compiles(filled: tuple[str, dict[str, Any]]) -> None:
    cold = filled[1]
    assert (cold["outcome"], cold["reason"]) == ("miss", "never-seen")
    assert cold["rewrites"] > 0
    assert cold["compilations"] == cold["found"]["kernel"][1] > 1
    assert cold["found"]["function"] == [0, 1]


def test_the_second_process_neither_rewrites_nor_compiles(
    filled: tuple[str, dict[str, Any]], warm: dict[str, Any]
) -> None:
    assert (warm["outcome"], warm["reason"], warm["rewrites"], warm["compilations"]) == ("hit", "", 0, 0)
    assert warm["found"] == {"function": [1, 0], "kernel": [sum(filled[1]["found"]["kernel"]), 0]}
    assert warm["key"] == filled[1]["key"]


def test_the_second_process_gives_what_the_first_gave_bit_for_bit(
    filled: tuple[str, dict[str, Any]], warm: dict[str, Any]
) -> None:
    assert warm["results"] == filled[1]["results"]
    assert warm["counts"] == [1]
    for found, due in zip(warm["results"], expected("regression"), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-12)


def test_a_warm_process_has_imported_nothing_that_compiles_when_the_function_has_answered(
    warm: dict[str, Any],
) -> None:
    assert warm["imported"] == []


def test_the_index_is_as_it_was_after_a_readonly_hit(filled: tuple[str, dict[str, Any]]) -> None:
    directory, _ = filled
    before = {path: path.read_bytes() for path in Path(directory).rglob("*") if path.is_file()}
    assert (
        in_fresh_process("regression", CACHEGRAPH_DIR=directory, CACHEGRAPH_MODE="readonly")["outcome"]
        == "hit"
    )
    after = {path: path.read_bytes() for path in Path(directory).rglob("*") if path.is_file()}
    assert {p: c for p, c in after.items() if not p.name.endswith("-shm")} == {
        p: c for p, c in before.items() if not p.name.endswith("-shm")
    }


# In one process


def test_the_second_function_of_a_process_is_a_hit() -> None:
    assert report("softened")["outcome"] == "miss"
    again = report("softened")
    assert (again["outcome"], again["rewrites"], again["compilations"]) == ("hit", 0, 0)
    np.testing.assert_allclose(again["results"][0], expected("softened")[0])


def test_the_optimized_graph_of_a_hit_is_shown_without_rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs, _, _ = softened()
    first = engine.dprint(engine.function(inputs, outputs), file="str")
    f = engine.function(inputs, outputs)

    def refuse(*_: object) -> None:
        raise AssertionError("rewriting")

    monkeypatch.setattr("engine.compiling.build.rewritten", refuse)
    assert f.cache_info.outcome == "hit"
    assert engine.dprint(f, file="str") == first
    assert "Composite" in first
    assert f.maker.fgraph is f.maker.fgraph


def test_the_optimized_graph_of_a_hit_has_the_data_of_the_function_that_asks() -> None:
    def of(data: np.ndarray) -> Any:
        x = pt.vector("x")
        return engine.function([x], pt.exp(x) * data)

    first, second = np.arange(40.0), np.arange(40.0) * -3
    assert of(first).cache_info.outcome == "miss"
    hit = of(second)
    assert hit.cache_info.outcome == "hit"
    held = [v.data for n in hit.maker.fgraph.apply_nodes for v in n.inputs if hasattr(v, "data")]
    np.testing.assert_array_equal(held, [second])


def test_no_data_is_in_the_store(cache_directory: Path) -> None:
    secret = np.frombuffer(b"observed, and nobody else's business" * 10, "u1").astype("f8")
    x = pt.vector("x")
    engine.function([x], x * secret)
    for path in cache_directory.rglob("*"):
        assert not path.is_file() or secret.tobytes()[:80] not in path.read_bytes()


def test_a_miss_is_an_error_where_nothing_may_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    with pytest.raises(CacheMissError) as caught:
        report("softened")
    assert (caught.value.level, caught.value.reason) == ("function", "never-seen")


def test_the_numpy_backend_runs_where_nothing_may_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    assert expected("softened")


def test_off_does_without_the_cache(monkeypatch: pytest.MonkeyPatch, cache_directory: Path) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    for _ in range(2):
        found = report("softened")
        assert (found["outcome"], found["reason"]) == ("bypass", "disabled")
        np.testing.assert_allclose(found["results"][0], expected("softened")[0])
    assert not cache_directory.exists()


def test_readonly_keeps_nothing_and_compiles_what_it_does_not_find(
    monkeypatch: pytest.MonkeyPatch, cache_directory: Path
) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "readonly")
    for _ in range(2):
        found = report("softened")
        assert found["outcome"] == "miss"
        np.testing.assert_allclose(found["results"][0], expected("softened")[0])
    assert not cache_directory.exists()


# What cannot be described


class Squared(Op):
    """A user's Op, which no kernel and no key is known of."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] ** 2


def test_a_users_op_runs_in_the_numpy_backend() -> None:
    x = pt.vector("x")
    f = engine.function([x], Squared()(x) + 1, mode="NUMPY")
    assert (f.cache_info.outcome, f.cache_info.found) == ("bypass", {})
    np.testing.assert_array_equal(f([1.0, 3.0]), [2.0, 10.0])


class Undone(Squared):
    perform = Op.perform


def test_a_users_op_that_nothing_computes_is_refused_and_the_error_says_what_to_do() -> None:
    x = pt.vector("x")
    with pytest.raises(NotImplementedError, match=r"Undone.*implement perform"):
        engine.function([x], Undone()(x) + 1)


class Incremented(type(pt.add.scalar_op)):  # type: ignore[misc]
    """A user's scalar Op that says nothing about what makes two of it equal."""

    __props__ = None


def test_what_cannot_be_described_bypasses_the_cache_with_the_reason_and_runs() -> None:
    x = pt.vector("x")
    op = pt.Elemwise(Incremented())
    for _ in range(2):
        f = engine.function([x], op(x, x) * 2)
        assert f.cache_info.outcome == "bypass"
        assert "Incremented" in f.cache_info.reason
        assert f.cache_info.key is None
        np.testing.assert_array_equal(f([1.0, 2.0]), [4.0, 8.0])
    assert f.cache_info.found["kernel"][1] == 0
    assert f.maker.fgraph.apply_nodes


def test_a_bypass_is_refused_where_nothing_may_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    x = pt.vector("x")
    with pytest.raises(CacheMissError, match="Incremented"):
        engine.function([x], pt.Elemwise(Incremented())(x, x))


def test_stats_after_a_cold_and_a_warm_start() -> None:
    report("softened")
    report("softened")
    default_cache().flush()
    command = [sys.executable, "-m", "cachegraph", "stats", "--json"]
    stats = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    function, kernel = stats["levels"]["function"], stats["levels"]["kernel"]
    assert (function["entries"], function["hits"], function["misses"]) == (1, 1, 1)
    assert kernel["entries"] == kernel["misses"] == kernel["hits"] > 1
    assert stats["misses"]["never-seen"] == 1 + kernel["misses"]
    assert stats["seconds_saved"] > 0
    assert stats["bytes"] > 0
