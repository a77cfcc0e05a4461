"""Local copies of shared blobs: read once per node, waited for, and never needed for right results."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.fingerprint.primitives import content_name
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.claims.node_lock import NodeLock
from cachegraph.store.entry import INLINE_LIMIT
from cachegraph.store.local.store import LocalStore
from cachegraph.store.shared import near_blobs
from cachegraph.store.shared.near_blobs import NearBlobs

Key = Callable[..., CacheKey]
LARGE = b"large" * INLINE_LIMIT
NAME = content_name(LARGE)


@pytest.fixture
def local(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "node")


class Far:
    """A shared store that counts its reads."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.reads = 0
        self.seconds = seconds

    def __call__(self, digest_hex: str) -> bytes | None:
        self.reads += 1
        time.sleep(self.seconds)
        return LARGE


def test_a_blob_is_read_from_farther_away_once(local: LocalStore) -> None:
    far = Far()
    assert [NearBlobs(local).fetch(NAME, far) for _ in range(3)] == [LARGE] * 3
    assert far.reads == 1
    assert not list(local.layout.locks.iterdir())


def test_who_needs_it_at_the_same_time_waits_for_the_one_who_reads(local: LocalStore) -> None:
    far, found = Far(0.3), []
    threads = [
        threading.Thread(target=lambda: found.append(NearBlobs(local).fetch(NAME, far))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [LARGE] * 6
    assert far.reads == 1


def test_a_damaged_copy_is_read_again_and_replaced(local: LocalStore) -> None:
    far = Far()
    NearBlobs(local).fetch(NAME, far)
    local.layout.blob(NAME).write_bytes(b"spoiled")
    assert NearBlobs(local).fetch(NAME, far) == LARGE
    assert local.read_blob(NAME) == LARGE
    assert far.reads == 2


def test_who_holds_the_lock_for_long_is_waited_for_a_bounded_time(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_blobs, "LONGEST_WAIT", 0.1)
    other = NodeLock(local.layout.lock(NAME), local.guard)
    assert other.acquire() is None
    assert NearBlobs(local).fetch(NAME, Far()) == LARGE
    other.release()


def test_where_nothing_can_be_locked_or_kept_it_is_read(local: LocalStore) -> None:
    local.layout.directory.mkdir()
    (local.layout.directory / "v1").write_text("no directory")
    assert NearBlobs(local).fetch(NAME, Far()) == LARGE


def test_what_is_not_there_or_cannot_be_read_leaves_no_lock(local: LocalStore) -> None:
    def refuse(digest_hex: str) -> bytes | None:
        raise PermissionError(digest_hex)

    assert NearBlobs(local).fetch(NAME, lambda _: None) is None
    with pytest.raises(PermissionError):
        NearBlobs(local).fetch(NAME, refuse)
    assert not list(local.layout.locks.iterdir())


def _look_up(directory: Path, key: CacheKey) -> int:
    found = Cache(Settings(directory / "node", "readwrite", "compile", directory / "shared")).lookup(key)
    assert isinstance(found, Hit)
    return len(found.payload)


def test_another_process_of_the_node_needs_the_shared_blob_no_more(tmp_path: Path, key: Key) -> None:
    Cache(Settings(tmp_path / "elsewhere", "readwrite", "compile", tmp_path / "shared")).store(
        key("a"), Artifact(LARGE)
    )
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(_look_up, (tmp_path, key("a"))) == len(LARGE)
    (blob,) = (tmp_path / "shared" / "v1" / "b").rglob(NAME)
    blob.unlink()
    assert _look_up(tmp_path, key("a")) == len(LARGE)


def test_a_cache_that_only_reads_keeps_nothing(tmp_path: Path, key: Key) -> None:
    Cache(Settings(tmp_path / "elsewhere", "readwrite", "compile", tmp_path / "shared")).store(
        key("a"), Artifact(LARGE)
    )
    found = Cache(Settings(tmp_path / "node", "readonly", "compile", tmp_path / "shared")).lookup(key("a"))
    assert isinstance(found, Hit)
    assert not (tmp_path / "node").exists()
