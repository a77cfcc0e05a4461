"""Pruning: what to remove from a local store, as a plan that can be shown first, and carried out while jobs run.

Removed are the entries that were asked for (`Criteria`), then those of the least worth until a size is kept
(eviction.py), and without being asked what nothing needs: kernels and Ops that no entry refers to and nobody has used for
long, blobs that no entry refers to, what killed processes left behind, what was damaged and is kept aside no longer. A
blob that nothing refers to may be one that a writer is about to refer to: it stays for a grace period, and is removed
under the write lock, where a writer checks that its blobs are still there.
"""

from __future__ import annotations

import heapq
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cachegraph.store.blobs import BlobFile
from cachegraph.store.connections import open_for_update
from cachegraph.store.criteria import NEEDLESS_ONLY, Advance, Criteria, Leftover, Plan, is_stale
from cachegraph.store.entry import Entry, Reference
from cachegraph.store.eviction import GRACE_SECONDS, remove_unreferenced
from cachegraph.store.local import LocalStore
from cachegraph.store.paths import CLEARING_PREFIX, DAMAGED_SUFFIX, Layout
from cachegraph.units import format_duration

T = TypeVar("T")

KEPT_ASIDE_SECONDS = 7 * 86400.0
UNREFERENCED_SECONDS = 30 * 86400.0
"""How long a kernel or an Op stays that nothing refers to and nobody uses."""

_REFERRED_LEVELS = ("op", "kernel")
_ENTRIES_PER_TRANSACTION = 200
_BLOBS_PER_TRANSACTION = 50
_PAGES_PER_TRANSACTION = 1000
_COMPACT_TIMEOUT = 5.0


