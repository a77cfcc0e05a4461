"""Two sshfs mounts of one directory, like two hosts: kills, flipped bits, claims, and no wrong byte.

sshfs caches for seconds, and its locks do not exclude other mounts: a store that works here needs
neither coherence nor locks.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.claims.directory_lease_files import DirectoryLeaseFiles
from cachegraph.store.claims.lease import Host, Lease
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.filesystem import file_system
from cachegraph.store.shared import node
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.tiers import place
from cachegraph.store.trust import Guard, Trust
from tests.cachegraph.store.test_faults import WRITER

sys.path.append(str(Path(__file__).resolve().parents[3] / "tools" / "slurm"))
import sshfs

Key = Callable[..., CacheKey]
Start = Callable[..., "subprocess.Popen[str]"]

LONG = os.environ.get("CACHEGRAPH_STRESS") == "full"
CACHED_SECONDS = 25.0
"""A little longer than sshfs may show outdated content."""

pytestmark = pytest.mark.slow


class Mounts(NamedTuple):
    """One directory (`real`), and two mounts of it."""

    real: Path
    one: Path
    two: Path


@pytest.fixture(scope="module")
def server() -> Iterator[sshfs.Server]:
    if reason := sshfs.unavailable():
        pytest.skip(reason)
    with sshfs.serving() as running:
        yield running


@pytest.fixture
def mounts(server: sshfs.Server, tmp_path: Path) -> Iterator[Mounts]:
    places = Mounts(tmp_path / "real", tmp_path / "one", tmp_path / "two")
    places.real.mkdir(mode=0o700)
    with ExitStack() as stack:
        try:
            stack.enter_context(server.mounted(*places))
        except sshfs.MountError as error:
            pytest.skip(f"sshfs does not mount here: {error}")
        yield places


@pytest.fixture
def stores(mounts: Mounts) -> tuple[SharedStore, SharedStore]:
    return SharedStore(mounts.one / "cache"), SharedStore(mounts.two / "cache")


def large(text: bytes) -> Artifact:
    return Artifact(text * (INLINE_LIMIT + 1), {"graph": b"g" + text}, {"compile": 1.0})


def await_hit(store: SharedStore, key: CacheKey) -> Hit:
    """Return the hit once the mount shows it; every miss until then must be "never-seen"."""
    end = time.monotonic() + CACHED_SECONDS
    while isinstance(found := store.get(key), Miss):
        assert found.reason in ("never-seen", "unreadable", "damaged"), found
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def test_a_cache_directory_on_it_holds_files_and_its_index_is_on_the_node(
    mounts: Mounts, key: Key, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "user_cache_directory", lambda: str(tmp_path / "user"))
    assert file_system(mounts.one).name == "fuse"
    settings = Settings(mounts.one / "cache", "readwrite", "compile")
    assert place(settings.directory).on_node
    cache = Cache(settings)
    found = cache.get_or_build(key("a"), lambda: large(b"a"), bytes)
    assert found.outcome == "miss"
    assert Cache(settings).get_or_build(key("a"), lambda: pytest.fail("built"), bytes).outcome == "hit"  # type: ignore[arg-type, return-value]
    assert not list(mounts.real.rglob("index.sqlite*"))
    assert await_hit(SharedStore(mounts.two / "cache"), key("a")).payload == large(b"a").payload
    assert not list(mounts.real.glob("cache/v1/l/*/*"))


def test_what_is_put_through_one_mount_is_found_through_the_other_also_after_a_miss(
    stores: tuple[SharedStore, SharedStore], key: Key
) -> None:
    one, two = stores
    assert isinstance(two.get(key("a")), Miss)
    one.put(key("a"), large(b"a"))
    found = await_hit(two, key("a"))
    assert (found.payload, two.read_blob(found.blobs["graph"])) == (large(b"a").payload, b"ga")


def test_no_flipped_bit_and_no_cut_gives_a_wrong_byte_and_the_next_put_heals(
    mounts: Mounts, stores: tuple[SharedStore, SharedStore], key: Key
) -> None:
    one, two = stores
    one.put(key("a"), large(b"a"))
    await_hit(two, key("a"))
    choose = random.Random(1)
    files = [path for path in mounts.real.rglob("*") if path.is_file()]
    for path in files:
        whole = path.read_bytes()
        offsets = {0, 3, 19, 30, len(whole) - 1, *(choose.randrange(len(whole)) for _ in range(30))}
        for offset in (offset for offset in sorted(offsets) if offset < len(whole)):
            path.write_bytes(whole[:offset] + bytes((whole[offset] ^ 16,)) + whole[offset + 1 :])
            for store in stores:
                check_right_or_missing(store, key("a"), b"a")
        path.write_bytes(whole[: len(whole) // 2])
        for store in stores:
            check_right_or_missing(store, key("a"), b"a")
    two.put(key("a"), large(b"a"))
    assert await_hit(SharedStore(mounts.real / "cache"), key("a")).payload == large(b"a").payload
    assert await_hit(one, key("a")).payload == large(b"a").payload


def check_right_or_missing(store: SharedStore, key: CacheKey, text: bytes) -> None:
    """Cached content is right; content that sshfs reads again is damaged, or cut to a cached length."""
    found = store.get(key)
    if isinstance(found, Hit):
        assert found.payload == large(text).payload
        assert store.read_blob(found.blobs["graph"]) in (None, b"g" + text)
    else:
        assert found.reason in ("damaged", "foreign-format", "unreadable")


@pytest.mark.stress
def test_writers_killed_on_both_mounts_leave_no_wrong_byte(
    mounts: Mounts, stores: tuple[SharedStore, SharedStore], key: Key, start_python: Start
) -> None:
    acknowledged: set[int] = set()
    for seed in range(200 if LONG else 6):
        writers = [start_python(WRITER, mount / "cache", n * 5 + seed) for n, mount in enumerate(mounts[1:])]
        for writer in writers:
            assert writer.stdout is not None
            acknowledged.add(int(writer.stdout.readline()))
        time.sleep(random.Random(seed).random() * 0.05)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        acknowledged |= {int(line) for w in writers for line in w.communicate()[0].split("\n")[:-1]}
        for store in stores:
            check_killed(store, key, set())  # a mount may not show the files of the other yet
        check_killed(SharedStore(mounts.real / "cache"), key, acknowledged)
    stores[0].put(key("alive"), Artifact(b"alive"))
    assert await_hit(stores[1], key("alive")).payload == b"alive"


def check_killed(store: SharedStore, key: Key, acknowledged: set[int]) -> None:
    for i in range(12):
        found, text = store.get(key(i)), str(i).encode()
        if isinstance(found, Hit):
            assert found.payload in (text * 40_000, text * 9)
            assert store.read_blob(found.blobs["graph"]) in (None, text * 300)
        else:
            assert i not in acknowledged, found


def test_the_lease_excludes_across_mounts_and_the_dead_are_replaced(mounts: Mounts) -> None:
    """Files made with O_EXCL have one winner here, where locks have two."""
    leases = [
        Lease(
            DirectoryLeaseFiles(
                mount / "cache" / "v1" / "l" / "ab" / "abcd", Guard(mount / "cache", Trust.of("private"))
            ),
            ttl=3.0,
            host=Host(f"n{number}", f"machine {number}"),
        )
        for number, mount in enumerate(mounts[1:])
    ]
    assert leases[0].acquire() is None
    end = time.monotonic() + 6.0
    while time.monotonic() < end:
        assert leases[1].acquire() is not None
        time.sleep(0.3)
    leases[0].release()
    assert leases[1].acquire() is None  # although the mount still lists the file for a while
    leases[1].release()
