"""The storing of built artifacts, and the replacement of entries that a new build contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegraph.caching.outcome import MISMATCH, UNVERIFIED
from cachegraph.caching.records import WRITING, CacheRecords
from cachegraph.fingerprint.source import check_relied_on
from cachegraph.logger import logger
from cachegraph.store.entry import Hit, Miss

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cachegraph.fingerprint.source_records import SourceRecords
    from cachegraph.hit_modules import CodeFiles
    from cachegraph.key import CacheKey
    from cachegraph.settings import Settings
    from cachegraph.store.entry import Artifact
    from cachegraph.store.protocol import Store


def _source_fault() -> Exception | None:
    """Return the error of source that changed since keys began to rely on it, or None."""
    try:
        check_relied_on()
    except Exception as error:  # nothing is stored then, and the compilation goes on
        return error
    return None


class EntryWriter:
    """Writes entries into `store`, and into `sources` by which source they were built, into `code_files` the
    modules of a hit; a failure is counted and never raised."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        records: CacheRecords,
        sources: SourceRecords | None,
        code_files: CodeFiles | None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._records = records
        self._sources = sources
        self._code_files = code_files
        self._unverified: dict[bytes, Miss] = {}

    def keep(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> bool:
        """Store `artifact` under `key`, replacing an older entry; return True if it is stored."""
        return key not in self.keep_all({key: (artifact, load_seconds)})

    def keep_all(self, built: Mapping[CacheKey, tuple[Artifact, float]]) -> set[CacheKey]:
        """Store artifacts that were built together, with the seconds that loading each took; return the keys
        that are not stored.

        The source that they were built by is looked at once, which takes 1 ms.
        """
        if self._settings.mode not in WRITING:
            return set(built)
        source = _source_fault()
        unstored = {key for key, given in built.items() if not self._keep(key, *given, source)}
        if len(unstored) < len(built):
            self._speed_later_processes_up()
        return unstored

    def _keep(self, key: CacheKey, artifact: Artifact, load_seconds: float, fault: Exception | None) -> bool:
        try:
            if fault is not None:
                raise fault
            self._store.put(key, artifact, load_seconds)
        except Exception as error:  # the artifact is in memory: the compilation itself has succeeded
            self._records.store_failure(key, error)
            return False
        self._unverified.pop(key.digest, None)
        return True

    def _speed_later_processes_up(self) -> None:
        """Record what source is, and keep the modules of a hit. A failure is only logged."""
        from cachegraph.hit_modules import HIT_MODULES  # a process that stores nothing needs none

        try:
            if self._sources is not None:
                self._sources.keep()
            if self._code_files is not None:
                HIT_MODULES.keep_at_exit(self._code_files)
        except Exception as error:
            logger("cachegraph").debug("recording the digest of source failed: %s", error)

    def correct(self, key: CacheKey, payload: bytes, artifact: Artifact, difference: str) -> None:
        """Store `artifact` in place of the entry that held `payload`, which is quarantined; log an error."""
        quarantined = self._displace(key, payload, artifact, difference)
        logger("cachegraph").error(
            "the %s entry %s differs from a new build: %s; the new build is used and stored, and the "
            "old entry is quarantined in %s",
            key.level,
            key.hex,
            difference,
            quarantined or "no place: that failed, too",
        )

    def replace_suspect(self, key: CacheKey, artifact: Artifact, difference: str) -> None:
        """Store `artifact` in place of the entry of `key` if their bytes differ; log nothing."""
        hit = self._store.get(key)
        if isinstance(hit, Hit) and hit.payload != artifact.payload:
            self._displace(key, hit.payload, artifact, difference)

    def distrust(self, key: CacheKey, error: Exception) -> Miss:
        """Return the miss that `key` is from now on, until it is stored again: verifying it raised
        `error`."""
        logger("cachegraph").error(
            "the %s entry %s is not used: building it again to verify it failed",
            key.level,
            key.hex,
            exc_info=error,
        )
        miss = Miss(UNVERIFIED, f"building it again to verify it failed: {type(error).__name__}: {error}")
        return self._unverified.setdefault(key.digest, miss)

    def distrusted(self, key: CacheKey) -> Miss | None:
        """Return the miss that `distrust` made of `key`, or None."""
        return self._unverified.get(key.digest)

    def _displace(self, key: CacheKey, payload: bytes, artifact: Artifact, difference: str) -> Path | None:
        """Quarantine `payload` and store `artifact`, counted as a miss; return the quarantined file, or
        None."""
        quarantined = self._store.quarantine(key, payload)
        self._records.miss(key, Miss(MISMATCH, difference), sum(artifact.seconds.values()), artifact)
        self.keep(key, artifact)
        return quarantined
