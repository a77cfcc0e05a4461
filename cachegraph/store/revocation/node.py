"""The record of a local store about revocation lists: when they were read, and for which of them its
copies were swept.

    <directory>/v1/revocations := JSON in UTF-8: an object of "read" (place -> seconds since 1970) and of
                                  "swept", the file names of kept lists (kept.py)

A place is a location, a signer and the directory of kept lists, with line breaks between them. If two
processes write at once, one record is lost: a list is then read, or the copies are swept, once more.

Version history: none yet.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.files import publish_file, read_file
from cachegraph.store.revocation.list_file import Revoked
from cachegraph.store.trust import Guard

READ_SECONDS = 3600.0
"""A node reads the list of a signer at a place at most once in this time."""
_LARGEST = 1 << 22

Sweep = Callable[[Revoked], int]
"""Removes the copies of what is revoked, and returns how many there were."""


class NodeRecord(NamedTuple):
    """When each place was read, and the names of the lists for which the copies were swept."""

    read: dict[str, float]
    swept: frozenset[str]


class NodeRevocations:
    """The record at `path` in a local store that `guard` checks; `sweep` removes copies from the store."""

    def __init__(self, path: Path, guard: Guard, sweep: Sweep) -> None:
        self._path = path
        self._guard = guard
        self._sweep = sweep

    def read_lately(self) -> frozenset[str]:
        """Return the places whose lists were read within READ_SECONDS. Never raises."""
        now = time.time()
        record = self._record()
        return frozenset(place for place, read in record.read.items() if now - READ_SECONDS < read <= now)

    def note(self, places: Iterable[str]) -> None:
        """Record that the lists of `places` were read now. A failure is ignored: they are read again."""
        now, record = time.time(), self._record()
        lately = {place: read for place, read in record.read.items() if now - READ_SECONDS < read <= now}
        self._write(NodeRecord({**lately, **dict.fromkeys(places, now)}, record.swept))

    def has_swept(self, names: Iterable[str]) -> bool:
        """Return True if the copies were swept for all lists of these names. Never raises."""
        return self._record().swept.issuperset(names)

    def sweep(self, names: Iterable[str], revoked: Revoked) -> None:
        """Remove the copies of what is revoked by the lists of these names.

        Never raises: what fails is done again by the next process.
        """
        try:
            removed = self._sweep(revoked)
        except (sqlite3.Error, OSError) as error:
            logger("cachegraph").debug("sweeping revoked entries failed, so it is done again: %s", error)
            return
        if removed:
            logger("cachegraph").warning("removed %d copies of revoked entries from this node", removed)
        record = self._record()
        self._write(record._replace(swept=record.swept.union(names)))

    def _record(self) -> NodeRecord:
        import json  # the end of a process loads it anyway; a hit does without

        try:
            document = json.loads(read_file(self._path, self._guard, _LARGEST))
            read = {str(place): float(when) for place, when in document["read"].items()}
            return NodeRecord(read, frozenset(map(str, document["swept"])))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return NodeRecord({}, frozenset())  # none yet, or damaged: everything is done again

    def _write(self, record: NodeRecord) -> None:
        import json

        document = {"read": record.read, "swept": sorted(record.swept)}
        try:
            publish_file(self._path, json.dumps(document).encode(), self._guard)
        except OSError as error:
            logger("cachegraph").debug("noting that revocation lists were read failed: %s", error)
