"""Counts of hits, misses, bypasses and failed stores, over all caches of this process."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping

from cachegraph.key import LEVELS
from cachegraph.named_tuples import NamedTuple


class Counters(NamedTuple):
    """A snapshot of the counts: per level {"hits": n, "misses": n}, those of namespaces once they are used;
    misses, bypasses and failed stores by reason.

    `seconds_saved` is the build cost of the hits minus the time to load them, and may be negative;
    `seconds_spent` is the build time of the misses.
    """

    levels: Mapping[str, Mapping[str, int]]
    misses: Mapping[str, int]
    bypasses: Mapping[str, int]
    store_failures: Mapping[str, int]
    seconds_saved: float
    seconds_spent: float


class Tally:
    """The running counts. Thread-safe; empty again in a forked child."""

    def __init__(self) -> None:
        self._begin()

    def hit(self, level: str, seconds_saved: float) -> None:
        with self._locked():
            self._hits[level] += 1
            self._seconds_saved += seconds_saved

    def miss(self, level: str, reason: str, seconds_spent: float) -> None:
        with self._locked():
            self._level_misses[level] += 1
            self._misses[reason] += 1
            self._seconds_spent += seconds_spent

    def bypass(self, reason: str) -> None:
        with self._locked():
            self._bypasses[reason] += 1

    def store_failure(self, reason: str) -> None:
        with self._locked():
            self._store_failures[reason] += 1

    def snapshot(self) -> Counters:
        """Return the counts as they are now, in a form that does not change."""
        with self._locked():
            used = sorted({*self._hits, *self._level_misses}.difference(LEVELS))
            levels = {
                level: {"hits": self._hits[level], "misses": self._level_misses[level]}
                for level in (*LEVELS, *used)
            }
            return Counters(
                levels,
                dict(self._misses),
                dict(self._bypasses),
                dict(self._store_failures),
                self._seconds_saved,
                self._seconds_spent,
            )

    def _locked(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._begin()
        return self._lock

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal handler may count while the lock is held
        self._hits: Counter[str] = Counter()
        self._level_misses: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()
        self._bypasses: Counter[str] = Counter()
        self._store_failures: Counter[str] = Counter()
        self._seconds_saved = 0.0
        self._seconds_spent = 0.0


PROCESS = Tally()


def counters() -> Counters:
    """Return a snapshot of the counts of all caches of this process."""
    return PROCESS.snapshot()
