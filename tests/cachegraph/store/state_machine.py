"""The state machine of all stores: any sequence of the verbs of `Store`, with crashes, beside a dict."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cachegraph.key import CacheKey, expanded
from cachegraph.store import files
from cachegraph.store.activity import Activity
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.local import publication
from cachegraph.store.protocol import Store

LEVELS = ["function", "op", "kernel", "numba", "kernel"]
KEYS = [CacheKey.build(level, {"scheme": b"test", "graph": bytes((i,))}) for i, level in enumerate(LEVELS)]

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
    """The end of the process: no code handles it, and leftovers stay."""


@contextmanager
def crashing(point: str) -> Iterator[None]:
    """Raise Crash when the code first comes to `point`."""

    def crash(*_: object) -> None:
        raise Crash

    def half(path: Path, content: bytes, mode: int) -> None:
        path.write_bytes(content[: len(content) // 2])
        raise Crash

    def before_rename(path: Path, content: bytes, mode: int) -> None:
        write(path, content, mode)
        raise Crash

    def written_and_crash(*told: Any) -> None:
        details(*told)
        raise Crash

    write, details = files._write_durably, publication._write_details
    places: dict[str, tuple[Any, str, Any]] = {
        "before a file": (files, "_write_durably", crash),
        "within a file": (files, "_write_durably", half),
        "before its rename": (files, "_write_durably", before_rename),
        "within a transaction": (publication, "_write_details", crash),
        "before its end": (publication, "_write_details", written_and_crash),
    }
    with patch.object(*places[point]):
        yield


class StoreAgainstDict(RuleBasedStateMachine):
    """One store, opened twice, against a dict of its expected content."""

    remembers_deletions = True
    keeps_index = True
    quarantines = True

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

    @rule(which=st.integers(0, 1), several=st.lists(keys, max_size=4))
    def get_many(self, which: int, several: list[CacheKey]) -> None:
        store = self.stores[which]
        assert list(store.get_many(several)) == [store.get(key) for key in several]

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

    @rule(which=st.integers(0, 1), key=keys)
    def claim(self, which: int, key: CacheKey) -> None:
        """A claim is free, then held by this process alone, then free again."""
        claims = self.stores[which].claims(key)
        others = self.stores[1 - which].claims(key)
        assert [claim.acquire() for claim in claims] == [None] * len(others)
        for claim in claims:
            claim.release()
        for other in others:
            assert other.acquire() is None
            other.release()

    @rule(which=st.integers(0, 1), key=keys)
    def recorded_cost(self, which: int, key: CacheKey) -> None:
        costs = {
            other: sum(artifact.seconds.values())
            for other, artifact in self.held.items()
            if other.level == key.level
        }
        expected = costs.get(key, max(costs.values(), default=None)) if self.keeps_index else None
        assert self.stores[which].recorded_cost(key) == expected

    @rule(which=st.integers(0, 1), key=keys, most=st.integers(0, 3))
    def nearest_keys(self, which: int, key: CacheKey, most: int) -> None:
        near = self.stores[which].nearest_keys(key, time.time() + 1e6, most)
        others = {other.digest for other in self.held if other.level == key.level and other != key}
        assert {one.digest for one in near} <= others
        assert len(near) == (min(most, len(others)) if self.keeps_index else 0)
        assert all(expanded(one.encoding) in {other.encoding for other in KEYS} for one in near)

    @rule(which=st.integers(0, 1), key=keys)
    def add_counts(self, which: int, key: CacheKey) -> None:
        """Counts change no entry, whether the store keeps them or not."""
        activity = Activity()
        activity.use(key.digest, 0.0)
        activity.hit(key.level, 0.0)
        activity.miss(key, Miss("never-seen", ""), 0.0)
        assert self.stores[which].add_counts(activity.take()) in (True, False)

    @rule(which=st.integers(0, 1), key=keys, payload=st.binary(max_size=3))
    def quarantine(self, which: int, key: CacheKey, payload: bytes) -> None:
        path = self.stores[which].quarantine(key, payload)
        assert (path is not None and path.read_bytes() == payload) == self.quarantines

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
        """The process ends at `point`, if the put comes there: no reader ever sees a part of the artifact."""
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
