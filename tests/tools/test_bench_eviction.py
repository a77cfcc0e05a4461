"""The bench of eviction: the trace, and what its replay under two policies says."""

import pytest

from cachegraph.store.local import eviction as store_eviction
from tests.tools.programs import load_program

bench = load_program("bench/eviction.py")


def test_the_trace_is_the_same_for_the_same_seed_and_every_kernel_of_a_function_is_asked_for():
    one, again, other = bench.trace(1, 12), bench.trace(1, 12), bench.trace(2, 12)
    assert one == again != other
    assert all(request.function.key.level == "function" for request in one)
    assert all(item.key.level == "kernel" for request in one for item in request.kernels)
    shared = {item.key for item in one[0].kernels} & {item.key for item in one[-1].kernels}
    assert shared, "some kernels are the same in all projects"


def test_costs_are_those_of_real_entries():
    items = {item for request in bench.trace(1, 12) for item in (request.function, *request.kernels)}
    assert all(1000 < item.size < 100_000 and 0 < item.load < item.build < 10 for item in items)


def test_a_cache_without_limit_saves_all_but_the_first_of_each():
    requests = bench.trace(1, 2)
    asked = [item for request in requests for item in (request.function, *request.kernels)]
    saved = sum(item.build - item.load for item in asked)
    first = sum(item.build - item.load for item in set(asked))
    assert bench.replay(requests, 0, "store") == pytest.approx(saved - first)


def test_a_small_store_saves_more_than_lru_and_the_policy_is_put_back():
    requests = bench.trace(bench.SEED, 3)
    total = sum(item.size for item in {i for r in requests for i in (r.function, *r.kernels)})
    saved = {policy: bench.replay(requests, total // 5, policy) for policy in bench.POLICIES}
    assert saved["store"] > saved["lru"] > 0
    assert store_eviction.Eviction is bench.POLICIES["store"]


def test_being_ahead_means_at_every_limit(monkeypatch):
    monkeypatch.setattr(bench, "replay", lambda requests, room, policy: 9.0 if policy == "store" else 8.0)
    assert bench.compare(bench.trace(1, 1))["ahead"]
    monkeypatch.setattr(bench, "replay", lambda requests, room, policy: 9.0)
    assert not bench.compare(bench.trace(1, 1))["ahead"]