def plan(store: LocalStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove by `criteria`, and what nothing needs.

    Raises sqlite3.Error when the index is damaged, and OSError: then nothing can be said about what is needed.
    """
    store.upgrade()
    files = list(store.blobs.files())
    leftovers = list(_leftovers(store.layout, files, now))
    books = _Books(store)
    unreferenced = [
        file for file in files if file.digest and not books.blobs[file.digest] and _older(file.changed, now)
    ]
    before = store.catalogue.used_bytes() + sum(file.size for file in files) + _bytes_aside(store.layout)
    after = before - sum(file.size for file in unreferenced) - sum(left.size for left in leftovers)
    reasons: dict[bytes, str] = {}
    for entry in books.entries.values():
        why = criteria.reason(entry, now, books.is_stale) or books.unneeded(entry, now)
        if why:
            reasons[entry.digest] = why
            after -= books.remove(entry)
    for entry in books.least_worth(entry for entry in books.entries.values() if criteria.applies_to(entry)):
        if criteria.max_size is None or after <= criteria.max_size:
            break
        reasons[entry.digest] = criteria.size_reason
        after -= books.remove(entry)
    victims = [books.entries[digest] for digest in reasons]
    blobs = [*unreferenced, *(file for file in files if file.digest in books.freed)]
    return Plan(victims, reasons, blobs, leftovers, before, max(after, 0))


def carry_out(store: LocalStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names and is still not needed; return how many bytes of files and rows went.

    Raises sqlite3.Error and OSError.
    """
    for batch in _batches(plan.entries, _ENTRIES_PER_TRANSACTION):
        store.catalogue.delete({entry.digest: plan.reasons[entry.digest] for entry in batch})
        advance(len(batch))
    freed = sum(entry.stored_size for entry in plan.entries)
    for files in _batches(plan.blobs, _BLOBS_PER_TRANSACTION):
        with store.database.writing() as connection:
            freed += sum(remove_unreferenced(connection, file) for file in files)
        advance(len(files))
    for leftover in plan.leftovers:
        remove_leftover(leftover.path)
        freed += leftover.size
        advance(1)
    if plan.entries:
        _compact(store.layout.index)
    return freed


class _Books:
    """What the store holds and what refers to what, kept true while entries are chosen to be removed."""

    def __init__(self, store: LocalStore) -> None:
        self._catalogue = store.catalogue
        self.entries = {entry.digest: entry for entry in store.scan()}
        self._blobs_of: defaultdict[bytes, list[Reference]] = defaultdict(list)
        for digest, blob in store.catalogue.references():
            self._blobs_of[digest].append(blob)
        self.blobs = Counter(blob.digest for blobs in self._blobs_of.values() for blob in blobs)
        self._refers_to: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for digest, other in store.catalogue.entry_references():
            self._refers_to[digest].append(other)
        self._referrers = Counter(other for others in self._refers_to.values() for other in others)
        self._removed: set[bytes] = set()
        self.freed: set[str] = set()

    def is_stale(self, entry: Entry) -> bool:
        return is_stale(self._catalogue.encoding(entry.digest) or b"", entry.format)

    def unneeded(self, entry: Entry, now: float) -> str:
        """Why `entry` goes though nobody asked for it; empty if it does not."""
        if entry.level not in _REFERRED_LEVELS or self._referrers[entry.digest]:
            return ""
        if entry.last_used >= now - UNREFERENCED_SECONDS:
            return ""
        return f"pruned: nothing refers to it, not used for {format_duration(UNREFERENCED_SECONDS)}"

    def remove(self, entry: Entry) -> int:
        """Count `entry` out, and return the bytes of its rows and of the blobs that nothing else refers to."""
        self._removed.add(entry.digest)
        for other in self._refers_to[entry.digest]:
            self._referrers[other] -= 1
        size = entry.stored_size
        for blob in self._blobs_of[entry.digest]:
            self.blobs[blob.digest] -= 1
            if not self.blobs[blob.digest]:
                self.freed.add(blob.digest)
                size += blob.size
        return size

    def least_worth(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield `entries` that are left, the least worth first, none before what refers to it while there is another."""
        worths = self._catalogue.worths()
        chosen = {entry.digest: entry for entry in entries if entry.digest not in self._removed}

        def place(digest: bytes) -> tuple[bool, float, float, bytes]:
            worth = worths.get(digest, 0.0)
            return self._referrers[digest] > 0, worth, chosen[digest].last_used, digest

        waiting = [place(digest) for digest in chosen]
        heapq.heapify(waiting)
        while waiting:
            digest = heapq.heappop(waiting)[-1]
            if digest in self._removed:
                continue
            yield chosen[digest]
            for other in self._refers_to[digest]:
                if other in chosen and not self._referrers[other]:
                    heapq.heappush(waiting, place(other))


def _leftovers(layout: Layout, files: Iterable[BlobFile], now: float) -> Iterator[Leftover]:
    for file in files:
        if not file.digest and _older(file.changed, now):
            yield Leftover(file.path, file.size)
    for leftover in _set_aside(layout):
        if leftover.path.stat().st_mtime < now - KEPT_ASIDE_SECONDS:
            yield leftover
    yield from half_cleared(layout.directory, now)


def half_cleared(directory: Path, now: float) -> Iterator[Leftover]:
    """Yield the stores in `directory` that somebody began to remove."""
    for path in directory.glob(f"{CLEARING_PREFIX}*"):
        if _older(path.stat().st_mtime, now):
            yield Leftover(path, 0)


def _set_aside(layout: Layout) -> Iterator[Leftover]:
    for path in layout.root.glob(f"*{DAMAGED_SUFFIX}*"):
        yield Leftover(path, path.stat().st_size)


def _bytes_aside(layout: Layout) -> int:
    return sum(leftover.size for leftover in _set_aside(layout))


def _older(changed: float, now: float) -> bool:
    return changed < now - GRACE_SECONDS


def remove_leftover(path: Path) -> None:
    """Remove a file or a directory with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        os.unlink(path)


def _compact(path: Path) -> None:
    """Give the pages that became free back to the file system, a part at a time so that writers get their turn."""
    connection = open_for_update(path, _COMPACT_TIMEOUT)
    if connection is None:
        return
    with closing(connection):
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        for _ in range(0, free, _PAGES_PER_TRANSACTION):
            # execute() would stop after one page: the statement gives a row a page, and the rows have no columns
            connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_PER_TRANSACTION})")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
