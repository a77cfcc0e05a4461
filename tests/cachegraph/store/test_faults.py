"""If any call on a shared directory fails, a read is a miss and a write an error, never a wrong byte."""

from __future__ import annotations

import errno
import gc
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store import files, paths
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.shared.store import SharedStore

Key = Callable[..., CacheKey]
Start = Callable[..., "subprocess.Popen[str]"]

CODES = [
    errno.ESTALE,
    errno.ETXTBSY,
    errno.EBUSY,
    errno.ENOENT,
    errno.EACCES,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
]
PASSING = {errno.ESTALE, errno.ETXTBSY, errno.EBUSY, errno.ENOENT}
WRITES = ["open", "fchmod", "write", "fsync", "close", "replace"]
READS = ["open", "fstat", "read", "close"]
ARTIFACT = Artifact(b"p" * (INLINE_LIMIT + 1), {"graph": b"g"}, {"compile": 1.0})


class FaultyOs:
    """The module os with one function that fails `times` times, from its call number `first` on."""

    def __init__(self, call: str, code: int, first: int = 0, times: int = 10**9) -> None:
        self.call, self.code, self.first, self.times = call, code, first, times
        self.made = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != self.call:
            return real

        def call(*arguments: Any, **keywords: Any) -> Any:
            self.made += 1
            fails = self.first < self.made <= self.first + self.times
            if not fails:
                return real(*arguments, **keywords)
            if name == "close":  # close() frees the descriptor even if it fails
                real(*arguments)
            raise OSError(self.code, os.strerror(self.code))

        return call


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SharedStore:
    monkeypatch.setattr(files, "_PAUSE", 0.0)
    return SharedStore(tmp_path / "shared")


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FaultyOs]:
    def begin(*arguments: Any, **keywords: Any) -> FaultyOs:
        faulty = FaultyOs(*arguments, **keywords)
        monkeypatch.setattr(files, "os", faulty)
        return faulty

    return begin


