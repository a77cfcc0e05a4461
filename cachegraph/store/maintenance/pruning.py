"""Pruning a store of either kind while jobs use it: taking snapshots, and carrying out plans.

In a local store, blobs are removed under the write lock, under which a writer checks that its blobs
still exist.

In a shared directory there is no lock: if a process refers to a blob just when it is removed, that
costs a miss, and the blob is written again. When other hosts used an entry is known from their use
logs, which may be lost (use_log/), or else from the time at which its file was written, or renewed by
its first reader on a node (tiers.py). So a shared entry is worth what eviction.py says, without the
clock, which no host has; instead worth is halved for each HALF_LIFE_SECONDS since the last use.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from cachegraph.errors import StoreError
from cachegraph.store.entry import Entry
from cachegraph.store.files import remove_file
from cachegraph.store.local.connections import closed_on_error, open_for_reading, open_for_update
from cachegraph.store.local.eviction import GRACE_SECONDS, delete, remove_unreferenced
from cachegraph.store.local.migrations import migrate
from cachegraph.store.local.sizes import SIZE, WORTH
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.planning import (
    CREATE_ITEM,
    NEEDLESS_ONLY,
    QUARANTINE_SECONDS,
    Advance,
    Contents,
    Criteria,
    Leftover,
    Plan,
    half_cleared,
    leftover_files,
    make_plan,
)
from cachegraph.store.maintenance.staleness import is_stale
from cachegraph.store.paths import DAMAGED_SUFFIX, TEMPORARY_PREFIX
from cachegraph.store.shared.store import SharedStore, files_in
from cachegraph.store.shared.without_index import StoredFile
from cachegraph.store.trust import Untrusted
from cachegraph.store.use_log.reading import sum_up

T = TypeVar("T")

SHARED_GRACE_SECONDS = 86400.0
"""The grace period in a shared directory, longer than clocks differ and than a writer takes."""
HALF_LIFE_SECONDS = 30 * 86400.0
USE_LOG_SECONDS = 90 * 86400.0
"""How long a use log stays to which nothing was appended."""
SOURCE_RECORD_SECONDS = 90 * 86400.0
"""How long a record of source stays; the next process that builds something makes it again."""

_ENTRIES_PER_TRANSACTION = 200
_BLOBS_PER_TRANSACTION = 50
_PAGES_PER_TRANSACTION = 1000
_COMPACT_TIMEOUT = 5.0

_FILL_ITEM = f"""
    INSERT INTO item (id, digest, level, bytes, taken, created, last_used, summary, worth, referrers)
    SELECT id, digest, level, stored_size, {SIZE}, created, last_used, summary, {WORTH}, referrers FROM entry
"""
_SELECT_ENCODINGS = """
    SELECT id, coalesce(content, x''), format FROM entry LEFT JOIN encoding ON encoding.entry_id = entry.id
"""
_CREATE_REFERENCES = (
    "CREATE TABLE reference (entry_id INTEGER, digest BLOB, PRIMARY KEY (entry_id, digest)) WITHOUT ROWID",
    "CREATE INDEX reference_by_digest ON reference (digest)",
    "CREATE TABLE blob_reference (entry_id INTEGER, blob BLOB, size INTEGER)",
    "CREATE INDEX blob_reference_by_entry ON blob_reference (entry_id)",
    "CREATE INDEX blob_reference_by_blob ON blob_reference (blob)",
)
_INSERT_ITEM = """
    INSERT INTO item (digest, level, bytes, taken, created, last_used, summary, worth, is_stale)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT_REFERRERS = """
    UPDATE item SET referrers = (SELECT count(*) FROM reference WHERE reference.digest = item.digest)
"""


