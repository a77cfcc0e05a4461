"""The verbs every store has, and the claims by which one of several builders goes first, which nothing relies on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cachegraph.key import CacheKey
from cachegraph.store.claims.claims import Claim
from cachegraph.store.entry import Artifact, Entry, Hit, Miss


class Store(Protocol):
    """What a cache is kept in. There is no `contains`: what it said would be old when it is used."""

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key`, checked; never raises."""

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Publish `artifact` under `key` at once, replacing what is there; raises what the disk raises."""

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return a blob that a hit named, checked, None when it cannot be had; never raises."""

    def scan(self) -> Iterable[Entry]:
        """Return every entry, the least recently used first."""

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove the entries of these keys and return how many there were; `why` is for a later miss to say."""

    def claims(self, key: CacheKey) -> Sequence[Claim]:
        """Return what to acquire, in this order, before building what `key` describes; empty where nothing is to be had."""
