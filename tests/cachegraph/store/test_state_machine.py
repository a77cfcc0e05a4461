"""Any sequence of puts, gets, deletes and reopenings behaves as a dict does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.eviction import carry_out, plan
from cachegraph.store.local import LocalStore
from cachegraph.store.publishing import INLINE_LIMIT

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
    """The store, and a dict that says what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.stores = [LocalStore(self.directory), LocalStore(self.directory)]
        self.held: dict[CacheKey, Artifact] = {}
        self.deleted: set[CacheKey] = set()

    @rule(which=st.integers(0, 1), key=keys, artifact=artifacts)
    def put(self, which: int, key: CacheKey, artifact: Artifact) -> None:
        self.stores[which].put(key, artifact)
        self.held[key] = artifact

    @rule(which=st.integers(0, 1), key=keys)
    def get(self, which: int, key: CacheKey) -> None:
        found = self.stores[which].get(key)
        if key not in self.held:
            assert isinstance(found, Miss)
            assert found.reason == ("evicted" if key in self.deleted else "never-seen")
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
        self.deleted |= there
        for key in there:
            del self.held[key]

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.stores[which].close()
        self.stores[which] = LocalStore(self.directory)

    @rule(which=st.integers(0, 1))
    def prune_what_nothing_refers_to(self, which: int) -> None:
        carry_out(self.stores[which], plan(self.stores[which], now=2e10))

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


TestStoreAgainstDict = StoreAgainstDict.TestCase
TestStoreAgainstDict.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