def names(store: SharedStore) -> set[str]:
    return {path.name for path in store.layout.directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect what other tests left open, and have later collections look at this module's objects alone."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def descriptors() -> int:
    gc.collect()  # a descriptor in a cycle is not left open
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", READS)
def test_a_read_that_fails_is_a_miss_with_a_reason(
    shared: SharedStore, key: Key, fail: Callable[..., FaultyOs], call: str, code: int
) -> None:
    shared.put(key("a"), ARTIFACT)
    before = descriptors()
    for first in range(4):  # in the entry, and in the blob of its payload
        faulty = fail(call, code, first)
        found = shared.get(key("a"))
        assert faulty.made > first or isinstance(found, Hit)
        if isinstance(found, Miss):
            assert found.reason in ("unreadable", "never-seen", "damaged")
            assert (found.reason == "never-seen") <= (code == errno.ENOENT)
        else:
            assert found.payload == ARTIFACT.payload
    assert descriptors() == before
    fail(call, code)
    assert isinstance(shared.get(key("a")), Miss)
    assert shared.read_blob("00" * 40) is None
    assert shared.scan() == []


@pytest.mark.parametrize("code", sorted(PASSING), ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["open", "fstat", "read"])
def test_a_read_that_fails_once_and_may_pass_is_tried_again(
    shared: SharedStore, key: Key, fail: Callable[..., FaultyOs], call: str, code: int
) -> None:
    shared.put(key("a"), ARTIFACT)
    fail(call, code, times=1)
    assert isinstance(shared.get(key("a")), Hit)


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", WRITES)
def test_a_write_that_fails_raises_it_and_leaves_nothing_half(
    shared: SharedStore, key: Key, fail: Callable[..., FaultyOs], call: str, code: int
) -> None:
    before = descriptors()
    shared.put(key("old"), Artifact(b"old"))
    kept = names(shared)
    for first in range(3):  # for the named blob, for the payload's, for the entry
        fail(call, code, first)
        other = b"%d" % first  # existing blobs are not written again
        artifact = Artifact(other * (INLINE_LIMIT + 1), {"graph": other})
        with pytest.raises(OSError, match=r".") as caught:
            shared.put(key("a"), artifact)
        assert caught.value.errno == code
        assert not any(name.startswith(".tmp-") for name in names(shared))
        assert key("a").hex not in names(shared)
    assert kept <= names(shared)
    assert descriptors() == before


@pytest.mark.parametrize("code", sorted(PASSING), ids=errno.errorcode.get)
@pytest.mark.parametrize("call", WRITES)
def test_a_write_that_fails_once_and_may_pass_is_tried_again(
    shared: SharedStore, key: Key, fail: Callable[..., FaultyOs], call: str, code: int
) -> None:
    for first in range(3):
        faulty = fail(call, code, first, times=1)
        shared.put(key(first), Artifact(b"payload %d" % first, {"graph": b"g%d" % first}))
        assert shared.get(key(first)).payload == b"payload %d" % first  # type: ignore[union-attr]
        assert faulty.made


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_a_directory_that_cannot_be_made_fails_the_write_alone(
    shared: SharedStore, key: Key, monkeypatch: pytest.MonkeyPatch, code: int, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(paths.Path, "mkdir", refuse)
    with pytest.raises(OSError, match=r"."):
        shared.put(key("a"), ARTIFACT)
    cache = Cache(Settings(tmp_path / "local", "readwrite", "compile", shared.layout.directory))
    assert cache.get_or_build(key("a"), lambda: ARTIFACT, bytes).value == ARTIFACT.payload


def test_short_writes_and_reads_are_continued(
    shared: SharedStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def write(self, descriptor: int, content: memoryview) -> int:
            return os.write(descriptor, content[:1000])

        def read(self, descriptor: int, size: int) -> bytes:
            return os.read(descriptor, min(size, 777))

    monkeypatch.setattr(files, "os", Short())
    shared.put(key("a"), ARTIFACT)
    assert shared.get(key("a")).payload == ARTIFACT.payload  # type: ignore[union-attr]


def test_what_becomes_visible_only_when_its_directory_is_opened_again_is_found(
    shared: SharedStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Delayed:
        """A network client that reports a file as missing until its directory is opened."""

        def __init__(self) -> None:
            self.refreshed: set[str] = set()

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def open(self, path: Path, flags: int, *mode: int) -> int:
            if flags & os.O_DIRECTORY:
                self.refreshed.add(str(path))
            elif not flags & os.O_CREAT and str(path.parent) not in self.refreshed:
                raise FileNotFoundError(errno.ENOENT, "not there", str(path))
            return os.open(path, flags, *mode)

    shared.put(key("a"), ARTIFACT)
    monkeypatch.setattr(files, "os", Delayed())
    assert isinstance(shared.get(key("a")), Hit)
    monkeypatch.setattr(files, "os", Delayed())
    assert SharedStore(shared.layout.directory, network=False).get(key("a")).reason == "never-seen"  # type: ignore[union-attr]


WRITER = """
import sys
from pathlib import Path
from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact
from cachegraph.store.shared.store import SharedStore
store = SharedStore(Path(sys.argv[1]))
i = int(sys.argv[2])
while True:
    i += 1
    key = CacheKey.build("kernel", {"scheme": b"test", "graph": str(i % 12).encode()})
    text = str(i % 12).encode()
    store.put(key, Artifact(text * (40_000 if i % 2 else 9), {"graph": text * 300}))
    sys.stdout.write(f"{i % 12}\\n")  # a number and the end of its line in one write, where output is unbuffered too
    sys.stdout.flush()
"""


def killed_writers(start: Start, store: SharedStore, seed: int) -> set[int]:
    """Start two writers, kill them at a random moment, and return the puts that they reported."""
    writers = [start(WRITER, store.layout.directory, n * 5 + seed) for n in range(2)]
    acknowledged: set[int] = set()
    for writer in writers:
        assert writer.stdout is not None
        line = writer.stdout.readline()
        assert line, writer.communicate()[1]
        acknowledged.add(int(line))
    time.sleep(random.Random(seed).random() * 0.03)
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        output, _ = writer.communicate()
        acknowledged |= {int(line) for line in output.split("\n")[:-1]}
    return acknowledged


def check_all(store: SharedStore, key: Key, acknowledged: set[int]) -> None:
    for i in range(12):
        found = store.get(key(i))
        text = str(i).encode()
        if i in acknowledged:
            assert isinstance(found, Hit), found
        if isinstance(found, Hit):
            assert found.payload in (text * 40_000, text * 9)
            assert store.read_blob(found.blobs["graph"]) == text * 300
        else:
            assert found.reason == "never-seen"


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_killed_writers_leave_every_acknowledged_entry_and_no_wrong_byte(
    shared: SharedStore, key: Key, start_python: Start
) -> None:
    """tools/stress/kill.py kills more writers, with more kinds of work."""
    acknowledged: set[int] = set()
    for seed in range(4):
        acknowledged |= killed_writers(start_python, shared, seed)
        check_all(shared, key, acknowledged)
    for i in range(12):
        shared.put(key(i), Artifact(str(i).encode() * 9, {"graph": str(i).encode() * 300}))
    check_all(shared, key, set(range(12)))
