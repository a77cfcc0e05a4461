"""Reuse distances say exactly which uses a cache of any size misses that evicts the least recently used."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegraph.cache import Artifact, Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.reuse_distances import reuse_distances, what_if
from cachegraph.store.shared.store import SharedStore

Key = Callable[..., CacheKey]


def misses_of_lru(used: list[bytes], sizes: dict[bytes, int], limit: int) -> int:
    """Count the misses of a cache that is run, as an oracle."""
    held: OrderedDict[bytes, int] = OrderedDict()
    misses = 0
    for digest in used:
        misses += digest not in held
        held[digest] = sizes[digest]
        held.move_to_end(digest)
        while sum(held.values()) > limit:
            held.popitem(last=False)
    return misses


@given(
    st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), max_size=60),
    st.lists(st.integers(1, 50), min_size=5, max_size=5),
    st.integers(0, 160),
)
def test_one_walk_gives_the_misses_of_every_limit(
    used: list[bytes], given_sizes: list[int], limit: int
) -> None:
    sizes = dict(zip((b"a", b"b", b"c", b"d", b"e"), given_sizes, strict=True))
    distances = list(reuse_distances(used, sizes))
    missed = sum(distance is None or distance > limit for distance in distances)
    assert missed == misses_of_lru(used, sizes, limit)


def used_by_processes(settings: Settings, *processes: list[CacheKey]) -> None:
    for keys in processes:
        cache = Cache(settings)
        for key in keys:
            cache.lookup(key)
        cache.flush()


@pytest.mark.parametrize("shared", [False, True])
def test_a_store_tells_what_a_limit_would_have_cost(shared: bool, tmp_path: Path, key: Key) -> None:
    settings = Settings(tmp_path / "node", "readwrite", "compile", tmp_path / "shared" if shared else None)
    a, b, gone = key("a"), key("b"), key("gone")
    cache = Cache(settings)
    for stored in (a, b, gone):
        cache.store(stored, Artifact(bytes(10_000), seconds={"compile": 3.0}))
    used_by_processes(settings, [a], [gone], [b], [a], [a, b])
    store = SharedStore(tmp_path / "shared", network=False) if shared else LocalStore(tmp_path / "node")
    store.delete([gone.digest])
    found = what_if(store)
    assert (found.first, found.gone, len(found.reuses)) == (2, 1, 3)
    assert found.cost(found.held).misses == 0
    assert found.cost(found.held - 1)[1:] == (2, 6.0)
    assert found.cost(0)[1:] == (3, 9.0)
    store.close()


@pytest.mark.parametrize("nonsense", ["'soon'", "9e999", "x'00'"])
def test_a_row_that_says_nonsense_is_no_number(nonsense: str, tmp_path: Path, key: Key) -> None:
    store = LocalStore(tmp_path)
    store.put(key("a"), Artifact(b"a", seconds={"compile": 3.0}))
    assert [saved for _, _, saved in store.catalogue.costs()] == [3.0]
    with store.database.writing() as connection:
        connection.execute(f"UPDATE entry SET build_seconds = {nonsense}")
    with pytest.raises(sqlite3.DataError, match="reading the index"):
        what_if(store)
    store.close()
