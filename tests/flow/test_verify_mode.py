"""The mode verify builds what was found anew and compares: a wrong entry is caught, reported, set
aside and replaced.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph import cache as cache_module
from cachegraph import pickling
from cachegraph.cache import Artifact, Hit, default_cache
from cachegraph.caching.counters import Tally
from cachegraph.key import CacheKey
from engine import OpFromGraph
from engine.compiling import programs as kernel_compiler
from engine.compiling.load import symbol_of
from engine.runtime.container import pack_kernel
from engine.runtime.load import process_loader
from engine.runtime.program import N_COMMON, unpack_program
from engine.runtime.target import process_level, process_triple
from engine.tensor.optimize import minimize

POINT = np.array([0.5, 1.0, 2.0])


@pytest.fixture(autouse=True)
def tally(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tally]:
    """Count from nothing, and have no kernel of another test linked."""
    tally = Tally()
    monkeypatch.setattr("cachegraph.caching.records.PROCESS", tally)
    process_loader.cache_clear()
    yield tally
    process_loader.cache_clear()


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that are compiled while a test runs."""
    compiled: list[Any] = []
    original = kernel_compiler.compile_kernel
    monkeypatch.setattr(
        kernel_compiler,
        "compile_kernel",
        lambda kernel, symbol, level: compiled.append(kernel) or original(kernel, symbol, level),
    )
    return compiled


def function(wrong: bool = False) -> Any:
    x = pt.vector("x")
    return engine.function([x], pt.sin(x) + 1 if wrong else pt.exp(x) * 2)


def verifying(monkeypatch: pytest.MonkeyPatch, rate: str = "1") -> None:
    process_loader.cache_clear()
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    monkeypatch.setenv("CACHEGRAPH_VERIFY_RATE", rate)


def key_of(f: Any) -> CacheKey:
    """The key of a function as a program is found by: enough to look it up and to store under it."""
    [found] = [entry for entry in default_cache()._store.scan() if entry.hex == f.cache_info.key]
    catalogue = default_cache()._store.catalogue  # type: ignore[union-attr]
    return CacheKey.parse(zlib.decompress(catalogue.encoding(found.digest)))


def entry_of(key: CacheKey) -> Hit:
    entry = default_cache()._store.get(key)
    assert isinstance(entry, Hit)
    return entry


def plant(key: CacheKey, payload: bytes, blobs: dict[str, bytes] | None = None) -> None:
    assert default_cache().store(key, Artifact(payload, blobs or {}, {"compile": 1.0}))


def aside(directory: Path, level: str) -> list[bytes]:
    return [path.read_bytes() for path in (directory / "v1" / "damaged").glob(f"{level}-*")]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_what_is_right_is_a_hit_and_nothing_is_said(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cache_directory: Path
) -> None:
    function()
    verifying(monkeypatch)
    f = function()
    assert (f.cache_info.outcome, f.cache_info.reason) == ("hit", "")
    np.testing.assert_allclose(f(POINT), np.exp(POINT) * 2)
    assert "mismatch" not in tally.snapshot().misses
    assert errors(caplog) == []
    assert not (cache_directory / "v1" / "damaged").exists()


def test_the_program_of_another_function_is_caught_by_its_results(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cache_directory: Path
) -> None:
    key, other = key_of(function()), entry_of(key_of(function(wrong=True)))
    plant(key, other.payload)
    process_loader.cache_clear()
    assert not np.allclose(function()(POINT), np.exp(POINT) * 2)  # no check but this mode's can tell
    verifying(monkeypatch)
    f = function()
    np.testing.assert_allclose(f(POINT), np.exp(POINT) * 2)
    assert (f.cache_info.outcome, f.cache_info.reason) == ("miss", "mismatch")
    assert tally.snapshot().misses["mismatch"] == 1
    [said] = errors(caplog)
    assert f"the function entry {key.hex} differs from a new build: on random arguments it gives" in said
    assert aside(cache_directory, "function") == [other.payload]
    process_loader.cache_clear()
    monkeypatch.setenv("CACHEGRAPH_MODE", "readwrite")
    healed = function()
    assert healed.cache_info.outcome == "hit"
    np.testing.assert_allclose(healed(POINT), np.exp(POINT) * 2)


