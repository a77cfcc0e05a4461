"""Two releases on one directory: clean misses for each other, and right sums for eviction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.cli.app import app
from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.eviction import GRACE_SECONDS
from cachegraph.store.local.migrations import SCHEMA_VERSION
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.pruning import plan
from cachegraph.store.maintenance.verification import verify
from tests.cachegraph.store.older_release import OlderRelease

Key = Callable[..., CacheKey]
OLDER = range(1, SCHEMA_VERSION)
COST = {"compile": 2.0}


@pytest.fixture(params=OLDER, ids=lambda schema: f"schema {schema}")
def older(request: pytest.FixtureRequest, store: LocalStore) -> Iterator[OlderRelease]:
    release = OlderRelease(store.layout.directory, request.param)
    yield release
    release.close()


def version(store: LocalStore) -> int:
    (found,) = sqlite3.connect(store.layout.index).execute("PRAGMA user_version").fetchone()
    return int(found)


def test_what_an_older_release_wrote_is_a_miss_and_is_listed_as_it_lies(
    older: OlderRelease, store: LocalStore, key: Key
) -> None:
    older.put(key("a"), b"older", {}, COST)
    found = store.get(key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "foreign-format"
    assert store.get(key("b")).reason == "never-seen"
    assert [entry.summary for entry in store.scan()] == ["by the older release"]
    assert version(store) == older.schema, "reading writes nothing"


def test_an_older_release_uses_the_index_that_a_newer_one_brought_up(
    older: OlderRelease, store: LocalStore, key: Key
) -> None:
    older.put(key("a"), b"older", {}, COST)
    store.put(key("b"), Artifact(b"newer", seconds=COST))
    assert version(store) == SCHEMA_VERSION
    assert [older.get(key(name)) for name in "abc"] == [b"older", None, None]
    older.put(key("c"), b"older", {}, COST)
    older.put(key("b"), b"older again", {}, COST)
    older.use(key("b"))
    assert {digest: uses for digest, _, uses, _ in older.scan()} == {
        key("a").digest: 0,
        key("b").digest: 1,
        key("c").digest: 0,
    }
    assert older.get(key("b")) == b"older again"
    store.put(key("b"), Artifact(b"newer", seconds=COST))
    assert store.get(key("b")) == Hit(b"newer", {}, COST)
    older.delete(key("c"))
    assert isinstance(store.get(key("c")), Miss)


def test_the_books_count_what_an_older_release_does(older: OlderRelease, store: LocalStore, key: Key) -> None:
    older.put(key("a"), b"a", {"graph": b"g" * 100}, COST)
    store.upgrade()
    assert books(store) == (0.0, 100)
    older.put(key("b"), b"b", {"graph": b"g" * 100, "text": b"t" * 50}, COST)
    assert books(store) == (0.0, 150)
    older.delete(key("b"))
    assert books(store) == (0.0, 100)
    run(store, "UPDATE eviction SET clock = 7.5")
    older.put(key("c"), b"c", {}, COST)
    older.use(key("a"))
    assert dict(run(store, "SELECT digest, clock FROM entry")) == {key("a").digest: 7.5, key("c").digest: 7.5}


@pytest.mark.parametrize("command", ["list", "stats", "show", "why-miss", "prune", "verify"])
def test_every_command_works_on_the_index_of_an_older_release(
    command: str, older: OlderRelease, store: LocalStore, key: Key
) -> None:
    older.put(key("a"), b"older", {}, COST)
    arguments = [key("a").hex] if command == "show" else []
    where = ["--dir", str(store.layout.directory)]
    result = CliRunner().invoke(app, [command, *arguments, *where])
    assert result.exit_code == 0, result.output
    assert older.get(key("a")) == b"older"


def test_what_an_older_release_wrote_can_be_evicted_by_a_newer_one(
    older: OlderRelease, store: LocalStore, key: Key
) -> None:
    for i in range(20):
        older.put(key(i), bytes((i,)) * 20_000, {}, {"compile": 1.0 + i})
    limited = LocalStore(store.layout.directory, max_size=400_000)
    limited.put(key("new"), Artifact(b"n" * 20_000, seconds=COST))
    limited.close()
    gone = [i for i in range(20) if older.get(key(i)) is None]
    assert gone == list(range(len(gone)))
    assert gone
    assert isinstance(limited.get(key("new")), Hit)


def test_a_newer_hash_version_never_hits_an_older_entry(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachegraph import key as keys
    from cachegraph.fingerprint import encoder
    from cachegraph.fingerprint.encoding import encode
    from cachegraph.fingerprint.primitives import HASH_VERSION

    def build(cache: Cache) -> CacheKey:
        made = CacheKey.build("kernel", {"graph": encode("the same computation")})
        cache.get_or_build(made, lambda: Artifact(b"an artifact"), bytes)
        return made

    cache = Cache(Settings(store.layout.directory, "readwrite", "compile"))
    older = build(cache)
    monkeypatch.setattr(encoder, "HASH_VERSION", HASH_VERSION + 1)
    monkeypatch.setattr(keys, "HASH_VERSION", HASH_VERSION + 1)
    newer = build(cache)
    assert older.digest != newer.digest
    assert len(store.scan()) == 2
    for name, part in older.parts:
        assert dict(newer.parts)[name] != part, "the version is in the encoding of each part"
    cache._store.close()


def test_blobs_of_an_older_release_are_pruned_with_their_entries_and_not_before(
    older: OlderRelease, store: LocalStore, key: Key
) -> None:
    content = b"g" * 100
    path = store.layout.blob(digest(content).hex())
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    older.put(key("a"), b"older", {"graph": content}, COST)
    store.upgrade()
    assert verify(store) == []
    assert plan(store, time.time() + 7 * GRACE_SECONDS).blobs == []
    assert store.read_blob(path.name) is None
    older.delete(key("a"))
    assert [blob.path for blob in plan(store, time.time() + 7 * GRACE_SECONDS).blobs] == [path]
    path.write_bytes(b"something else")
    assert [problem.name for problem in verify(store)] == [path.name]


def books(store: LocalStore) -> tuple[float, int]:
    ((clock, size),) = run(store, "SELECT clock, blob_bytes FROM eviction")
    return clock, size


def run(store: LocalStore, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(store.layout.index, isolation_level=None)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()
