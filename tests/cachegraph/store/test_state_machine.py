"""Any sequence of puts, gets, deletes and reopenings behaves as a dict does, in every kind of store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.interface import Store
from cachegraph.store.local import LocalStore
from cachegraph.store.memory import MemoryStore
from cachegraph.store.pruning import carry_out, plan
from cachegraph.store.publishing import INLINE_LIMIT
from cachegraph.store.shared import SharedStore

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

    @invariant()
    def the_listing_is_what_is_held(self) -> None:
        listed = {entry.digest: entry.size for entry in self.stores[0].scan()}
        sizes = {
            key.digest: len(artifact.payload) + sum(map(len, artifact.blobs.values()))
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


class SharedAgainstDict(StoreAgainstDict):
    remembers_deletions = False

    def open(self) -> SharedStore:
        return SharedStore(self.directory)

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


TestLocalAgainstDict = LocalAgainstDict.TestCase
TestSharedAgainstDict = SharedAgainstDict.TestCase
TestMemoryAgainstDict = MemoryAgainstDict.TestCase
for case in (TestLocalAgainstDict, TestSharedAgainstDict, TestMemoryAgainstDict):
    case.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
