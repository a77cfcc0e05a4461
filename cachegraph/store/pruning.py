"""Pruning a local store: what there is to remove (planning.py), and removing it while jobs run.

Blobs are removed under the write lock, where a writer checks that its own are still there.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cachegraph.store.connections import open_for_update
from cachegraph.store.criteria import NEEDLESS_ONLY, Advance, Criteria, Leftover, Plan, is_stale
from cachegraph.store.entry import Entry
from cachegraph.store.eviction import GRACE_SECONDS, SELECT_INDEX_BYTES, remove_unreferenced
from cachegraph.store.local import LocalStore
from cachegraph.store.paths import DAMAGED_SUFFIX, Layout
from cachegraph.store.planning import KEPT_ASIDE_SECONDS, Contents, half_cleared, leftover_files, make_plan
from cachegraph.store.publication import delete

T = TypeVar("T")

_ENTRIES_PER_TRANSACTION = 200
_BLOBS_PER_TRANSACTION = 50
_PAGES_PER_TRANSACTION = 1000
_COMPACT_TIMEOUT = 5.0


def plan(store: LocalStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove by `criteria`, and what nothing needs.

    Raises sqlite3.Error when the index is damaged, and OSError: then nothing can be said about what is needed.
    """
    return make_plan(_contents(store, now), now, criteria)


def carry_out(store: LocalStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names and is still not needed; return how many bytes of files and rows went.

    Raises sqlite3.Error and OSError.
    """
    for batch in _batches(plan.entries, _ENTRIES_PER_TRANSACTION):
        delete(store.database, {entry.digest: plan.reasons[entry.digest] for entry in batch})
        advance(len(batch))
    freed = sum(entry.stored_size for entry in plan.entries)
    for files in _batches(plan.blobs, _BLOBS_PER_TRANSACTION):
        with store.database.writing() as connection:
            freed += sum(remove_unreferenced(connection, file) for file in files)
        advance(len(files))
    freed += remove_leftovers(plan.leftovers, advance)
    if plan.entries:
        _compact(store.layout.index)
    return freed


def remove_leftovers(leftovers: Iterable[Leftover], advance: Advance) -> int:
    """Remove files, and directories with all that is in them; return their bytes. Raises OSError."""
    freed = 0
    for leftover in leftovers:
        if leftover.path.is_dir() and not leftover.path.is_symlink():
            shutil.rmtree(leftover.path, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):
                os.unlink(leftover.path)
        freed += leftover.size
        advance(1)
    return freed


def _contents(store: LocalStore, now: float) -> Contents:
    store.upgrade()
    catalogue = store.catalogue
    files = list(store.blobs.files())
    blobs_of = defaultdict(list)
    for digest, blob in catalogue.references():
        blobs_of[digest].append(blob)
    refers_to = defaultdict(list)
    for digest, other in catalogue.entry_references():
        refers_to[digest].append(other)

    def stale(entry: Entry) -> bool:
        return is_stale(catalogue.encoding(entry.digest) or b"", entry.format)

    (used,) = store.database.select_one(SELECT_INDEX_BYTES, ()) or (0,)
    aside = sum(path.stat().st_size for path in _set_aside(store.layout))
    return Contents(
        entries=store.scan(),
        blobs_of=blobs_of,
        refers_to=refers_to,
        worths=catalogue.worths(),
        is_stale=stale,
        files=files,
        leftovers=list(_leftovers(store, now)),
        grace_seconds=GRACE_SECONDS,
        knows_uses=True,
        overhead=used + aside,
    )


def _leftovers(store: LocalStore, now: float) -> Iterator[Leftover]:
    old = now - GRACE_SECONDS
    yield from leftover_files((file.path for file in store.blobs.files() if not file.digest), old)
    # A lock whose holder lives may go as well: its key is then built twice.
    yield from leftover_files(store.layout.locks.glob("*"), old)
    yield from leftover_files(_set_aside(store.layout), now - KEPT_ASIDE_SECONDS)
    yield from half_cleared(store.layout.directory, old)


def _set_aside(layout: Layout) -> Iterator[Path]:
    yield from layout.root.glob(f"*{DAMAGED_SUFFIX}*")
    yield from layout.damaged.glob("*")


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
