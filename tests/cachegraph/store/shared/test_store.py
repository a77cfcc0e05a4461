"""The shared store: `get` returns exactly what was written, or a miss with a reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.key import CacheKey
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.shared.entry_file import EntryDescription, read_description, split_file
from cachegraph.store.shared.store import SharedStore

Key = Callable[..., CacheKey]
Run = Callable[..., str]

PRELUDE = """
import sys
from pathlib import Path
from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.shared.store import SharedStore
store = SharedStore(Path(sys.argv[1]))
def key_of(text):
    return CacheKey.build("kernel", {"scheme": b"test", "graph": str(text).encode()})
"""


@pytest.fixture
def shared(tmp_path: Path) -> SharedStore:
    return SharedStore(tmp_path / "shared")


def files(store: SharedStore) -> list[Path]:
    return sorted(path for path in store.layout.directory.rglob("*") if path.is_file())


def test_another_process_finds_what_was_put(shared: SharedStore, key: Key, run_python: Run) -> None:
    shared.put(key("a"), Artifact(b"small", {"graph": b"g"}, {"compile": 1.5}))
    shared.put(key("b"), Artifact(b"x" * (INLINE_LIMIT + 1)))
    program = (
        PRELUDE
        + "a, b = store.get(key_of('a')), store.get(key_of('b'))\n"
        + "print(a.payload, store.read_blob(a.blobs['graph']), a.seconds, len(b.payload))\n"
        + "print(sorted(set(sys.modules) & {'sqlalchemy', 'json', 'logging'}))"
    )
    assert run_python(program, shared.layout.directory).splitlines() == [
        f"b'small' b'g' {{'compile': 1.5}} {INLINE_LIMIT + 1}",
        "[]",
    ]


def test_nothing_is_made_before_something_is_put(shared: SharedStore, key: Key) -> None:
    assert shared.get(key("a")) == Miss("never-seen", f"{shared.layout.directory} has no such key")
    assert shared.scan() == []
    assert shared.read_blob("00" * 40) is None
    assert not shared.layout.directory.exists()


@pytest.mark.parametrize("umask", [0, 0o777])
def test_files_are_for_their_owner_whatever_the_umask(shared: SharedStore, key: Key, umask: int) -> None:
    before = os.umask(umask)
    try:
        shared.put(key("a"), Artifact(b"a", {"graph": b"g"}))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(shared)} == {0o600}
    directories = [path for path in shared.layout.directory.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in directories} == {0o700}


@pytest.mark.parametrize("payload", [b"p" * 200, b"p" * (INLINE_LIMIT + 1)])
def test_no_flipped_bit_gives_a_wrong_payload_and_the_next_put_heals(
    shared: SharedStore, key: Key, payload: bytes
) -> None:
    shared.put(key("a"), Artifact(payload, {}, {"compile": 1.0}))
    for path in files(shared):
        whole = path.read_bytes()
        for offset in [*range(min(len(whole), 420)), len(whole) - 1]:
            path.write_bytes(whole[:offset] + bytes((whole[offset] ^ 4,)) + whole[offset + 1 :])
            found = shared.get(key("a"))
            assert isinstance(found, Miss), offset
            assert found.reason in ("damaged", "foreign-format")
        for size in (0, 1, 23, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert shared.get(key("a")).reason == "damaged"  # type: ignore[union-attr]
        shared.put(key("a"), Artifact(payload, {}, {"compile": 1.0}))
        assert shared.get(key("a")) == Hit(payload, {}, {"compile": 1.0})


def test_an_entry_under_another_name_is_damage(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a"))
    other = shared.layout.entry(key("b").hex)
    other.parent.mkdir(parents=True, exist_ok=True)
    shared.layout.entry(key("a").hex).rename(other)
    assert shared.get(key("b")).reason == "damaged"  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_unreadable_and_hangs_nobody(
    shared: SharedStore, key: Key, make: Callable[[Path], None]
) -> None:
    path = shared.layout.entry(key("a").hex)
    path.parent.mkdir(parents=True)
    make(path)
    assert shared.get(key("a")).reason == "unreadable"  # type: ignore[union-attr]


def test_an_entry_describes_itself(shared: SharedStore, key: Key) -> None:
    shared.put(
        key("a"), Artifact(b"abc", {"graph": b"gg"}, {"compile": 2.0}, "a summary", [key("b").digest]), 0.25
    )
    [entry] = shared.scan()
    assert (entry.digest, entry.level, entry.summary) == (key("a").digest, "kernel", "a summary")
    assert (entry.payload_size, entry.blob_size, entry.build_seconds, entry.load_seconds) == (3, 2, 2.0, 0.25)
    content = shared.layout.entry(key("a").hex).read_bytes()
    found = read_description(content, key("a").digest)
    assert isinstance(found, EntryDescription)
    assert found.entry._replace(last_used=entry.last_used, stored_size=len(content)) == entry
    assert found.references == (key("b").digest,)
    assert list(found.record.blobs) == ["graph"]
    assert isinstance(read_description(content[:-1], key("a").digest), Miss)
    assert isinstance(split_file(b""), Miss)


def test_deleting_removes_entries_and_leaves_blobs(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a", {"graph": b"g"}))
    assert shared.delete([key("a").digest, key("b").digest]) == 1
    assert len(files(shared)) == 1
    assert shared.get(key("a")).reason == "never-seen"  # type: ignore[union-attr]
