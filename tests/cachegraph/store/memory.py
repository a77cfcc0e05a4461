"""A store in memory: the simplest implementation of `Store`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cachegraph.fingerprint.primitives import content_name
from cachegraph.forking import momentary_lock
from cachegraph.key import CacheKey, compressed
from cachegraph.store.activity import Batch
from cachegraph.store.artifacts import describe
from cachegraph.store.entry import PAYLOAD, Artifact, Entry, Hit, Miss, NearKey, Origin
from cachegraph.store.protocol import Claim


class _Kept(NamedTuple):
    key: CacheKey
    artifact: Artifact
    blobs: Mapping[str, str]
    entry: Entry


class MemoryStore:
    """Entries of this process, gone with it. May be used by any number of threads."""

    def __init__(self) -> None:
        self._lock = momentary_lock()
        self._kept: dict[bytes, _Kept] = {}
        self._evicted: dict[bytes, str] = {}

    def get(self, key: CacheKey) -> Hit | Miss:
        kept = self._kept.get(key.digest)
        if kept is None:
            why = self._evicted.get(key.digest)
            return Miss("evicted", why) if why else Miss("never-seen", "this process has not built it")
        if kept.key.confirmation != key.confirmation:
            return Miss("collision", "another key has the same digest")
        return Hit(kept.artifact.payload, kept.blobs, kept.artifact.seconds)

    def get_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        return [self.get(key) for key in keys]

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        if PAYLOAD in artifact.blobs:
            raise ValueError(
                "storing an artifact: a blob has the empty name, which is the payload's; name it"
            )
        blobs = {name: content_name(content) for name, content in artifact.blobs.items()}
        entry = describe(key, artifact, load_seconds)
        with self._lock:
            self._kept[key.digest] = _Kept(key, artifact, blobs, entry)

    def read_blob(self, digest_hex: str) -> bytes | None:
        with self._lock:
            for kept in self._kept.values():
                for name, found in kept.blobs.items():
                    if found == digest_hex:
                        return kept.artifact.blobs[name]
        return None

    def scan(self) -> list[Entry]:
        with self._lock:
            return sorted((kept.entry for kept in self._kept.values()), key=lambda entry: entry.created)

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        with self._lock:
            there = [digest for digest in set(digests) if self._kept.pop(digest, None) is not None]
            self._evicted.update(dict.fromkeys(there, why))
            return len(there)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        return ()  # no other process sees this store

    def summary(self, key: CacheKey) -> str:
        kept = self._kept.get(key.digest)
        return kept.artifact.summary if kept else ""

    def recorded_cost(self, key: CacheKey) -> float | None:
        with self._lock:
            kept = self._kept.get(key.digest)
            costs = [kept.entry.build_seconds for kept in self._kept.values() if kept.key.level == key.level]
        return kept.entry.build_seconds if kept else max(costs, default=None)

    def nearest_keys(self, key: CacheKey, before: float, most: int) -> Sequence[NearKey]:
        wanted = set(key.part_digests.items())
        with self._lock:
            others = [kept.key for kept in self._kept.values() if kept.key.level == key.level]
        near = (
            NearKey(other.digest, len(wanted & set(other.part_digests.items())), compressed(other))
            for other in others
            if other.digest != key.digest
        )
        return sorted(near, key=lambda one: -one.equal)[:most]

    def add_counts(self, batch: Batch) -> bool:
        return False

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        return None

    def close(self) -> None:
        pass
