"""Any sequence of the verbs of `Store`, with crashes, behaves like a dict in every store."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from cachegraph.key import CacheKey
from cachegraph.store.activity import Activity
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local.sizes import bytes_held
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.planning import Criteria
from cachegraph.store.maintenance.pruning import carry_out, plan
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.tiers import TieredStore
from tests.cachegraph.store.memory import MemoryStore
from tests.cachegraph.store.state_machine import CRASHES, Crash, StoreAgainstDict, artifacts, crashing, keys


class LocalAgainstDict(StoreAgainstDict):
    def open(self) -> LocalStore:
        return LocalStore(self.directory)

    @rule(which=st.integers(0, 1))
    def prune_what_nothing_needs(self, which: int) -> None:
        """Prune much later: kernels and Ops without references, blobs, leftovers go."""
        carry_out(self.stores[which], plan(self.stores[which], now=2e10))
        self.forget(key for key in self.held if key.level in ("op", "kernel"))

    @rule(key=keys, artifact=artifacts, room=st.integers(0, 300_000))
    def put_within_a_limit(self, key: CacheKey, artifact: Artifact, room: int) -> None:
        """Evicted entries miss as evicted, and the others are right."""
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
    keeps_index = False

    def open(self) -> SharedStore:
        return SharedStore(self.directory)

    @rule(which=st.integers(0, 1), size=st.integers(0, 300_000), later=st.sampled_from([0.0, 1e8]))
    def prune_to_a_size(self, which: int, size: int, later: float) -> None:
        chosen = plan(self.stores[which], time.time() + later, Criteria(max_size=size))
        carry_out(self.stores[which], chosen)
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


class TieredAgainstDict(StoreAgainstDict):
    def open(self) -> TieredStore:
        return TieredStore(LocalStore(self.directory / "near"), [SharedStore(self.directory / "far")])

    @rule(which=st.integers(0, 1), key=keys, artifact=artifacts, point=st.sampled_from(CRASHES))
    def crash_while_putting(self, which: int, key: CacheKey, artifact: Artifact, point: str) -> None:
        """The process ends at `point`; the local tier may have the artifact by then, whole."""
        before = self.held.get(key)
        with crashing(point), suppress(Crash):
            self.stores[which].put(key, artifact)
        self.stores[which] = self.open()
        local = {entry.digest: (entry.payload_size, entry.seconds) for entry in self.stores[which].scan()}
        if local.get(key.digest) == (len(artifact.payload), artifact.seconds):
            self.held[key] = artifact
        elif before is None:
            assert key.digest not in local
        if key in self.held:  # in both tiers again
            self.stores[which].put(key, self.held[key])

    @rule(which=st.integers(0, 1))
    def lose_the_index(self, which: int) -> None:
        """The shared tier still has every entry, and hits are copied to a new index."""
        for store in self.stores:
            store.close()
        shutil.rmtree(self.directory / "near", ignore_errors=True)
        self.deleted.clear()
        for key, artifact in self.held.items():
            found = self.stores[which].get(key)
            assert isinstance(found, Hit)
            assert found.payload == artifact.payload
        self.stores[which].add_counts(Activity().take())


class MemoryAgainstDict(StoreAgainstDict):
    quarantines = False

    def open(self) -> MemoryStore:
        if not hasattr(self, "memory"):
            self.memory = MemoryStore()
        return self.memory

    @rule()
    def end(self) -> None:
        """All entries, and the record of deletions, end with the process."""
        del self.memory
        self.stores = [self.open(), self.open()]
        self.held.clear()
        self.deleted.clear()


TestLocalAgainstDict = LocalAgainstDict.TestCase
TestSharedAgainstDict = SharedAgainstDict.TestCase
TestTieredAgainstDict = TieredAgainstDict.TestCase
TestMemoryAgainstDict = MemoryAgainstDict.TestCase
for case in (TestLocalAgainstDict, TestSharedAgainstDict, TestTieredAgainstDict, TestMemoryAgainstDict):
    case.settings = settings(max_examples=15, stateful_step_count=20)
