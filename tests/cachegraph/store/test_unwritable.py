"""A directory that is read-only, unreadable or full: hits still hit, and nothing raises."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.caching.counters import Tally
from cachegraph.key import CacheKey
from cachegraph.settings import Mode, Settings
from cachegraph.store.local import connections
from cachegraph.store.local.store import LocalStore

Key = Callable[..., CacheKey]
Run = Callable[..., str]


@pytest.fixture(autouse=True)
def tally(monkeypatch: pytest.MonkeyPatch) -> Tally:
    fresh = Tally()
    monkeypatch.setattr("cachegraph.caching.records.PROCESS", fresh)
    return fresh


def cache_in(directory: Path, mode: Mode = "readwrite") -> Cache:
    return Cache(Settings(directory, mode, "compile"))


class Volume:
    """A small file system in memory, mounted for one test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self._run("mount", "-t", "tmpfs", "-o", "size=400k", "cachegraph-test", str(path))

    def resize(self, size: str) -> None:
        self._run("mount", "-o", f"remount,size={size}", str(self.path))

    def make_read_only(self) -> None:
        self._run("mount", "-o", "remount,ro", str(self.path))

    def fill(self) -> None:
        with (self.path / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(b"x" * 4096)

    def close(self) -> None:
        self._run("umount", str(self.path))

    def _run(self, *command: str) -> None:
        if shutil.which(command[0]) is None:
            pytest.skip(f"there is no {command[0]} here")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    mounted = Volume(tmp_path / "volume")
    yield mounted
    mounted.close()


@pytest.mark.parametrize("mode", ["readonly", "readwrite"])
def test_a_read_only_file_system_hits(mode: Mode, volume: Volume, key: Key, tally: Tally) -> None:
    writer = cache_in(volume.path)
    assert writer.store(key("a"), Artifact(b"a" * 70_000, {"graph": b"g"}, {"compile": 1.0}))
    writer._store.close()
    volume.make_read_only()
    cache = cache_in(volume.path, mode)
    found = cache.lookup(key("a"))
    assert isinstance(found, Hit)
    assert found.payload == b"a" * 70_000
    assert cache.read_blob(found.blobs["graph"]) == b"g"
    assert isinstance(cache.lookup(key("b")), Miss)
    assert not cache.store(key("b"), Artifact(b"b"))
    assert tally.snapshot().store_failures == ({} if mode == "readonly" else {"read-only": 1})
    cache.flush()
    assert len(cache._store.scan()) == 1
    cache._store.close()


def test_a_read_only_copy_with_a_write_ahead_log_never_raises(
    volume: Volume, key: Key, tmp_path: Path
) -> None:
    writer = cache_in(tmp_path / "origin")
    assert writer.store(key("a"), Artifact(b"a"))
    shutil.copytree(tmp_path / "origin", volume.path / "copy")
    writer._store.close()
    (volume.path / "copy" / "v1" / "index.sqlite-shm").unlink()
    volume.make_read_only()
    cache = cache_in(volume.path / "copy", "readonly")
    found = cache.lookup(key("a"))
    assert isinstance(found, Hit) or found.reason in ("never-seen", "unreadable", "damaged")
    cache._store.close()


def test_a_full_file_system_keeps_what_it_has(volume: Volume, key: Key, tally: Tally) -> None:
    volume.resize("2m")  # an empty index takes 200 kB of it, and an entry of 16 kB up to 80 kB in the log
    cache = cache_in(volume.path)
    kept = [i for i in range(60) if cache.store(key(i), Artifact(str(i).encode() * 8000))]
    assert 15 < len(kept) < 60
    assert set(tally.snapshot().store_failures) == {"full"}
    assert not cache.store(key("blob"), Artifact(b"x" * 300_000))
    assert list(volume.path.rglob(".tmp-*")) == []
    for i in kept:
        found = cache.lookup(key(i))
        assert isinstance(found, Hit)
        assert found.payload == str(i).encode() * 8000
    built = cache.get_or_build(key("new"), lambda: Artifact(b"y" * 300_000), bytes)
    assert (built.value, built.outcome) == (b"y" * 300_000, "miss")
    cache.flush()
    cache._store.close()


def test_a_file_system_without_room_for_sqlites_own_files_hits(volume: Volume, key: Key) -> None:
    writer = cache_in(volume.path)
    assert writer.store(key("a"), Artifact(b"a"))
    writer._store.close()
    volume.fill()
    cache = cache_in(volume.path)
    assert isinstance(cache.lookup(key("a")), Hit)
    cache._store.close()


def test_a_full_file_system_from_the_start_is_a_miss(volume: Volume, key: Key, tally: Tally) -> None:
    (volume.path / "ballast").write_bytes(b"x" * 390_000)
    cache = cache_in(volume.path)
    assert not cache.store(key("a"), Artifact(b"a" * 20_000))
    assert isinstance(cache.lookup(key("a")), Miss)
    assert tally.snapshot().store_failures == {"full": 1}
    (volume.path / "ballast").unlink()
    assert cache.store(key("a"), Artifact(b"a" * 20_000))
    assert isinstance(cache.lookup(key("a")), Hit)
    cache._store.close()


def test_a_limit_on_file_sizes_is_a_full_disk(run_python: Run, cache_directory: Path) -> None:
    program = """
import resource, sys
from pathlib import Path
from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.caching.counters import counters
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
cache = Cache(Settings(Path(sys.argv[1]), "readwrite", "compile"))
keys = [CacheKey.build("kernel", {"graph": bytes((i,))}) for i in range(40)]
kept = [key for key in keys if cache.store(key, Artifact(key.digest * 1000))]
assert 3 < len(kept) < 40, len(kept)
assert not cache.store(CacheKey.build("op", {}), Artifact(b"x" * 400_000))
assert all(cache.lookup(key).payload == key.digest * 1000 for key in kept)
print(sorted(counters().store_failures))
"""
    assert run_python(program, cache_directory).strip() in (
        "['full']",
        "['full', 'io-error']",
        "['io-error']",
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_a_directory_that_cannot_be_made_is_a_failure_with_a_reason(
    code: int, key: Key, tally: Tally, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    cache = cache_in(cache_directory)
    assert not cache.store(key("a"), Artifact(b"a"))
    assert isinstance(cache.lookup(key("a")), Miss)
    assert sum(tally.snapshot().store_failures.values()) == 1


SQLITE_FAILURES = {
    "SQLITE_BUSY": "busy",
    "SQLITE_FULL": "full",
    "SQLITE_READONLY_ROLLBACK": "read-only",
    "SQLITE_CANTOPEN": "read-only",
    "SQLITE_IOERR_WRITE": "io-error",
}


@pytest.mark.parametrize("name", SQLITE_FAILURES)
def test_what_sqlite_raises_on_writing_is_a_failure_with_a_reason(
    name: str, key: Key, tally: Tally, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        error = sqlite3.OperationalError(name)
        error.sqlite_errorcode = getattr(sqlite3, name)
        raise error

    monkeypatch.setattr(connections, "_enter_wal_mode", fail)
    cache = cache_in(cache_directory)
    assert not cache.store(key("a"), Artifact(b"a"))
    assert tally.snapshot().store_failures == {SQLITE_FAILURES[name]: 1}
    monkeypatch.undo()
    assert cache.store(key("a"), Artifact(b"a"))
    assert isinstance(cache.lookup(key("a")), Hit)
    cache._store.close()


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
def test_a_blob_that_cannot_be_read_is_unreadable(
    code: int, key: Key, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_in(cache_directory)
    assert cache.store(key("a"), Artifact(b"a" * 100_000))

    def refuse(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    found = cache.lookup(key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "unreadable"
    assert os.strerror(code) in found.detail
    cache._store.close()


def test_a_file_where_the_directory_should_be_is_a_failure_with_a_reason(
    key: Key, tally: Tally, cache_directory: Path
) -> None:
    cache_directory.write_text("in the way")
    cache = cache_in(cache_directory)
    assert isinstance(cache.lookup(key("a")), Miss)
    assert not cache.store(key("a"), Artifact(b"a"))
    cache.flush()
    assert tally.snapshot().store_failures == {"io-error": 1}
    assert cache_directory.read_text() == "in the way"


def test_a_directory_where_the_index_should_be_is_a_failure_with_a_reason(
    key: Key, tally: Tally, cache_directory: Path
) -> None:
    (cache_directory / "v1" / "index.sqlite").mkdir(parents=True)
    cache = cache_in(cache_directory)
    assert isinstance(cache.lookup(key("a")), Miss)
    assert not cache.store(key("a"), Artifact(b"a"))
    assert tally.snapshot().store_failures == {"read-only": 1}


def test_a_busy_index_hits_and_does_not_wait_for_ever_to_write(
    key: Key, tally: Tally, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.05)
    cache = cache_in(cache_directory)
    assert cache.store(key("a"), Artifact(b"a"))
    other = sqlite3.connect(cache_directory / "v1" / "index.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert isinstance(cache.lookup(key("a")), Hit)
    assert not cache.store(key("b"), Artifact(b"b"))
    assert tally.snapshot().store_failures == {"busy": 1}
    cache.flush()
    other.execute("ROLLBACK")
    other.close()
    assert cache.store(key("b"), Artifact(b"b"))
    cache._store.close()


def test_an_index_under_another_name_is_not_written_to(key: Key, cache_directory: Path) -> None:
    """A writer begins a new index if the one that it has open is renamed."""
    store = LocalStore(cache_directory)
    store.put(key("a"), Artifact(b"a"))
    index = cache_directory / "v1" / "index.sqlite"
    index.rename(cache_directory / "v1" / "moved")
    store.put(key("b"), Artifact(b"b"))
    assert isinstance(store.get(key("b")), Hit)
    assert isinstance(store.get(key("a")), Miss)
    store.close()
