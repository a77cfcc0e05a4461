"""Stores of immutable files, without an index: no costs, no search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from cachegraph.fingerprint.primitives import content_name
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import BlobReference, Entry, Hit, Miss, NearKey, Origin
from cachegraph.store.record import Record


class StoredFile(NamedTuple):
    """The content of an entry file.

    `references` are the key digests of other entries, `encoding` is the compressed encoding of the
    key, `origin` is who published it; `record` is None if it was not kept. The `last_used` of the entry
    is the time at which its file was last written or renewed.
    """

    entry: Entry
    blobs: list[BlobReference]
    references: tuple[bytes, ...]
    encoding: bytes
    origin: Origin | None = None
    record: Record | None = None

    def holds(self, hit: Hit) -> bool:
        """Return True if the file has that hit: it may have been exchanged since the hit was read.

        Its origin signed this file, and no other.
        """
        record = self.record
        if record is None or (record.blobs, record.seconds) != (hit.blobs, hit.seconds):
            return False
        if record.payload_blob is None:
            return record.payload == hit.payload
        return record.payload_blob == content_name(hit.payload)


class StoreWithoutIndex(Protocol):
    """A store that has a file for each entry; subclasses find and read them."""

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key`, or the reason for the miss. Never raises."""

    def stored(self) -> Iterator[StoredFile]:
        """Yield the content of every readable entry file, in no order. Raises OSError."""

    def get_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `get` returns for each of `keys`, in their order: each has a file of its own."""
        return [self.get(key) for key in keys]

    def scan(self) -> list[Entry]:
        """Return every readable entry, the oldest first: only each host knows when it used one.

        Raises OSError.
        """
        return sorted((file.entry for file in self.stored()), key=lambda entry: (entry.created, entry.digest))

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Return None: costs are recorded in the index of each node."""
        return None

    def summary(self, key: CacheKey) -> str:
        """Return an empty text: the index of each node tells what it has copied."""
        return ""

    def nearest_keys(self, key: CacheKey, before: float, most: int) -> Sequence[NearKey]:
        """Return no keys: only the index of each node is searched."""
        return ()

    def use_logs(self) -> Iterator[bytes]:
        """Yield the content of every readable use log. Raises OSError."""
