"""A store in memory: for a process that may write nowhere, and the plainest thing that keeps what `Store` promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cachegraph.fingerprint.primitives import content_name
from cachegraph.forking import momentary_lock
from cachegraph.key import CacheKey
from cachegraph.store.claims.claims import Claim
from cachegraph.store.entry import PAYLOAD, Artifact, Entry, Hit, Miss, Reference
from cachegraph.store.shared.publishing import describe


class _Kept(NamedTuple):
    confirmation: bytes
    artifact: Artifact
    blobs: Mapping[str, str]
    entry: Entry


class MemoryStore:
    """Entries of this process; gone with it. May be used by any number of threads."""

    def __init__(self) -> None:
        self._lock = momentary_lock()
        self._kept: dict[bytes, _Kept] = {}
        self._evicted: dict[bytes, str] = {}

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key`; never raises."""
        kept = self._kept.get(key.digest)
        if kept is None:
            why = self._evicted.get(key.digest)
            return Miss("evicted", why) if why else Miss("never-seen", "this process has not built it")
        if kept.confirmation != key.confirmation:
            return Miss("collision", "another key has the same digest")
        return Hit(kept.artifact.payload, kept.blobs, kept.artifact.seconds)

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Keep `artifact` under `key`, replacing what is there; raises ValueError for a blob without a name."""
        if PAYLOAD in artifact.blobs:
            raise ValueError(
                "storing an artifact: a blob has the empty name, which is the payload's; name it"
            )
        blobs = {name: content_name(content) for name, content in artifact.blobs.items()}
        named = [Reference(name, blobs[name], len(content)) for name, content in artifact.blobs.items()]
        entry = describe(key, artifact, named, 0, load_seconds)
        with self._lock:
            self._kept[key.digest] = _Kept(key.confirmation, artifact, blobs, entry)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the blob of that digest if an entry has it; never raises."""
        with self._lock:
            for kept in self._kept.values():
                for name, found in kept.blobs.items():
                    if found == digest_hex:
                        return kept.artifact.blobs[name]
        return None

    def scan(self) -> list[Entry]:
        """Return every entry, the oldest first."""
        with self._lock:
            return sorted((kept.entry for kept in self._kept.values()), key=lambda entry: entry.created)

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove the entries of these keys and return how many there were."""
        with self._lock:
            there = [digest for digest in set(digests) if self._kept.pop(digest, None) is not None]
            self._evicted.update(dict.fromkeys(there, why))
            return len(there)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return nothing: no other process sees what is kept here."""
        return ()

    def close(self) -> None:
        """Do nothing: there is nothing open, and what is kept stays."""