def plan(store: LocalStore | SharedStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove by `criteria`, and what no entry needs; reads every entry of a shared store.

    Raises OSError, and sqlite3.Error if the index is damaged: then it is unknown what is needed.
    """
    if isinstance(store, LocalStore):
        store.upgrade()
        contents = _local_contents(store, now, criteria.stale)
    else:
        contents = _shared_contents(store, now, criteria.stale)
    with closing(contents.books):
        return make_plan(contents, now, criteria)


def carry_out(store: LocalStore | SharedStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names and is still not needed; return the freed bytes of files and rows.

    Raises sqlite3.Error and OSError.
    """
    if isinstance(store, SharedStore):
        return _remove_files(store, plan, advance) + _remove_leftovers(plan.leftovers, advance)
    freed = _remove_rows(store, plan, advance) + _remove_leftovers(plan.leftovers, advance)
    if plan.entries:
        _compact(store.layout.index)
    return freed


def worth(entry: Entry, now: float) -> float:
    """Return the seconds that a shared entry saved per byte, halved for each half-life since its last use."""
    saved = max(entry.build_seconds - entry.load_seconds, 0.0)
    age = max(now - entry.last_used, 0.0)
    return float(saved * (entry.uses + 1) / (entry.size + 1) * 0.5 ** (age / HALF_LIFE_SECONDS))


def _local_contents(store: LocalStore, now: float, with_stale: bool) -> Contents:
    books = open_for_reading(store.layout.index)
    if books is None:
        books = sqlite3.connect(":memory:", isolation_level=None)
        migrate(books)
    with closed_on_error(books):
        books.execute("PRAGMA temp_store = MEMORY")
        books.execute("BEGIN")
        books.execute(CREATE_ITEM)
        books.execute(_FILL_ITEM)
        if with_stale:
            for number, encoding, record_format in books.execute(_SELECT_ENCODINGS):
                if is_stale(encoding, record_format):
                    books.execute("UPDATE item SET is_stale = 1 WHERE id = ?", (number,))
        leftovers = list(_local_leftovers(store, now))
    return Contents(books, store.blobs.files(), leftovers, GRACE_SECONDS, knows_uses=True)


def _shared_contents(store: SharedStore, now: float, with_stale: bool) -> Contents:
    logged = sum_up(store.use_logs(), now)
    stored = store.stored(lambda error: _refuse_strangers(store, error))
    books = books_of((file._replace(entry=logged.of(file.entry)) for file in stored), now, with_stale)
    with closed_on_error(books):
        leftovers = list(_shared_leftovers(store, now))
    return Contents(books, store.blobs.files(), leftovers, SHARED_GRACE_SECONDS, knows_uses=False)


def books_of(files: Iterable[StoredFile], now: float, with_stale: bool) -> sqlite3.Connection:
    """Return tables of these entries for planning; `with_stale` also asks which of them are stale."""
    books = sqlite3.connect(":memory:", isolation_level=None)
    with closed_on_error(books):
        for statement in (CREATE_ITEM, *_CREATE_REFERENCES):
            books.execute(statement)
        for file in files:
            _insert_file(books, file, now, with_stale)
        books.execute(_COUNT_REFERRERS)
    return books


def _refuse_strangers(store: SharedStore, error: Untrusted) -> None:
    """Raise StoreError where owners are trusted: blobs of entries that are not believed would seem needless.

    Where signers are trusted, others may have left files to keep this user from pruning.
    """
    if store.guard.trust.signers is None:
        raise StoreError(
            "pruning", store.layout.directory, f"a file that is not believed, so nothing is removed: {error}"
        )


def _insert_file(books: sqlite3.Connection, file: StoredFile, now: float, with_stale: bool) -> None:
    entry = file.entry
    sizes = entry.stored_size, entry.size
    times = entry.created, entry.last_used
    stale = with_stale and is_stale(file.encoding, entry.format)
    row = entry.digest, entry.level, *sizes, *times, entry.summary, worth(entry, now), stale
    number = books.execute(_INSERT_ITEM, row).lastrowid
    references = [(number, other) for other in set(file.references)]
    books.executemany("INSERT INTO reference VALUES (?, ?)", references)
    blobs = [(number, bytes.fromhex(blob.digest), blob.size) for blob in file.blobs]
    books.executemany("INSERT INTO blob_reference VALUES (?, ?, ?)", blobs)


def _local_leftovers(store: LocalStore, now: float) -> Iterator[Leftover]:
    old, layout = now - GRACE_SECONDS, store.layout
    yield from leftover_files((file.path for file in store.blobs.files() if not file.digest), old)
    # A lock whose holder lives may go too: then its key is built twice.
    yield from leftover_files(layout.locks.glob("*"), old)
    for_speed = chain(layout.sources.glob("*"), layout.modules.glob("*"))
    yield from leftover_files(for_speed, now - SOURCE_RECORD_SECONDS)
    quarantined = chain(layout.root.glob(f"*{DAMAGED_SUFFIX}*"), layout.damaged.glob("*"))
    yield from leftover_files(quarantined, now - QUARANTINE_SECONDS)
    yield from half_cleared(layout.directory, old)


def _shared_leftovers(store: SharedStore, now: float) -> Iterator[Leftover]:
    old, layout = now - SHARED_GRACE_SECONDS, store.layout
    yield from leftover_files((file.path for file in store.blobs.files() if not file.digest), old)
    written = chain(_files_below(store, layout.entries), files_in(layout.revocations, store.guard))
    yield from leftover_files(files_in(layout.uses, store.guard), now - USE_LOG_SECONDS)
    yield from leftover_files((path for path in written if path.name.startswith(TEMPORARY_PREFIX)), old)
    yield from leftover_files(_files_below(store, layout.leases), old)  # the holder of a lease writes to it
    yield from leftover_files(files_in(layout.damaged, store.guard), now - QUARANTINE_SECONDS)
    yield from half_cleared(layout.directory, old)


def _files_below(store: SharedStore, top: Path) -> Iterator[Path]:
    """Yield the files in the directories in `top`."""
    for directory in files_in(top, store.guard):
        yield from files_in(directory, store.guard)


def _remove_rows(store: LocalStore, plan: Plan, advance: Advance) -> int:
    """Remove the rows of `plan`, then its blobs under the write lock; return the freed bytes."""
    for entries in _batches(plan.entries, _ENTRIES_PER_TRANSACTION):
        delete(store.database, {entry.digest: entry.why for entry in entries})
        advance(len(entries))
    freed = sum(entry.bytes for entry in plan.entries)
    for files in _batches(plan.blobs, _BLOBS_PER_TRANSACTION):
        with store.database.writing() as connection:
            freed += sum(remove_unreferenced(connection, file) for file in files)
        advance(len(files))
    return freed


def _remove_files(store: SharedStore, plan: Plan, advance: Advance) -> int:
    """Remove the entries of `plan`, then its blobs; return the freed bytes."""
    freed = 0
    for entry in plan.entries:
        freed += entry.bytes * store.delete([entry.digest])
        advance(1)
    for file in plan.blobs:
        if file.is_unchanged() and remove_file(file.path):
            freed += file.size
        advance(1)
    return freed


def _remove_leftovers(leftovers: Iterable[Leftover], advance: Advance) -> int:
    """Remove files, and directories with their content; return the freed bytes. Raises OSError."""
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


def _compact(path: Path) -> None:
    """Return free pages to the file system, a part at a time so that writers get their turn."""
    connection = open_for_update(path, _COMPACT_TIMEOUT)
    if connection is None:
        return
    with closing(connection):
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        for _ in range(0, free, _PAGES_PER_TRANSACTION):
            # execute() would stop after one page: the statement returns one row per page
            connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_PER_TRANSACTION})")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
