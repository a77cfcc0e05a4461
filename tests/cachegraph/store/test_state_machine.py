"""Any sequence of puts, gets, deletes, evictions, crashes and reopenings behaves as a dict does, in every kind of store."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance import shared_pruning
from cachegraph.store.maintenance.criteria import Criteria
from cachegraph.store.maintenance.pruning import carry_out, plan
from cachegraph.store.memory import MemoryStore
from cachegraph.store.protocol import Store
from cachegraph.store.shared import files, publication
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.sizes import INLINE_LIMIT, bytes_held

KEYS = [
    CacheKey.build(level, {"graph": bytes((i,))})
    for i, level in enumerate(["function", "op", "kernel", "numba"])
]

keys = st.sampled_from(KEYS)
sizes = st.sampled_from([0, 1, 300, 20_000, INLINE_LIMIT, INLINE_LIMIT + 1])
artifacts = st.builds(
    lambda fill, size, blobs, seconds: Artifact(fill * size, blobs, seconds, "made by hypothesis"),
    st.binary(min_size=1, max_size=1),
    sizes,
    st.dictionaries(st.text("abc", min_size=1, max_size=2), st.binary(max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["rewrite", "compile"]), st.floats(0, 100), max_size=2),
)


CRASHES = ("before a file", "within a file", "before its rename", "within a transaction", "before its end")


class Crash(BaseException):
    """Stands for the end of the process: nobody handles it, and what it leaves behind stays."""


@contextmanager
def crashing(point: str) -> Iterator[None]:
    """Have whatever comes to `point` end there, the first time."""

    def crash(*_: object) -> None:
        raise Crash

    def half(path: Path, content: bytes, mode: int) -> None:
        path.write_bytes(content[: len(content) // 2])
        raise Crash

    def before_rename(path: Path, content: bytes, mode: int) -> None:
        write(path, content, mode)
        raise Crash

    def written_and_crash(*told: Any) -> None:
        belongings(*told)
        raise Crash

    write, belongings = files._write_durably, publication._write_belongings
    places: dict[str, tuple[Any, str, Any]] = {
        "before a file": (files, "_write_durably", crash),
        "within a file": (files, "_write_durably", half),
        "before its rename": (files, "_write_durably", before_rename),
        "within a transaction": (publication, "_write_belongings", crash),
        "before its end": (publication, "_write_belongings", written_and_crash),
    }
    with patch.object(*places[point]):
        yield


class StoreAgainstDict(RuleBasedStateMachine):
    """Two openings of one store, and a dict that says what it should hold."""

    remembers_deletions = True

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.stores: list[Any] = [self.open(), self.open()]
        self.held: dict[CacheKey, Artifact] = {}
        self.deleted: set[CacheKey] = set()

    def open(self) -> Store:
        raise NotImplementedError

    @rule(which=st.integers(0, 1), key=keys, artifact=artifacts)
    def put(self, which: int, key: CacheKey, artifact: Artifact) -> None:
        self.stores[which].put(key, artifact)
        self.held[key] = artifact

    @rule(which=st.integers(0, 1), key=keys)
    def get(self, which: int, key: CacheKey) -> None:
        found = self.stores[which].get(key)
        if key not in self.held:
            assert isinstance(found, Miss)
            assert found.reason == (
                "evicted" if key in self.deleted and self.remembers_deletions else "never-seen"
            )
            return
        expected = self.held[key]
        assert isinstance(found, Hit)
        assert (found.payload, found.seconds) == (expected.payload, expected.seconds)
        assert {
            name: self.stores[which].read_blob(blob) for name, blob in found.blobs.items()
        } == expected.blobs

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 1), chosen=st.sets(keys))
    def delete(self, which: int, chosen: set[CacheKey]) -> None:
        there = chosen & set(self.held)
        assert self.stores[which].delete(key.digest for key in chosen) == len(there)
        self.forget(there)

    def forget(self, gone: Iterable[CacheKey]) -> None:
        for key in list(gone):
            self.deleted.add(key)
            del self.held[key]

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.stores[which].close()
        self.stores[which] = self.open()

    @rule(which=st.integers(0, 1), key=keys, artifact=artifacts, point=st.sampled_from(CRASHES))
    def crash_while_putting(self, which: int, key: CacheKey, artifact: Artifact, point: str) -> None:
        """The process ends at `point`, if the put comes there: nobody ever sees a part of what it put."""
        with crashing(point):
            try:
                self.stores[which].put(key, artifact)
            except Crash:
                pass
            else:
                self.held[key] = artifact
        self.stores[which] = self.open()

    @invariant()
    def the_listing_is_what_is_held(self) -> None:
        listed = {entry.digest: (entry.payload_size, entry.blob_size) for entry in self.stores[0].scan()}
        sizes = {
            key.digest: (len(artifact.payload), sum(map(len, artifact.blobs.values())))
            for key, artifact in self.held.items()
        }
        assert listed == sizes

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.directory)


class LocalAgainstDict(StoreAgainstDict):
    def open(self) -> LocalStore:
        return LocalStore(self.directory)

    @rule(which=st.integers(0, 1))
    def prune_what_nothing_needs(self, which: int) -> None:
        """Long after: kernels and Ops that nothing refers to, blobs, leftovers."""
        carry_out(self.stores[which], plan(self.stores[which], now=2e10))
        self.forget(key for key in self.held if key.level in ("op", "kernel"))

    @rule(key=keys, artifact=artifacts, room=st.integers(0, 300_000))
    def put_within_a_limit(self, key: CacheKey, artifact: Artifact, room: int) -> None:
        """What is evicted for it is gone, and says so; what is not, is right."""
        size = len(artifact.payload) + sum(map(len, artifact.blobs.values()))
        limited = LocalStore(self.directory, max_size=size + room)
        limited.put(key, artifact)
        self.held[key] = artifact
        left = {entry.digest for entry in limited.scan()}
        with limited.database.writing() as connection:
            assert bytes_held(connection) <= limited.max_size or len(left) == 1
        limited.close()
        assert key.digest in left
        self.forget(key for key in self.held if key.digest not in left)


class SharedAgainstDict(StoreAgainstDict):
    remembers_deletions = False

    def open(self) -> SharedStore:
        return SharedStore(self.directory)

    @rule(which=st.integers(0, 1), size=st.integers(0, 300_000), later=st.sampled_from([0.0, 1e8]))
    def prune_to_a_size(self, which: int, size: int, later: float) -> None:
        chosen = shared_pruning.plan(self.stores[which], time.time() + later, Criteria(max_size=size))
        shared_pruning.carry_out(self.stores[which], chosen)
        gone = {entry.digest for entry in chosen.entries}
        self.forget(key for key in self.held if key.digest in gone)

    @precondition(lambda self: self.held)
    @rule(which=keys, place=st.integers(0, 10**6), bit=st.integers(0, 7))
    def damage_is_met_and_healed(self, which: CacheKey, place: int, bit: int) -> None:
        if which not in self.held:
            return
        path = self.stores[0].layout.entry(which.hex)
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= 1 << bit
        path.write_bytes(content)
        assert isinstance(self.stores[1].get(which), Miss)
        self.stores[0].put(which, self.held[which])


class MemoryAgainstDict(StoreAgainstDict):
    def open(self) -> MemoryStore:
        if not hasattr(self, "memory"):
            self.memory = MemoryStore()
        return self.memory

    @rule()
    def end(self) -> None:
        """All is gone with the process, and so is the memory of what was deleted."""
        del self.memory
        self.stores = [self.open(), self.open()]
        self.held.clear()
        self.deleted.clear()


TestLocalAgainstDict = LocalAgainstDict.TestCase
TestSharedAgainstDict = SharedAgainstDict.TestCase
TestMemoryAgainstDict = MemoryAgainstDict.TestCase
for case in (TestLocalAgainstDict, TestSharedAgainstDict, TestMemoryAgainstDict):
    case.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
