"""What happened in this process and is not yet in the index: counted in memory, written at once, allowed to be lost."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

Happening = tuple[str, str, str]  # level, outcome (hit, miss, bypass), reason


@dataclass(slots=True)
class Use:
    """How often an entry was used, when last (seconds since 1970), and how long loading it took then."""

    uses: int
    last_used: float
    load_seconds: float


@dataclass(slots=True)
class Total:
    """How often something happened, and the seconds it saved (a hit) or cost (a miss)."""

    events: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Counts to add to the index: by entry, and by what happened."""

    uses: dict[bytes, Use]
    totals: dict[Happening, Total]

    def __bool__(self) -> bool:
        return bool(self.totals)


class Activity:
    """Counts of one cache in this process; a forked child starts with none."""

    def __init__(self) -> None:
        self._begin()

    def hit(self, level: str, digest: bytes, load_seconds: float, seconds_saved: float) -> None:
        self._stay_in_process()
        with self._lock:
            use = self._uses.setdefault(digest, Use(0, 0.0, 0.0))
            use.uses += 1
            use.last_used = time.time()
            use.load_seconds = load_seconds
            self._add((level, "hit", ""), seconds_saved)

    def miss(self, level: str, reason: str, seconds_spent: float) -> None:
        self._stay_in_process()
        with self._lock:
            self._add((level, "miss", reason), seconds_spent)

    def bypass(self, level: str, reason: str) -> None:
        self._stay_in_process()
        with self._lock:
            self._add((level, "bypass", reason), 0.0)

    def take(self) -> Batch:
        """Return what was counted since the last call, and begin anew."""
        self._stay_in_process()
        with self._lock:
            batch = Batch(self._uses, dict(self._totals))
            self._uses, self._totals = {}, _no_totals()
        return batch

    def _add(self, happening: Happening, seconds: float) -> None:
        total = self._totals[happening]
        total.events += 1
        total.seconds += seconds

    def _stay_in_process(self) -> None:
        if self._pid != os.getpid():
            self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._uses: dict[bytes, Use] = {}
        self._totals = _no_totals()


def _no_totals() -> defaultdict[Happening, Total]:
    return defaultdict(lambda: Total(0, 0.0))