def test_another_optimized_graph_is_caught(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key, other_key = key_of(function()), key_of(function(wrong=True))
    [name] = entry_of(other_key).blobs
    graph = default_cache().read_blob(entry_of(other_key).blobs[name])
    assert graph is not None
    plant(key, entry_of(key).payload, {name: graph})
    verifying(monkeypatch)
    np.testing.assert_allclose(function()(POINT), np.exp(POINT) * 2)
    [said] = errors(caplog)
    assert "its optimized graph is another" in said
    assert tally.snapshot().misses["mismatch"] == 1


def test_a_kernel_that_computes_something_else_is_caught(
    kernels: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    cache_directory: Path,
) -> None:
    f = function()
    function(wrong=True)
    _, wrong = kernels
    program = unpack_program(entry_of(key_of(f)).payload)
    use = program.kernels[N_COMMON]
    key = CacheKey("kernel", (("kernel", b""),), bytes.fromhex(use.digest), bytes.fromhex(use.confirmation))
    symbol = symbol_of(key)
    level = process_level()
    code = kernel_compiler.compile_kernel(wrong, symbol, level)
    planted = pack_kernel(symbol, process_triple(), level, code)
    plant(key, planted)
    process_loader.cache_clear()
    np.testing.assert_allclose(function()(POINT), np.sin(POINT) + 1)  # nothing else can tell
    verifying(monkeypatch)
    f = function()
    np.testing.assert_allclose(f(POINT), np.exp(POINT) * 2)
    assert aside(cache_directory, "kernel") == [planted]
    said = errors(caplog)
    assert f"the kernel entry {key.hex} differs from a new build: its object code is another" in said[0]
    assert "the function entry" in said[1]
    monkeypatch.setenv("CACHEGRAPH_MODE", "readwrite")
    process_loader.cache_clear()
    np.testing.assert_allclose(function()(POINT), np.exp(POINT) * 2)


def test_a_wrong_optimized_op_is_caught_when_a_function_that_misses_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cache_directory: Path
) -> None:
    x = pt.vector("x")
    op, wrong = OpFromGraph([x], [pt.exp(x) * 2]), OpFromGraph([x], [pt.sin(x) + 1])
    engine.function([x], op(x))
    [entry] = [entry for entry in default_cache()._store.scan() if entry.level == "op"]
    catalogue = default_cache()._store.catalogue  # type: ignore[union-attr]
    key = CacheKey.parse(zlib.decompress(catalogue.encoding(entry.digest)))
    plant(key, pickling.dumps(wrong.fgraph))
    np.testing.assert_allclose(engine.function([x], op(x) + 1)(POINT), np.sin(POINT) + 2)
    verifying(monkeypatch)
    np.testing.assert_allclose(engine.function([x], op(x) + 3)(POINT), np.exp(POINT) * 2 + 3)
    [said] = errors(caplog)
    assert f"the op entry {key.hex}" in said
    assert "gives another graph" in said
    assert len(aside(cache_directory, "op")) == 1
    caplog.clear()
    np.testing.assert_allclose(engine.function([x], op(x) + 4)(POINT), np.exp(POINT) * 2 + 4)
    assert errors(caplog) == []


def test_a_share_of_the_hits_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    function()
    verifying(monkeypatch, "0.25")
    settings = default_cache().settings
    assert (settings.mode, settings.verify_rate) == ("verify", 0.25)
    sampled = sum(default_cache().samples_hit() for _ in range(4000))
    assert 800 < sampled < 1200
    assert not cache_module.Cache(settings._replace(mode="readwrite")).samples_hit()


def test_a_rebuild_that_fails_is_no_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    function()
    verifying(monkeypatch)

    def fail(*_: object) -> None:
        raise ArithmeticError("a rewrite that fails")

    with monkeypatch.context() as patch:
        patch.setattr("engine.compiling.build.rewritten", fail)
        with pytest.raises(ArithmeticError, match="a rewrite that fails"):
            function()
    f = function()
    assert (f.cache_info.outcome, f.cache_info.reason) == ("miss", "unverified")
    np.testing.assert_allclose(f(POINT), np.exp(POINT) * 2)


def test_models_of_all_kinds_verify(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is built twice must be equal, or this mode would cry wolf."""
    from tests.flow.model_process import MODELS

    for _ in range(2):
        for model in MODELS.values():
            inputs, outputs, updates, values = model()
            f = engine.function(inputs, outputs, updates=updates)
            f(*values)
        verifying(monkeypatch)
    assert f.cache_info.outcome == "hit"
    assert errors(caplog) == []


def smallest(where: float) -> Any:
    x = pt.scalar("x")
    return engine.function([x], minimize((x - where) ** 2, x)[0])


def test_the_objective_of_another_problem_is_caught_by_what_the_solver_finds(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cache_directory: Path
) -> None:
    (right,), (wrong,) = (smallest(where)._compiled.runner.functions for where in (1.0, 2.0))
    plant(right.key, wrong.payload)
    process_loader.cache_clear()
    np.testing.assert_allclose(smallest(1.0)(0.0), 2.0, atol=1e-6)
    verifying(monkeypatch)
    np.testing.assert_allclose(smallest(1.0)(0.0), 1.0, atol=1e-6)
    assert f"the function entry {right.key.hex} differs from a new build" in errors(caplog)[0]
    assert wrong.payload in aside(cache_directory, "function")
    process_loader.cache_clear()
    monkeypatch.setenv("CACHEGRAPH_MODE", "readwrite")
    healed = smallest(1.0)
    assert healed.cache_info.outcome == "hit"
    np.testing.assert_allclose(healed(0.0), 1.0, atol=1e-6)
