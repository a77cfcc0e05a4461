"""Pruning: what to remove from a cache directory, as a plan that can be shown first, and carried out while jobs run.

Removed are entries not used for a time, then the least recently used ones until a size is kept, then the blobs that
nothing refers to any more, and what killed processes left behind. A blob that nothing refers to may be one that a
writer is about to refer to: it stays for a grace period, and is removed under the write lock, where a writer checks
that its blobs are still there.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cachegraph.store import schema
from cachegraph.store.blobs import BlobFile
from cachegraph.store.connections import open_for_update
from cachegraph.store.entry import Entry, Reference
from cachegraph.store.local import LocalStore
from cachegraph.store.paths import CLEARING_PREFIX, DAMAGED_SUFFIX, Layout

T = TypeVar("T")

GRACE_SECONDS = 3600.0
KEPT_ASIDE_SECONDS = 7 * 86400.0

_ENTRIES_PER_TRANSACTION = 200
_BLOBS_PER_TRANSACTION = 50
_PAGES_PER_TRANSACTION = 1000
_COMPACT_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or directory that belongs to nothing: a temporary file, an index set aside, a store half removed."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What pruning removes, and the bytes the directory holds before and, by estimate, after."""

    entries: Sequence[Entry]
    reasons: Mapping[bytes, str]  # key digest -> why its entry goes
    blobs: Sequence[BlobFile]
    leftovers: Sequence[Leftover]
    bytes_before: int
    bytes_after: int


def plan(store: LocalStore, now: float, max_size: int | None = None, older_than: float | None = None) -> Plan:
    """Return what to remove so that at most `max_size` bytes stay, and nothing unused for `older_than` seconds.

    Raises sqlite3.Error when the index is damaged, and OSError: then nothing can be said about what is needed.
    """
    entries = store.scan()
    references = _by_entry(store.catalogue.references())
    files = list(store.blobs.files())
    referred = Counter(reference.digest for of_entry in references.values() for reference in of_entry)
    blobs = [
        file for file in files if file.digest and not referred[file.digest] and _older(file.changed, now)
    ]
    leftovers = list(_leftovers(store.layout, files, now))
    before = _bytes_held(store, files)
    after = before - sum(file.size for file in blobs) - sum(leftover.size for leftover in leftovers)
    victims = []
    reasons = {}
    for entry in entries:  # the least recently used first
        too_old = older_than is not None and entry.last_used < now - older_than
        too_much = max_size is not None and after > max_size
        if too_old or too_much:
            victims.append(entry)
            limit = f"not used for {older_than:.0f} s" if too_old else f"to keep {max_size} bytes"
            reasons[entry.digest] = f"pruned: {limit}"
            after -= entry.stored_size + _release(references[entry.digest], referred)
    freed = {reference.digest for victim in victims for reference in references[victim.digest]}
    blobs += [file for file in files if file.digest in freed and not referred[file.digest]]
    return Plan(victims, reasons, blobs, leftovers, before, max(after, 0))


def carry_out(store: LocalStore, plan: Plan) -> int:
    """Remove what `plan` names and is still not needed; return how many bytes of files and rows went.

    Raises sqlite3.Error and OSError.
    """
    for batch in _batches(plan.entries, _ENTRIES_PER_TRANSACTION):
        store.catalogue.delete({entry.digest: plan.reasons[entry.digest] for entry in batch})
    freed = sum(entry.stored_size for entry in plan.entries)
    for files in _batches(plan.blobs, _BLOBS_PER_TRANSACTION):
        freed += _remove_blobs(store, files)
    for leftover in plan.leftovers:
        _remove(leftover.path)
        freed += leftover.size
    if plan.entries:
        _compact(store.layout.index)
    return freed


def _by_entry(references: Iterable[tuple[bytes, Reference]]) -> defaultdict[bytes, list[Reference]]:
    by_entry: defaultdict[bytes, list[Reference]] = defaultdict(list)
    for digest, reference in references:
        by_entry[digest].append(reference)
    return by_entry


def _release(references: Iterable[Reference], referred: Counter[str]) -> int:
    """Count down what is referred to, and return the bytes of the blobs that nothing refers to any more."""
    freed = 0
    for reference in references:
        referred[reference.digest] -= 1
        if not referred[reference.digest]:
            freed += reference.size
    return freed


def _bytes_held(store: LocalStore, files: Iterable[BlobFile]) -> int:
    aside = sum(leftover.size for leftover in _set_aside(store.layout))
    return store.catalogue.used_bytes() + sum(file.size for file in files) + aside


def _leftovers(layout: Layout, files: Iterable[BlobFile], now: float) -> Iterator[Leftover]:
    for file in files:
        if not file.digest and _older(file.changed, now):
            yield Leftover(file.path, file.size)
    for leftover in _set_aside(layout):
        if leftover.path.stat().st_mtime < now - KEPT_ASIDE_SECONDS:
            yield leftover
    for path in layout.directory.glob(f"{CLEARING_PREFIX}*"):
        if _older(path.stat().st_mtime, now):
            yield Leftover(path, 0)


def _set_aside(layout: Layout) -> Iterator[Leftover]:
    for path in layout.root.glob(f"*{DAMAGED_SUFFIX}*"):
        yield Leftover(path, path.stat().st_size)


def _older(changed: float, now: float) -> bool:
    return changed < now - GRACE_SECONDS


def _remove_blobs(store: LocalStore, files: Sequence[BlobFile]) -> int:
    freed = 0
    with store.database.writing() as connection:
        for file in files:
            count = connection.execute(schema.COUNT_REFERENCES_TO, {"digest": bytes.fromhex(file.digest)})
            if count.scalar_one() == 0 and _unchanged(file):
                file.path.unlink()
                freed += file.size
    return freed


def _unchanged(file: BlobFile) -> bool:
    """Return whether nobody has written or renewed the blob since the plan was made."""
    with suppress(FileNotFoundError):
        return file.path.stat().st_mtime == file.changed
    return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        path.unlink()


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
