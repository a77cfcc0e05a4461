"""Pruning a shared directory of files, which any number of hosts go on using.

No host knows when others used an entry: what is known is when its file was written, or renewed by whoever read it first
on a node (tiers.py). An entry is worth the seconds it saves per byte, halved for each HALF_LIFE_SECONDS since then. There is
no lock: a blob that somebody comes to refer to just when it is removed costs a miss, and is written again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from cachegraph.store.entry import Entry
from cachegraph.store.maintenance.criteria import NEEDLESS_ONLY, Advance, Criteria, Leftover, Plan, is_stale
from cachegraph.store.maintenance.planning import (
    CREATE_ITEM,
    KEPT_ASIDE_SECONDS,
    Contents,
    half_cleared,
    leftover_files,
    make_plan,
)
from cachegraph.store.maintenance.pruning import remove_leftovers
from cachegraph.store.paths import TEMPORARY_PREFIX
from cachegraph.store.shared.files import remove_file
from cachegraph.store.shared.store import SharedStore, StoredFile

GRACE_SECONDS = 86400.0
"""More than clocks differ, and than a writer takes from its blobs to its entry."""

HALF_LIFE_SECONDS = 30 * 86400.0

_CREATE_REFERENCES = (
    "CREATE TABLE reference (entry_id INTEGER, digest BLOB, PRIMARY KEY (entry_id, digest)) WITHOUT ROWID",
    "CREATE INDEX reference_by_digest ON reference (digest)",
    "CREATE TABLE blob_reference (entry_id INTEGER, blob BLOB, size INTEGER)",
    "CREATE INDEX blob_reference_by_entry ON blob_reference (entry_id)",
    "CREATE INDEX blob_reference_by_blob ON blob_reference (blob)",
)
_ENTER = """
    INSERT INTO item (digest, level, bytes, taken, created, last_used, summary, worth, is_stale)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT_REFERRERS = """
    UPDATE item SET referrers = (SELECT count(*) FROM reference WHERE reference.digest = item.digest)
"""


def plan(store: SharedStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove by `criteria`, and what nothing needs; reads every entry. Raises OSError."""
    with closing(_books(store, now, criteria.stale)) as books:
        return make_plan(_contents(store, books, now), now, criteria)


def carry_out(store: SharedStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names, entries before their blobs; return how many bytes went. Raises OSError."""
    freed = 0
    for victim in plan.entries:
        freed += victim.bytes * store.delete([victim.digest])
        advance(1)
    for file in plan.blobs:
        if file.is_unchanged() and remove_file(file.path):
            freed += file.size
        advance(1)
    return freed + remove_leftovers(plan.leftovers, advance)


def worth(entry: Entry, now: float) -> float:
    """Return the seconds that a use of `entry` saves per byte, less with every day since it was last used or renewed."""
    saved = max(entry.build_seconds - entry.load_seconds, 0.0)
    age = max(now - entry.last_used, 0.0)
    return float(saved / (entry.size + 1) * 0.5 ** (age / HALF_LIFE_SECONDS))


def _books(store: SharedStore, now: float, with_stale: bool) -> sqlite3.Connection:
    """What the files say of their entries, in tables like those of an index."""
    books = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in (CREATE_ITEM, *_CREATE_REFERENCES):
            books.execute(statement)
        for file in store.stored():
            _enter(books, file, now, with_stale)
        books.execute(_COUNT_REFERRERS)
    except BaseException:
        books.close()
        raise
    return books


def _enter(books: sqlite3.Connection, file: StoredFile, now: float, with_stale: bool) -> None:
    entry = file.entry
    stale = with_stale and is_stale(file.encoding, entry.format)
    said = (
        entry.digest,
        entry.level,
        entry.stored_size,
        entry.size,
        entry.created,
        entry.last_used,
        entry.summary,
    )
    number = books.execute(_ENTER, (*said, worth(entry, now), stale)).lastrowid
    books.executemany(
        "INSERT INTO reference VALUES (?, ?)", [(number, other) for other in set(file.references)]
    )
    blobs = [(number, bytes.fromhex(blob.digest), blob.size) for blob in file.blobs]
    books.executemany("INSERT INTO blob_reference VALUES (?, ?, ?)", blobs)


def _contents(store: SharedStore, books: sqlite3.Connection, now: float) -> Contents:
    return Contents(
        books=books,
        files=store.blobs.files(),
        leftovers=list(_leftovers(store, now)),
        grace_seconds=GRACE_SECONDS,
        knows_uses=False,
    )


def _leftovers(store: SharedStore, now: float) -> Iterator[Leftover]:
    old = now - GRACE_SECONDS
    layout = store.layout
    yield from leftover_files((file.path for file in store.blobs.files() if not file.digest), old)
    temporary = (
        path for path in _files_below(store, layout.entries) if path.name.startswith(TEMPORARY_PREFIX)
    )
    yield from leftover_files(temporary, old)
    yield from leftover_files(_files_below(store, layout.leases), old)  # the holder of a lease writes to it
    yield from leftover_files(_files_in(store, layout.damaged), now - KEPT_ASIDE_SECONDS)
    yield from half_cleared(layout.directory, old)


def _files_below(store: SharedStore, top: Path) -> Iterator[Path]:
    """What is in the directories in `top`."""
    for directory in _files_in(store, top):
        yield from _files_in(store, directory)


def _files_in(store: SharedStore, directory: Path) -> Iterator[Path]:
    """What is in `directory`, unless it is a link or otherwise not to be believed: another's files could be meant."""
    try:
        store.guard.check_directory(directory)
        yield from sorted(directory.iterdir())
    except OSError:
        return
