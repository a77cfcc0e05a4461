"""The local store: `get` returns exactly what was put, and a hit leaves no trace."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cachegraph.key import LEVELS, CacheKey
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.local.database import Database, _Reader
from cachegraph.store.local.store import LocalStore
from cachegraph.store.protocol import Store

Key = Callable[..., CacheKey]


def reason(found: Hit | Miss) -> str:
    return found.reason if isinstance(found, Miss) else "hit"


def files(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time of last change and content of every file that holds entries.

    The -shm file, SQLite's shared memory, is left out: readers mark their snapshots there.
    """
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file() and not path.name.endswith("-shm")
    }


@pytest.mark.parametrize("size", [0, 1, 20_000, INLINE_LIMIT, INLINE_LIMIT + 1, 1_000_000])
def test_what_is_put_is_got(size: int, store: LocalStore, key: Key) -> None:
    artifact = Artifact(os.urandom(size), {"graph": b"g" * size}, {"rewrite": 0.1, "compile": 0.2}, "exp")
    store.put(key("a"), artifact)
    found = store.get(key("a"))
    assert isinstance(found, Hit)
    assert found.payload == artifact.payload
    assert found.seconds == artifact.seconds
    assert store.read_blob(found.blobs["graph"]) == b"g" * size


def test_a_payload_above_the_limit_is_a_blob(store: LocalStore, key: Key) -> None:
    store.put(key("small"), Artifact(b"s" * INLINE_LIMIT))
    assert list(store.blobs.files()) == []
    store.put(key("large"), Artifact(b"l" * (INLINE_LIMIT + 1)))
    assert [file.size for file in store.blobs.files()] == [INLINE_LIMIT + 1]


def test_an_empty_directory_has_never_seen_a_key_and_stays_empty(
    store: LocalStore, key: Key, cache_directory: Path
) -> None:
    assert reason(store.get(key("a"))) == "never-seen"
    assert store.scan() == []
    assert not cache_directory.exists()


