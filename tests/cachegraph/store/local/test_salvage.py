"""A damaged index loses only its damaged entries; a sound one is never quarantined."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local import connections, database, soundness
from cachegraph.store.local.migrations import SCHEMA_VERSION
from cachegraph.store.local.salvage import quarantine_index, salvage
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.pruning import carry_out, plan
from cachegraph.store.maintenance.verification import verify
from tests.cachegraph.store.older_release import OlderRelease

Key = Callable[..., CacheKey]
Run = Callable[..., str]

PAGE = 4096
MANY = 120


def artifact(number: int) -> Artifact:
    content = random.Random(number).randbytes(3000)
    blobs = {"graph": content[:50]} if number % 3 == 0 else {}
    payload = content * 30 if number % 40 == 0 else content
    return Artifact(payload, blobs, {"compile": 1.0 + number}, f"number {number}")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with MANY entries, all of them in the index file."""
    store = LocalStore(tmp_path_factory.mktemp("salvage") / "sound")
    for number in range(MANY):
        key = CacheKey.build(
            "kernel", {"scheme": b"test", "graph": str(number).encode()}
        )  # as the fixture key does
        store.put(key, artifact(number))
    store.close()
    return store.layout.directory


@pytest.fixture
def filled(store: LocalStore, sound: Path) -> LocalStore:
    shutil.copytree(sound, store.layout.directory)
    return store


def found_of(store: LocalStore, key: Key) -> set[int]:
    """Return the numbers of the entries that hit, and check that each hit is right."""
    found = {number: store.get(key(number)) for number in range(MANY)}
    for number, hit in found.items():
        if isinstance(hit, Hit):
            due = artifact(number)
            assert (hit.payload, hit.seconds) == (due.payload, due.seconds)
            assert {name: store.read_blob(blob) for name, blob in hit.blobs.items()} == due.blobs
    return {number for number, hit in found.items() if isinstance(hit, Hit)}


def quarantined(store: LocalStore) -> list[Path]:
    return [path for path in store.layout.root.glob("*.damaged-*") if not path.name.endswith("-wal")]


def execute(store: LocalStore, *statements: str) -> None:
    connection = sqlite3.connect(store.layout.index)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def overwrite(store: LocalStore, page: int, content: bytes = b"\xff" * PAGE) -> None:
    whole = bytearray(store.layout.index.read_bytes())
    whole[page * PAGE : page * PAGE + len(content)] = content
    store.layout.index.write_bytes(whole)


def pages_of(store: LocalStore, table: str) -> list[int]:
    """Return the numbers of the leaf pages of a table, as SQLite reports them."""
    connection = sqlite3.connect(store.layout.index)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.close()
    content = store.layout.index.read_bytes()
    begin = (root - 1) * PAGE
    cells = int.from_bytes(content[begin + 3 : begin + 5], "big")
    pointers = [int.from_bytes(content[begin + 12 + 2 * n : begin + 14 + 2 * n], "big") for n in range(cells)]
    return [int.from_bytes(content[begin + at : begin + at + 4], "big") - 1 for at in pointers]


