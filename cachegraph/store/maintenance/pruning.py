"""Pruning a local store: what there is to remove (planning.py), and removing it while jobs run.

Blobs are removed under the write lock, where a writer checks that its own are still there.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from cachegraph.store.local.connections import open_for_reading, open_for_update
from cachegraph.store.local.eviction import GRACE_SECONDS, WORTH, remove_unreferenced
from cachegraph.store.local.migrations import migrate
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.criteria import NEEDLESS_ONLY, Advance, Criteria, Leftover, Plan, is_stale
from cachegraph.store.maintenance.planning import (
    CREATE_ITEM,
    KEPT_ASIDE_SECONDS,
    Contents,
    half_cleared,
    leftover_files,
    make_plan,
)
from cachegraph.store.paths import DAMAGED_SUFFIX, Layout
from cachegraph.store.shared.publication import delete
from cachegraph.store.sizes import SIZE

T = TypeVar("T")

_FILL_ITEM = f"""
    INSERT INTO item (id, digest, level, bytes, taken, created, last_used, summary, worth, referrers)
    SELECT id, digest, level, stored_size, {SIZE}, created, last_used, summary, {WORTH}, referrers FROM entry
"""
_SELECT_ENCODINGS = """
    SELECT id, coalesce(content, x''), format FROM entry LEFT JOIN encoding ON encoding.entry_id = entry.id
"""

_ENTRIES_PER_TRANSACTION = 200
_BLOBS_PER_TRANSACTION = 50
_PAGES_PER_TRANSACTION = 1000
_COMPACT_TIMEOUT = 5.0


def plan(store: LocalStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove by `criteria`, and what nothing needs.

    Raises sqlite3.Error when the index is damaged, and OSError: then nothing can be said about what is needed.
    """
    store.upgrade()
    with closing(_books(store, criteria.stale)) as books:
        return make_plan(_contents(store, books, now), now, criteria)


def carry_out(store: LocalStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names and is still not needed; return how many bytes of files and rows went.

    Raises sqlite3.Error and OSError.
    """
    for batch in _batches(plan.entries, _ENTRIES_PER_TRANSACTION):
        delete(store.database, {victim.digest: victim.why for victim in batch})
        advance(len(batch))
    freed = sum(victim.bytes for victim in plan.entries)
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


def _books(store: LocalStore, with_stale: bool) -> sqlite3.Connection:
    """One view of the index, with what planning needs to know of its entries; an empty one where there is no index."""
    connection = open_for_reading(store.layout.index)
    if connection is None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(connection)
    try:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("BEGIN")
        connection.execute(CREATE_ITEM)
        connection.execute(_FILL_ITEM)
        if with_stale:
            for number, encoding, record_format in connection.execute(_SELECT_ENCODINGS):
                if is_stale(encoding, record_format):
                    connection.execute("UPDATE item SET is_stale = 1 WHERE id = ?", (number,))
    except BaseException:
        connection.close()
        raise
    return connection


def _contents(store: LocalStore, books: sqlite3.Connection, now: float) -> Contents:
    return Contents(
        books=books,
        files=store.blobs.files(),
        leftovers=list(_leftovers(store, now)),
        grace_seconds=GRACE_SECONDS,
        knows_uses=True,
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