def test_another_key_is_never_seen(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    assert reason(store.get(key("b"))) == "never-seen"
    assert reason(store.get(key("a", "op"))) == "never-seen"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are run from now on, through sqlite3 alone."""
    run: list[str] = []
    select = Database._select

    def noted(self: Database, statement: str, *rest: Any, **named: Any) -> Any:
        run.append(statement)
        return select(self, statement, *rest, **named)

    monkeypatch.setattr(Database, "_select", noted)
    return run


def test_many_keys_are_got_in_their_order_by_one_select(
    store: LocalStore, key: Key, statements: list[str]
) -> None:
    keys = [key(i) for i in range(9)]
    for number, each in enumerate(keys):
        store.put(each, Artifact(b"%d" % number * 20_000 * number))  # from the fourth on, a blob
    found = store.get_many([*reversed(keys), keys[3]])
    assert len(statements) == 1
    assert found == [store.get(each) for each in [*reversed(keys), keys[3]]]
    assert set(map(reason, found)) == {"hit"}
    assert store.get_many([]) == []


def test_more_keys_than_a_statement_takes_are_got(
    store: LocalStore, key: Key, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegraph.store.local.index.MOST_SELECTED", 2)
    for i in range(5):
        store.put(key(i), Artifact(b"%d" % i))
    assert store.get_many([key(i) for i in range(5)]) == [Hit(b"%d" % i, {}, {}) for i in range(5)]
    assert len(statements) == 3


def test_one_of_many_keys_that_is_no_hit_has_its_own_reason_and_the_others_are_found(
    store: LocalStore, key: Key
) -> None:
    for name in ("a", "damaged", "deleted", "b"):
        store.put(key(name), Artifact(name.encode()))
    theirs = key("theirs")._replace(digest=key("collides").digest)
    store.put(theirs, Artifact(b"theirs"))
    store.delete([key("deleted").digest])
    with store.database.writing() as connection:
        connection.execute(
            "UPDATE record SET content = substr(content, 1, length(content) - 1) || x'00' WHERE entry_id = "
            "(SELECT id FROM entry WHERE digest = ?)",
            (key("damaged").digest,),
        )
    asked = ["a", "damaged", "deleted", "collides", "unknown", "b"]
    found = store.get_many([key(name) for name in asked])
    assert list(map(reason, found)) == ["hit", "damaged", "evicted", "collision", "never-seen", "hit"]
    assert [hit.payload for hit in found if isinstance(hit, Hit)] == [b"a", b"b"]


def test_many_keys_are_got_one_by_one_where_the_select_of_all_fails(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    def malformed(*_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    store.put(key("a"), Artifact(b"a"))
    monkeypatch.setattr("cachegraph.store.local.store.select_records", malformed)
    assert list(map(reason, store.get_many([key("a"), key("b")]))) == ["hit", "never-seen"]


def test_a_put_replaces(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"old", {"graph": b"old"}))
    store.put(key("a"), Artifact(b"new"))
    assert store.get(key("a")) == Hit(b"new", {}, {})
    assert len(store.scan()) == 1
    assert store.catalogue.references_of(key("a").digest) == []


def test_a_collision_is_a_miss_and_not_anothers_bytes(store: LocalStore, key: Key) -> None:
    ours, theirs = key("a"), key("b")
    store.put(CacheKey(theirs.level, theirs.parts, ours.digest, theirs.confirmation), Artifact(b"theirs"))
    assert reason(store.get(ours)) == "collision"


def test_delete_removes_what_is_there(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    assert store.delete([key("a").digest, key("b").digest]) == 1
    assert reason(store.get(key("a"))) == "evicted"
    assert reason(store.get(key("b"))) == "never-seen"
    assert store.catalogue.encoding(key("a").digest) is None


def test_scan_describes_each_entry_the_least_recently_used_first(store: LocalStore, key: Key) -> None:
    for level in LEVELS:
        store.put(
            key(level, level),
            Artifact(b"p" * 9, {"graph": b"g" * 5}, {"build": 2.0, "link": 1.0}, "exp"),
            0.5,
        )
    entries = store.scan()
    assert [entry.level for entry in entries] == list(LEVELS)
    first = entries[0]
    assert first.digest == key("function", "function").digest
    assert (first.payload_size, first.blob_size, first.size) == (9, 5, first.stored_size + 5)
    assert (first.build_seconds, first.load_seconds, first.uses, first.summary) == (3.0, 0.5, 0, "exp")
    assert first.created == first.last_used > 1e9


def test_a_blob_without_a_name_is_refused(store: LocalStore, key: Key) -> None:
    with pytest.raises(ValueError, match="empty name"):
        store.put(key("a"), Artifact(b"a", {"": b"b"}))


def test_the_index_belongs_to_the_owner_alone(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    assert store.layout.root.stat().st_mode & 0o777 == 0o700
    for path in store.layout.root.glob("index.sqlite*"):
        assert path.stat().st_mode & 0o777 == 0o600, path


@pytest.mark.parametrize("name", ["with space", "per%cent", "quest?ion#hash", "ünïcödé", "q'uote\"d"])
def test_any_directory_name_will_do(name: str, tmp_path: Path, key: Key) -> None:
    store = LocalStore(tmp_path / name)
    store.put(key("a"), Artifact(b"a"))
    assert store.get(key("a")) == Hit(b"a", {}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]
    store.close()


def test_a_hit_writes_nothing(store: LocalStore, key: Key, cache_directory: Path) -> None:
    store.put(key("a"), Artifact(b"a" * 100_000, {"graph": b"g"}))
    store.put(key("b"), Artifact(b"b"))
    before = files(cache_directory)
    other = LocalStore(cache_directory)
    assert reason(other.get(key("a"))) == reason(other.get(key("b"))) == "hit"
    other.close()
    assert files(cache_directory) == before


def test_the_first_hit_after_all_writers_left_leaves_the_index_as_it_is(
    store: LocalStore, key: Key, cache_directory: Path
) -> None:
    store.put(key("a"), Artifact(b"a"))
    store.close()
    before = store.layout.index.read_bytes()
    other = LocalStore(cache_directory)
    assert reason(other.get(key("a"))) == "hit"
    other.close()
    assert store.layout.index.read_bytes() == before
    assert (store.layout.root / "index.sqlite-wal").stat().st_size == 0


def test_threads_have_connections_of_their_own(store: LocalStore, key: Key) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for i in range(20):
            store.put(key(f"{number} {i}"), Artifact(f"{number} {i}".encode()))
            found = store.get(key(f"{number} {i}"))
            if not isinstance(found, Hit) or found.payload != f"{number} {i}".encode():
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(store.scan()) == 80


def test_a_reader_sees_what_another_store_puts(store: LocalStore, key: Key, cache_directory: Path) -> None:
    other = LocalStore(cache_directory)
    for i in range(3):
        assert reason(store.get(key(i))) == "never-seen"
        other.put(key(i), Artifact(b"x"))
        assert reason(store.get(key(i))) == "hit"
    other.close()


def test_a_local_store_has_the_verbs_of_a_store(store: LocalStore) -> None:
    def takes(store: Store) -> list[str]:
        return [name for name in vars(Store) if not name.startswith("_") and not hasattr(store, name)]

    assert takes(store) == []


def test_a_key_that_is_stored_while_it_is_looked_for_is_not_taken_for_damage(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachegraph.store.local import store as local

    def overtaken(*_: object) -> None:
        LocalStore(store.layout.directory).put(key("a"), Artifact(b"a"))

    store.put(key("b"), Artifact(b"b"))
    monkeypatch.setattr(local, "select_record", overtaken)
    assert reason(store.get(key("a"))) == "never-seen"


@pytest.mark.parametrize("error", [MemoryError, RecursionError, OverflowError, UnicodeError, SystemError])
def test_whatever_reading_raises_is_a_miss_and_keeps_nobody_from_building(
    error: type[Exception], cache_directory: Path, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachegraph.cache import Cache
    from cachegraph.settings import Settings
    from cachegraph.store.local import store as local

    def fail(*_: object) -> None:
        raise error("while reading")

    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    for name in ("select_record", "recorded_cost"):
        monkeypatch.setattr(local, name, fail)
    monkeypatch.setattr(LocalStore, "claims", fail)
    monkeypatch.setattr(local.Blobs, "read", fail)
    assert cache.get_or_build(key("a"), lambda: Artifact(b"built"), bytes).value == b"built"
    found = cache.lookup(key("a"))
    assert isinstance(found, Miss)
    assert found.detail.endswith("while reading")
    assert cache.read_blob("00" * 40) is None
    cache._store.close()


_DROPPED = """
import gc, sys
from cachegraph import Cache

for directory in sys.argv[1:]:
    for _ in range(2):
        cache = Cache(directory, namespace="tests")
        print(cache.get_or_build({"a": 1}, build=lambda: b"built", load=bytes).outcome)
        del cache
        gc.collect()
"""


def test_a_cache_that_is_dropped_leaves_no_connection_for_python_to_warn_of(cache_directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", _DROPPED, cache_directory],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["miss", "hit"]
    assert done.stderr == ""


def test_a_key_is_found_though_fork_after_fork_closes_the_connection(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(key("a"), Artifact(b"a"))
    select, forks = _Reader.select, iter(range(3))

    def interrupted(reader: _Reader, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        if next(forks, None) is not None:
            reader.close()
        return select(reader, statement, *arguments)

    monkeypatch.setattr(_Reader, "select", interrupted)
    assert isinstance(store.get(key("a")), Hit)
    assert next(forks, None) is None