def test_one_damaged_page_costs_the_entries_that_are_on_it(filled: LocalStore, key: Key) -> None:
    leaves = pages_of(filled, "record")
    overwrite(filled, leaves[len(leaves) // 2])
    before = found_of(filled, key)
    assert MANY - 10 < len(before) < MANY
    filled.put(key("new"), Artifact(b"new"))
    assert len(quarantined(filled)) == 1
    assert found_of(filled, key) == before
    assert isinstance(filled.get(key("new")), Hit)
    assert verify(filled) == []


def test_what_is_salvaged_keeps_its_uses_its_summary_and_what_it_refers_to(
    store: LocalStore, key: Key
) -> None:
    store.put(key("kernel"), artifact(1))
    store.put(key("function", "function"), Artifact(b"f", {}, {}, "a function", [key("kernel").digest]))
    execute(
        store,
        "UPDATE entry SET uses = 7, last_used = 5.0",
        "UPDATE entry SET uses = 'x' WHERE level = 'kernel'",
    )
    before = {
        entry.digest: entry
        for entry in LocalStore(store.layout.directory).catalogue.find(key("function", "function").hex)
    }
    store.close()
    overwrite(store, pages_of_root(store, "activity"))
    verify(store)
    after = {entry.digest: entry for entry in store.scan()}
    assert len(after) == 2
    assert after[key("function", "function").digest] == before[key("function", "function").digest]
    assert after[key("kernel").digest].uses == 0
    assert store.catalogue.entry_references_of(key("function", "function").digest) == [key("kernel").digest]


def pages_of_root(store: LocalStore, table: str) -> int:
    connection = sqlite3.connect(store.layout.index)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.close()
    return int(root) - 1


def test_a_record_under_another_key_is_not_salvaged(filled: LocalStore, key: Key) -> None:
    execute(
        filled,
        "UPDATE record SET content = (SELECT content FROM record WHERE entry_id = 2) WHERE entry_id = 1",
    )
    overwrite(filled, pages_of_root(filled, "activity"))
    verify(filled)
    assert found_of(filled, key) == set(range(1, MANY))


def test_an_entry_that_is_new_stays_as_it_is_beside_what_is_salvaged(filled: LocalStore, key: Key) -> None:
    overwrite(filled, pages_of_root(filled, "activity"))
    other = LocalStore(filled.layout.directory)
    status = filled.layout.index.stat()
    moved = quarantine_index(filled.layout.index, (status.st_dev, status.st_ino))
    assert moved is not None
    other.put(key(5), Artifact(b"newer"))
    assert salvage(moved, filled.layout.index) == MANY - 1
    assert other.get(key(5)) == Hit(b"newer", {}, {})
    other.close()


def test_a_reader_without_descriptors_does_not_take_the_index_for_immutable(
    filled: LocalStore, key: Key, run_python: Run
) -> None:
    """It could read a file that others write to, find it malformed, and quarantine it."""
    program = """
import os, resource, sys
from pathlib import Path
from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
def key_of(text):
    return CacheKey.build("kernel", {"scheme": b"test", "graph": str(text).encode()})
cache = Cache(Settings(Path(sys.argv[1]), "readwrite", "compile"))
other = Cache(cache.settings)
outcomes = set()
for spare in range(1, 5):
    highest = os.dup(0)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + spare, limit[1]))
    os.close(highest)
    found = cache.lookup(key_of(3))
    outcomes.add(found.reason if not isinstance(found, Hit) else "hit")
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    for number in range(40):
        assert other.store(key_of(f"{spare} {number}"), Artifact(os.urandom(3000)))
    assert isinstance(cache.lookup(key_of(3)), Hit)
    assert cache.store(key_of("new"), Artifact(b"new"))
    cache._store.close()
print(sorted(outcomes))
"""
    outcomes = run_python(program, filled.layout.directory)
    assert "unreadable" in outcomes
    assert "damaged" not in outcomes
    assert quarantined(filled) == []
    assert len(filled.scan()) == MANY + 4 * 40 + 1


def test_an_index_read_as_immutable_that_is_written_to_is_unreadable_and_stays(
    filled: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        database, "open_for_reading", lambda path: connections._opened(path, connections._IMMUTABLE)
    )
    assert isinstance(filled.get(key(1)), Hit)
    sound = filled.layout.index.read_bytes()
    for page in pages_of(filled, "record"):
        overwrite(filled, page)
    found = next(miss for n in range(MANY) if isinstance(miss := filled.get(key(n)), Miss))
    assert found.reason == "unreadable"
    filled.layout.index.write_bytes(sound)
    filled.put(key("new"), Artifact(b"new"))
    assert quarantined(filled) == []


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Yield a directory that every user can enter."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
def test_a_log_that_may_not_be_written_is_no_damage(open_directory: Path, key: Key) -> None:
    """Run as another user than root, for whom modes count."""
    cache_directory = open_directory / "cache"
    cache_directory.mkdir()
    os.chown(cache_directory, 65534, 65534)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            store = LocalStore(cache_directory)
            store.put(key(1), artifact(1))
            index = store.layout.index
            os.chmod(f"{index}-wal", 0o400)
            writer = Cache(Settings(cache_directory, "readwrite", "compile"))
            assert not writer.store(key(2), artifact(2))
            assert isinstance(writer.lookup(key(1)), Hit)
            os.chmod(f"{index}-wal", 0o600)
            assert writer.store(key(2), artifact(2))
            assert found_of(store, key) == {1, 2}
            assert quarantined(store) == []
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_constraint_of_a_newer_release_is_no_damage(filled: LocalStore, key: Key) -> None:
    execute(
        filled,
        "CREATE TRIGGER newer BEFORE INSERT ON entry WHEN NEW.summary = '' BEGIN SELECT RAISE(ABORT, 'no summary'); END",
        f"PRAGMA user_version = {SCHEMA_VERSION + 1}",
    )
    cache = Cache(Settings(filled.layout.directory, "readwrite", "compile"))
    assert not cache.store(key("new"), Artifact(b"new"))
    assert cache.store(key("other"), Artifact(b"other", summary="other"))
    assert found_of(filled, key) == set(range(MANY))
    assert quarantined(filled) == []
    cache._store.close()


def test_a_sound_index_is_not_looked_at_again_at_every_failure(
    filled: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    fault_of = soundness.fault_of
    monkeypatch.setattr(soundness, "fault_of", lambda path: looks.append(path) or fault_of(path))  # type: ignore[func-returns-value]
    execute(filled, "CREATE TRIGGER no BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'no'); END")
    for _ in range(4):
        with pytest.raises(sqlite3.IntegrityError):
            filled.put(key("new"), Artifact(b"new"))
    assert len(looks) == 1


FLIPPED = [0, 1, 2, SCHEMA_VERSION | 1 << 4, SCHEMA_VERSION | 1 << 20, SCHEMA_VERSION - 2**31, -1]


@pytest.mark.parametrize("number", FLIPPED)
def test_a_damaged_number_of_the_schema_costs_nothing(number: int, filled: LocalStore, key: Key) -> None:
    execute(filled, f"PRAGMA user_version = {number}")
    assert found_of(filled, key) == set(range(MANY))
    filled.put(key("new"), Artifact(b"new"))
    assert found_of(filled, key) == set(range(MANY))
    assert len(filled.scan()) == MANY + 1
    assert quarantined(filled) == []


@pytest.mark.parametrize("number", FLIPPED[::3])
@pytest.mark.parametrize("command", ["verify", "prune"])
def test_commands_work_on_a_damaged_number_of_the_schema(
    number: int, command: str, filled: LocalStore, key: Key
) -> None:
    execute(filled, f"PRAGMA user_version = {number}")
    if command == "verify":
        assert verify(filled) == []
    else:
        carry_out(filled, plan(filled, time.time()))
    assert found_of(filled, key) == set(range(MANY))
    assert quarantined(filled) == []


@pytest.mark.parametrize("schema", range(1, SCHEMA_VERSION))
@pytest.mark.parametrize("number", FLIPPED[2::3])
def test_an_older_index_with_a_damaged_number_is_brought_up_all_the_same(
    schema: int, number: int, store: LocalStore, key: Key
) -> None:
    older = OlderRelease(store.layout.directory, schema)
    older.close()
    execute(store, f"PRAGMA user_version = {number}")
    store.put(key("new"), Artifact(b"new"))
    assert isinstance(store.get(key("new")), Hit)
    assert verify(store) == []
