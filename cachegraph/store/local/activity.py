"""What happened in this process and is not yet in the index: counted in memory, written at once, allowed to be lost."""

from __future__ import annotations

import os
import threading
import time
from typing import NamedTuple

from cachegraph.key import CacheKey
from cachegraph.store.entry import Miss

MISSES_KEPT = 200

Happening = tuple[str, str, str]  # level, outcome (hit, miss, bypass), reason


class Use:
    """How often an entry was used, when last (seconds since 1970), and how long loading it took, if known."""

    __slots__ = ("last_used", "load_seconds", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.last_used = 0.0
        self.load_seconds: float | None = None


class Total:
    """How often something happened, and the seconds it saved (a hit) or cost (a miss)."""

    __slots__ = ("events", "seconds")

    def __init__(self) -> None:
        self.events = 0
        self.seconds = 0.0


class Missed(NamedTuple):
    """A key that there was no entry of: when (seconds since 1970), and why."""

    key: CacheKey
    when: float
    miss: Miss


class Batch(NamedTuple):
    """What to add to the index: counts by key digest and by what happened, and the misses by key digest."""

    uses: dict[bytes, Use]
    totals: dict[Happening, Total]
    misses: dict[bytes, Missed]


class Activity:
    """Counts of one cache in this process; a forked child starts with none."""

    _batch: Batch

    def __init__(self) -> None:
        self._begin()

    def hit(self, level: str, digest: bytes, load_seconds: float | None, seconds_saved: float) -> None:
        """Count a use of an entry, and the hit; `load_seconds` is None when it was not measured."""
        with self._locked():
            use = self._batch.uses.setdefault(digest, Use())
            use.uses += 1
            use.last_used = time.time()
            use.load_seconds = use.load_seconds if load_seconds is None else load_seconds
            self._add((level, "hit", ""), seconds_saved)

    def miss(self, key: CacheKey, miss: Miss, seconds_spent: float) -> None:
        """Count a miss and what building took; the first MISSES_KEPT of a process are kept with their reasons."""
        with self._locked():
            self._add((key.level, "miss", miss.reason), seconds_spent)
            if len(self._batch.misses) < MISSES_KEPT:
                self._batch.misses[key.digest] = Missed(key, time.time(), miss)

    def bypass(self, level: str, reason: str) -> None:
        """Count what did without the cache."""
        with self._locked():
            self._add((level, "bypass", reason), 0.0)

    def take(self) -> Batch:
        """Return what was counted since the last call, and begin anew."""
        with self._locked():
            batch = self._batch
            self._batch = Batch({}, {}, {})
            return batch

    def _add(self, happening: Happening, seconds: float) -> None:
        total = self._batch.totals.setdefault(happening, Total())
        total.events += 1
        total.seconds += seconds

    def _locked(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._begin()
        return self._lock

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal handler may count in the midst of it
        self._batch = Batch({}, {}, {})
