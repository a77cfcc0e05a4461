"""The building of missing entries: one builder per key at a time; new artifacts load as hits do and
are stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from cachegraph.caching.outcome import Found
from cachegraph.caching.records import WRITING
from cachegraph.errors import CacheMissError
from cachegraph.fingerprint.primitives import content_name
from cachegraph.forking import guard_builds
from cachegraph.logger import logger

if TYPE_CHECKING:
    from cachegraph.caching.lookup import EntryLookup
    from cachegraph.caching.records import CacheRecords
    from cachegraph.caching.writing import EntryWriter
    from cachegraph.key import CacheKey
    from cachegraph.settings import Settings
    from cachegraph.single_flight import SingleFlight
    from cachegraph.store.entry import Artifact, Miss

T = TypeVar("T")
BuildMany = Callable[[Sequence["CacheKey"]], Sequence["Artifact"]]
"""Builds the artifacts of several keys, in their order."""


class HeldBlobs:
    """Blobs of artifacts that were just built, per thread: they may not be stored, or not yet."""

    def __init__(self) -> None:
        self._held = threading.local()

    def get(self, digest_hex: str) -> bytes | None:
        """Return the blob of that digest if this thread holds it, or None."""
        found: bytes | None = getattr(self._held, "blobs", {}).get(digest_hex)
        return found

    @contextmanager
    def holding(self, blobs: Mapping[str, bytes]) -> Iterator[None]:
        """Hold `blobs` for this thread within the context."""
        before = getattr(self._held, "blobs", {})
        self._held.blobs = {**before, **{content_name(content): content for content in blobs.values()}}
        try:
            yield
        finally:
            self._held.blobs = before


class EntryBuilder:
    """Builds missing entries in their turn, as `flights` gives them, and stores them.

    `held` has the blobs of the artifacts that are being loaded.
    """

    def __init__(
        self,
        settings: Settings,
        lookup: EntryLookup,
        writer: EntryWriter,
        records: CacheRecords,
        flights: SingleFlight,
    ) -> None:
        self._settings = settings
        self._lookup = lookup
        self._writer = writer
        self._records = records
        self._flights = flights
        self.held = HeldBlobs()

    def build_missing(
        self, missing: Mapping[CacheKey, Miss], build: BuildMany, load: Callable[[CacheKey, bytes], T]
    ) -> dict[CacheKey, Found[T]]:
        """Return the entries of `missing`: built, or found by now because another thread or process built
        them.

        Raises CacheMissError if settings.on_miss is "error", and what `build` and `load` raise.
        """
        self._refuse_if_asked(missing)
        guard_builds()
        if self._settings.mode not in WRITING:  # what is built is for this process alone
            return self._build(missing, build, load, set())
        built: dict[CacheKey, Found[T]] = {}
        unkept: set[CacheKey] = set()
        with closing(self._flights.turns(missing, unkept)) as turns:
            for turn in turns:
                found, still = self._lookup.load_all(turn, load)
                built.update(found)
                if still:
                    built.update(self._build({key: missing[key] for key in still}, build, load, unkept))
        return built

    def _refuse_if_asked(self, missing: Mapping[CacheKey, Miss]) -> None:
        if self._settings.on_miss != "error":
            return
        for key, miss in missing.items():
            self._records.miss(key, miss)
        key, miss = next(iter(missing.items()))
        raise CacheMissError(key.level, key.hex, miss.reason)

    def _build(
        self,
        missing: Mapping[CacheKey, Miss],
        build: BuildMany,
        load: Callable[[CacheKey, bytes], T],
        unkept: set[CacheKey],
    ) -> dict[CacheKey, Found[T]]:
        """Build, load and store `missing` together; add the keys that could not be stored to `unkept`."""
        begin = perf_counter()
        artifacts = build(list(missing))
        each = (perf_counter() - begin) / len(missing)
        found: dict[CacheKey, Found[T]] = {}
        built: dict[CacheKey, tuple[Artifact, float]] = {}
        for (key, miss), artifact in zip(missing.items(), artifacts, strict=True):
            logger("cachegraph").debug(
                "%s entry %s: miss, %s: %s", key.level, key.hex, miss.reason, miss.detail
            )
            if not artifact.seconds:
                artifact = artifact._replace(seconds={"build": each})
            begin = perf_counter()
            with self.held.holding(artifact.blobs):
                value = load(key, artifact.payload)
            load_seconds = perf_counter() - begin
            self._records.miss(key, miss, sum(artifact.seconds.values()), artifact)
            built[key] = artifact, load_seconds
            found[key] = Found(value, "miss", miss.reason, artifact.seconds, load_seconds, {})
        unkept |= self._writer.keep_all(built)
        return found
