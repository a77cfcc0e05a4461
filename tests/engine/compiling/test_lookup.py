"""How a function came about: what `cache_info` says, and what the process counts."""

from __future__ import annotations

import numpy as np
import pytest

import cachegraph
import engine
import engine.tensor as pt
from cachegraph.cache import default_cache
from engine.rewriting import MergeOptimizer
from engine.rewriting.pipeline import optdb


@pytest.fixture
def make():
    """A function of two kernels."""

    def made(**options):
        x = pt.vector("x")
        return engine.function([x], [pt.exp(x) + 1, pt.max(x)], **options)

    return made


def test_a_miss_says_what_it_cost(make):
    info = make().cache_info
    assert (info.outcome, info.reason) == ("miss", "never-seen")
    assert info.found == {"function": [0, 1], "kernel": [0, 4]}
    assert (info.rewrites > 0, info.compilations) == (True, 4)
    assert set(info.seconds) == {"key", "rewrite", "lower", "compile", "load", "total"}
    assert info.seconds["compile"] <= info.seconds["total"]
    assert info.seconds_saved == 0.0


def test_a_hit_says_what_it_saved(make):
    cold = make().cache_info
    info = make().cache_info
    assert (info.outcome, info.reason, info.key) == ("hit", "", cold.key)
    assert info.found == {"function": [1, 0], "kernel": [4, 0]}
    assert (info.rewrites, info.compilations) == (0, 0)
    assert set(info.seconds) == {"key", "load", "total"}
    due = cold.seconds["rewrite"] + cold.seconds["lower"] + cold.seconds["compile"]
    assert 0 < info.seconds_saved <= due


def test_the_process_counts_hits_and_misses_at_each_level(make):
    def counted():
        levels = cachegraph.counters().levels
        return [(levels[name]["hits"], levels[name]["misses"]) for name in ("function", "kernel")]

    before = counted()
    make()
    make()
    after = counted()
    assert [(h1 - h0, m1 - m0) for (h0, m0), (h1, m1) in zip(before, after, strict=True)] == [(1, 1), (4, 4)]


def test_looking_at_the_optimized_graph_counts_as_nothing(make):
    make()
    f = make()
    before = cachegraph.counters()
    assert f.maker.fgraph.outputs
    assert cachegraph.counters() == before


def test_the_key_is_that_of_an_entry(make):
    f = make()
    levels = {entry.digest.hex(): entry.level for entry in default_cache()._store.scan()}
    assert levels[f.cache_info.key] == "function"
    assert sorted(levels.values()) == ["function", *["kernel"] * 4]


def test_another_directory_is_another_cache(make, monkeypatch, tmp_path):
    make()
    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / "other"))
    assert make().cache_info.outcome == "miss"


def test_the_numpy_backend_says_that_it_compiles_nothing(make):
    info = make(mode="NUMPY").cache_info
    assert (info.outcome, info.key, info.found, info.compilations) == ("bypass", None, {}, 0)
    assert "numpy" in info.reason


def test_an_error_while_compiling_keeps_nothing(make, monkeypatch, cache_directory):
    def fail(*_):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr("engine.lowering.lower.Lowering.run", fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            make()
    assert make().cache_info.reason == "never-seen"


def test_a_cache_that_fails_in_every_way_breaks_nothing(make, monkeypatch):
    def fail(*_, **__):
        raise OSError("the disk is gone")

    monkeypatch.setattr("cachegraph.store.local.store.select_record", fail)
    monkeypatch.setattr("cachegraph.store.local.store.LocalStore.put", fail)
    for _ in range(2):
        f = make()
        assert f.cache_info.outcome == "miss"
        np.testing.assert_allclose(f([0.0, 1.0])[0], [2.0, 1 + np.e])


def test_rewrites_that_others_registered_bypass_the_cache_with_a_reason(make):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optdb, "_entries", dict(optdb._entries))
        optdb.register("of_a_user", MergeOptimizer(), "fast_run", position=2)
        for _ in range(2):
            info = make().cache_info
            assert (info.outcome, info.key) == ("bypass", None)
            assert "of_a_user" in info.reason
    assert make().cache_info.outcome == "miss"
