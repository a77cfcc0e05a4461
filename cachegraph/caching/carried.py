"""Carried entries: entries in memory, for example in a pickle, for readers without a cache directory.

They pickle as a dict of rows (`_Row`) and a dict of blobs. Payloads are the objects that were
added, not copies, so what is pickled together stores shared payloads once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cachegraph.fingerprint.primitives import content_name, strong_digest
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import Hit, Miss

if TYPE_CHECKING:
    from cachegraph.cache import Cache


class _Row(NamedTuple):
    """One entry: the confirmation of its key, the BLAKE2b-256 of its payload, the payload, and its blobs
    (name -> digest, hex)."""

    confirmation: bytes
    content: bytes
    payload: bytes
    blobs: Mapping[str, str]


class CarriedEntries:
    """Entries by the digest of their key, and blobs by their own digest. Both are checked before they are
    used."""

    def __init__(self) -> None:
        self._rows: dict[bytes, _Row] = {}
        self._blobs: dict[str, bytes] = {}

    def add(self, key: CacheKey, payload: bytes, blobs: Mapping[str, bytes] | None = None) -> None:
        """Add the entry of `key`."""
        named = {name: content_name(content) for name, content in (blobs or {}).items()}
        self._rows[key.digest] = _Row(key.confirmation, strong_digest(payload), payload, named)
        self._blobs.update((named[name], content) for name, content in (blobs or {}).items())

    def lookup(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key`, or the miss; never raises."""
        row = self._rows.get(key.digest)
        if row is None:
            return Miss("never-seen", "it was not taken along")
        if row.confirmation != key.confirmation:
            return Miss("collision", "another key has the same digest")
        if strong_digest(row.payload) != row.content:
            return Miss("damaged", "what was taken along does not match its digest")
        return Hit(row.payload, row.blobs, {})

    def lookup_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `lookup` returns for each of `keys`, in their order; never raises."""
        return [self.lookup(key) for key in keys]

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the checked blob that a hit named; None if it is missing or damaged."""
        content = self._blobs.get(digest_hex)
        return content if content is not None and content_name(content) == digest_hex else None


_NO_CACHE = Miss("unreadable", "what the cache has does not load")


class CarryingCache:
    """A cache backed by carried entries, which need no building. Without a cache, those alone.

    Nothing carried is copied into the cache: readers of the cache need not trust its writer. `taken` maps
    the keys that were carried to the reason of the cache's miss.
    """

    def __init__(self, cache: Cache | None, carried: CarriedEntries) -> None:
        self._cache = cache
        self._carried = carried
        self.taken: dict[CacheKey, str] = {}

    def lookup(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key` from the cache, else the carried one, or the miss; never raises."""
        return self._or_carried(key, _NO_CACHE if self._cache is None else self._cache.lookup(key))

    def lookup_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `lookup` returns for each of `keys`, in their order, found together; never raises."""
        found = [_NO_CACHE] * len(keys) if self._cache is None else self._cache.lookup_many(keys)
        return [self._or_carried(key, answer) for key, answer in zip(keys, found, strict=True)]

    def _or_carried(self, key: CacheKey, found: Hit | Miss) -> Hit | Miss:
        """Return `found`, the answer of the cache, if it is a hit, else the carried entry."""
        if isinstance(found, Hit):
            return found
        instead = self._carried.lookup(key)
        if isinstance(instead, Hit):
            self.taken[key] = found.reason
        return instead

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the checked blob that a hit named; None if it cannot be read. Never raises."""
        found = None if self._cache is None else self._cache.read_blob(digest_hex)
        return self._carried.read_blob(digest_hex) if found is None else found
