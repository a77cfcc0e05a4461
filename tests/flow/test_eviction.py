"""Eviction never takes what a running function still needs: its code is in memory, and the rest is
built again.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import Hit, default_cache
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.planning import Criteria
from cachegraph.store.maintenance.pruning import carry_out, plan

VALUES = np.linspace(-1.0, 1.0, 7)
DUE = [np.exp(VALUES) * 2.0 + VALUES, np.sum(np.exp(VALUES))]


def make() -> engine.Function:
    x = pt.vector("x")
    return engine.function([x], [pt.exp(x) * 2.0 + x, pt.sum(pt.exp(x))])


def assert_right(f: engine.Function) -> None:
    for found, due in zip(f(VALUES), DUE, strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-13)


def evict_everything(directory: Path) -> None:
    store = LocalStore(directory)
    carry_out(store, plan(store, time.time(), Criteria(max_size=0)))
    assert store.scan() == []
    assert list(store.blobs.files()) == []
    store.close()


def test_a_function_runs_on_when_all_it_was_made_of_is_evicted(cache_directory: Path) -> None:
    made, found = make(), make()
    assert found.cache_info.outcome == "hit"
    evict_everything(cache_directory)
    for f in (made, found):
        assert_right(f)


def test_the_optimized_graph_of_a_function_that_was_evicted_is_made_again(cache_directory: Path) -> None:
    make()
    found = make()
    evict_everything(cache_directory)
    assert len(found.maker.fgraph.toposort()) > 0
    again = make()
    assert (again.cache_info.outcome, again.cache_info.reason) == ("miss", "evicted")
    assert_right(again)


def test_an_entry_evicted_between_a_hit_and_the_reading_of_its_blob_is_no_error(
    cache_directory: Path,
) -> None:
    f = make()
    cache = default_cache()
    store = LocalStore(cache_directory)
    (entry,) = (entry for entry in store.scan() if entry.level == "function")
    (blob,) = (one for one in store.catalogue.references_of(entry.digest) if one.name)
    evict_everything(cache_directory)
    assert cache.read_blob(blob.digest) is None
    assert_right(f)
    store.close()


def test_a_function_refers_to_its_kernels_so_none_goes_before_it(cache_directory: Path) -> None:
    f = make()
    store = LocalStore(cache_directory)
    by_digest = {entry.digest: entry for entry in store.scan()}
    references = store.catalogue.entry_references()
    assert {by_digest[digest].hex for digest, _ in references} == {f.cache_info.key}
    kernels = {digest for digest, entry in by_digest.items() if entry.level == "kernel"}
    assert {other for _, other in references} == kernels
    assert len(kernels) >= 2
    chosen = plan(store, time.time(), Criteria(max_size=plan(store, time.time()).bytes_before - 1))
    assert [entry.level for entry in chosen.entries] == ["function"]
    store.close()


def test_a_function_refers_to_the_ops_it_was_made_of(cache_directory: Path) -> None:
    x = pt.vector("x")
    op = engine.OpFromGraph([x], [pt.exp(x) * 3.0 + pt.exp(x)])
    y = pt.vector("y")
    f = engine.function([y], [op(y)])
    assert f.cache_info.found["op"] == [0, 1]
    store = LocalStore(cache_directory)
    ops = {entry.digest for entry in store.scan() if entry.level == "op"}
    assert len(ops) == 1
    assert ops < {other for _, other in store.catalogue.entry_references()}
    store.close()


@pytest.mark.parametrize("limit", ["1kB", "100kB"])
def test_a_limit_that_is_too_small_for_a_function_slows_it_down_and_breaks_nothing(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEGRAPH_MAX_SIZE", limit)
    for _ in range(2):
        f = make()
        assert_right(f)
    assert isinstance(f.cache_info.outcome, str)


def test_the_default_limit_leaves_a_model_alone() -> None:
    make()
    assert isinstance(default_cache()._store, LocalStore)
    assert default_cache()._store.max_size == 5_000_000_000
    assert make().cache_info.outcome == "hit"
    assert Hit
