"""Counts of hits, misses and bypasses: kept in memory, written to the index once, allowed to be lost."""

from __future__ import annotations

import os
import threading
import time

from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import Miss

SECONDS_PER_DAY = 86400
MISSES_KEPT = 200
"""Misses of one process that are kept with their reasons; the others are only counted."""

Event = tuple[str, str, str]
"""Level, outcome (hit, miss, bypass) and reason."""


class Use:
    """The uses of an entry: number, last time (seconds since 1970), seconds of loading if known."""

    __slots__ = ("last_used", "load_seconds", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.last_used = 0.0
        self.load_seconds: float | None = None


class Total:
    """The count of one kind of event, and the seconds it saved (hits) or cost (misses)."""

    __slots__ = ("events", "seconds")

    def __init__(self) -> None:
        self.events = 0
        self.seconds = 0.0


class Missed(NamedTuple):
    """A miss: its key, time (seconds since 1970) and reason."""

    key: CacheKey
    when: float
    miss: Miss


class Batch(NamedTuple):
    """Counts to add to the index: uses by key digest, totals by event, and misses by key digest.

    `began` is the time (seconds since 1970) since when this process counts.
    """

    uses: dict[bytes, Use]
    totals: dict[Event, Total]
    misses: dict[bytes, Missed]
    began: float


class Activity:
    """The counts of one cache in this process; a forked child starts from zero."""

    _batch: Batch

    def __init__(self) -> None:
        self._begin()

    def use(self, digest: bytes, load_seconds: float | None) -> None:
        """Note that an entry was used; `load_seconds` is None if they were not measured."""
        with self._locked():
            use = self._batch.uses.setdefault(digest, Use())
            use.uses += 1
            use.last_used = time.time()
            use.load_seconds = use.load_seconds if load_seconds is None else load_seconds

    def hit(self, level: str, seconds_saved: float) -> None:
        """Count a hit and the seconds that it saved."""
        with self._locked():
            self._add((level, "hit", ""), seconds_saved)

    def miss(self, key: CacheKey, miss: Miss, seconds_spent: float) -> None:
        """Count a miss and the seconds that building took."""
        with self._locked():
            self._add((key.level, "miss", miss.reason), seconds_spent)
            if len(self._batch.misses) < MISSES_KEPT:
                self._batch.misses[key.digest] = Missed(key, time.time(), miss)

    def bypass(self, level: str, reason: str) -> None:
        """Count a compilation that bypassed the cache."""
        with self._locked():
            self._add((level, "bypass", reason), 0.0)

    def take(self) -> Batch:
        """Return the counts since the last call."""
        with self._locked():
            batch = self._batch
            self._batch = Batch({}, {}, {}, batch.began)
            return batch

    def _add(self, event: Event, seconds: float) -> None:
        total = self._batch.totals.setdefault(event, Total())
        total.events += 1
        total.seconds += seconds

    def _locked(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._begin()
        return self._lock

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # reentrant: a signal handler may count too
        self._batch = Batch({}, {}, {}, time.time())
