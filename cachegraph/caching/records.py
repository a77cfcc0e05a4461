"""The records of one cache: counts for the process and the index, and log lines, repeated warnings
only once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cachegraph.caching.counters import PROCESS
from cachegraph.logger import logger
from cachegraph.store.activity import Activity
from cachegraph.store.entry import Hit
from cachegraph.store.failures import store_failure_reason

if TYPE_CHECKING:
    from cachegraph.caching.decision_log import DecisionLog
    from cachegraph.key import CacheKey
    from cachegraph.settings import Settings
    from cachegraph.store.entry import Artifact, Miss
    from cachegraph.store.protocol import Store

WRITING = ("readwrite", "verify")
"""The modes in which built artifacts are stored."""


class _InThread(threading.local):
    level_of_parts = ""


_IN_THREAD = _InThread()


@contextmanager
def parts(level: str) -> Iterator[None]:
    """Count no hit of `level` in this thread: they are parts of an entry whose hit is counted.

    The seconds that they save are in that entry's. Their use is noted, so that they are kept as long.
    """
    before, _IN_THREAD.level_of_parts = _IN_THREAD.level_of_parts, level
    try:
        yield
    finally:
        _IN_THREAD.level_of_parts = before


class CacheRecords:
    """Counts and log lines of one cache, whose counts are written into `store` at exit or when the cache is
    dropped."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._activity = Activity()
        self._flush_at_exit: object = None
        self._unloadable: set[bytes] = set()
        self._warned: set[str] = set()
        self._log = _decision_log(settings.log)

    def answer(self, key: CacheKey, found: Hit | Miss) -> None:
        """Count the answer to a look-up of which nothing was loaded."""
        if isinstance(found, Hit):
            self.hit(key, found, None)
        else:
            self.miss(key, found)

    def hit(self, key: CacheKey, hit: Hit, load_seconds: float | None) -> None:
        """Count a hit, and the seconds that it saved."""
        self._begin_counting()
        self._activity.use(key.digest, load_seconds)
        if self._log is not None:
            self._log.hit(key, hit, load_seconds, self._store.summary(key))
        if key.level != _IN_THREAD.level_of_parts:
            saved = sum(hit.seconds.values()) - (load_seconds or 0.0)
            PROCESS.hit(key.level, saved)
            self._activity.hit(key.level, saved)

    def miss(
        self, key: CacheKey, miss: Miss, seconds_spent: float = 0.0, artifact: Artifact | None = None
    ) -> None:
        """Count a miss, its reason, and the seconds that building `artifact` took, if it was built."""
        if self._log is not None:
            self._log.miss(key, miss, seconds_spent, artifact)
        PROCESS.miss(key.level, miss.reason, seconds_spent)
        self._begin_counting()
        self._activity.miss(key, miss, seconds_spent)

    def bypass(self, level: str, reason: str, detail: str = "") -> None:
        """Count a compilation at `level` that did not use the cache; `detail` is for the log."""
        if self._log is not None:
            self._log.bypass(level, reason, detail)
        PROCESS.bypass(reason)
        self._begin_counting()
        self._activity.bypass(level, reason)

    def untrusted(self, miss: Miss) -> None:
        """Log that an entry was refused; as a warning the first time."""
        self._log_once("untrusted", "%s. Logged once; every such miss is counted.", miss.detail)

    def load_failure(self, key: CacheKey) -> None:
        """Log the exception that loading the entry of `key` raised; as a warning the first time for this
        key."""
        log = logger("cachegraph")
        write = log.debug if key.digest in self._unloadable else log.warning
        self._unloadable.add(key.digest)
        write("loading the %s entry %s failed; it is built again", key.level, key.hex, exc_info=True)

    def store_failure(self, key: CacheKey, error: Exception) -> None:
        """Count and log that storing the entry of `key` raised `error`; as a warning the first time."""
        reason = store_failure_reason(error)
        PROCESS.store_failure(reason)
        self._log_once(
            "store",
            "storing the %s entry %s in %s failed (%s: %s: %s); its result is used, not kept. Logged once.",
            key.level,
            key.hex,
            self._settings.directory,
            reason,
            type(error).__name__,
            error,
        )

    def flush(self) -> None:
        """Write the counts into the index in one transaction; counts that cannot be written are lost."""
        _flush(self._store, self._activity, self._settings.mode)

    def _log_once(self, kind: str, text: str, *arguments: object) -> None:
        log = logger("cachegraph")
        write = log.debug if kind in self._warned else log.warning
        self._warned.add(kind)
        write(text, *arguments)

    def _begin_counting(self) -> None:
        if self._flush_at_exit is None and self._settings.mode in WRITING:
            self._flush_at_exit = weakref.finalize(
                self, _flush, self._store, self._activity, self._settings.mode
            )


def _decision_log(place: str) -> DecisionLog | None:
    if not place:
        return None
    from cachegraph.caching.decision_log import DecisionLog  # few ask for it

    return DecisionLog(place)


def _flush(store: Store, activity: Activity, mode: str) -> None:
    batch = activity.take()
    if mode not in WRITING or not batch.totals:  # each hit to be copied to a nearer tier is counted, too
        return
    try:
        store.add_counts(batch)
    except Exception as error:  # counts may be lost; they may not make the end of a process fail
        logger("cachegraph").debug("writing counts failed: %s: %s", type(error).__name__, error)
