"""The look-up of entries: stored payloads are loaded and, in the mode verify, compared with a new
build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from cachegraph.caching.outcome import MISMATCH, Found, Verify
from cachegraph.store.entry import Hit, Miss
from cachegraph.store.failures import load_failure

if TYPE_CHECKING:
    from cachegraph.caching.records import CacheRecords
    from cachegraph.caching.writing import EntryWriter
    from cachegraph.key import CacheKey
    from cachegraph.settings import Settings
    from cachegraph.store.protocol import Store

T = TypeVar("T")


class EntryLookup:
    """Looks entries up in `store`. Hits are counted here, misses by the caller, who may build first."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        records: CacheRecords,
        writer: EntryWriter,
    ) -> None:
        self._settings = settings
        self._store = store
        self._records = records
        self._writer = writer

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the stored entry of `key`, not yet counted, or the miss; never raises."""
        return self._noted(self._store.get(key))

    def get_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `get` returns for each of `keys`, in their order; the store looks them up together."""
        return [self._noted(found) for found in self._store.get_many(keys)]

    def load_all(
        self, keys: Iterable[CacheKey], load: Callable[[CacheKey, bytes], T], verify: Verify[T] | None = None
    ) -> tuple[dict[CacheKey, Found[T]], dict[CacheKey, Miss]]:
        """Return what `load` does for each of `keys`: those that are found, and the misses."""
        found: dict[CacheKey, Found[T]] = {}
        missing: dict[CacheKey, Miss] = {}
        distinct = list(dict.fromkeys(keys))
        for key, stored in zip(distinct, self.get_many(distinct), strict=True):
            loaded = self._load_stored(key, stored, load, verify)
            if isinstance(loaded, Found):
                found[key] = loaded
            else:
                missing[key] = loaded
        return found, missing

    def load(
        self, key: CacheKey, load: Callable[[CacheKey, bytes], T], verify: Verify[T] | None = None
    ) -> Found[T] | Miss:
        """Return the entry of `key` as `load` makes it, or the miss.

        A load that raises is a miss. In the mode verify, `verify` checks some of the hits and may replace the
        value.
        """
        return self._load_stored(key, self.get(key), load, verify)

    def _load_stored(
        self,
        key: CacheKey,
        stored: Hit | Miss,
        load: Callable[[CacheKey, bytes], T],
        verify: Verify[T] | None,
    ) -> Found[T] | Miss:
        hit = self._writer.distrusted(key) or stored
        if isinstance(hit, Miss):
            return hit
        begin = perf_counter()
        try:
            value = load(key, hit.payload)
        except Exception as error:
            self._records.load_failure(key)
            return load_failure(error)
        load_seconds = perf_counter() - begin
        found = Found(value, "hit", "", hit.seconds, load_seconds, hit.blobs)
        try:
            correction = verify(key, found) if verify is not None and self.samples_hit() else None
        except Exception as error:
            return self._writer.distrust(key, error)
        if correction is not None:
            self._writer.correct(key, hit.payload, correction.artifact, correction.difference)
            return Found(correction.value, "miss", MISMATCH, correction.artifact.seconds, load_seconds, {})
        self._records.hit(key, hit, load_seconds)
        return found

    def _noted(self, found: Hit | Miss) -> Hit | Miss:
        if isinstance(found, Miss) and found.reason == "untrusted":
            self._records.untrusted(found)
        return found

    def samples_hit(self) -> bool:
        """Return True if this hit is to be verified: in the mode verify, a random share of them is."""
        if self._settings.mode != "verify":
            return False
        import random  # takes a third of a millisecond, which only this mode spends

        return random.random() < self._settings.verify_rate
