"""What is written of an entry, and removed with it. Through sqlite3 alone: a process that compiles imports no more than that.

SQLAlchemy, with which the index is listed (catalogue.py), takes 0.15 to 0.2 s to import: a tenth of compiling a small model.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from cachegraph.store.entry import Entry, Reference
from cachegraph.store.failures import IndexDamaged
from cachegraph.store.local.index import SELECT_RECORD

if TYPE_CHECKING:
    from cachegraph.store.local.database import Database

EVICTED_KEPT = 10_000

_ENTRY_FIELDS = tuple(field.name for field in fields(Entry))
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _ENTRY_FIELDS if name != "digest")
_UPSERT_ENTRY = (
    f"INSERT INTO entry ({', '.join(_ENTRY_FIELDS)}) VALUES ({', '.join(f':{name}' for name in _ENTRY_FIELDS)}) "
    f"ON CONFLICT (digest) DO UPDATE SET {_REPLACED}"
)
_SELECT_ENTRY_ID = "SELECT id FROM entry WHERE digest = ?"
_UPSERT_CONTENT = """
    INSERT INTO {} (entry_id, content) VALUES (?, ?)
    ON CONFLICT (entry_id) DO UPDATE SET content = excluded.content
"""
_UPSERT_RECORD = _UPSERT_CONTENT.format("record")
_UPSERT_ENCODING = _UPSERT_CONTENT.format("encoding")
_INSERT_BLOB_REFERENCE = "INSERT INTO blob_reference (entry_id, name, blob, size) VALUES (?, ?, ?, ?)"
_INSERT_PART = "INSERT INTO part (entry_id, name, digest) VALUES (?, ?, ?)"
_INSERT_REFERENCE = "INSERT INTO reference (entry_id, digest) VALUES (?, ?)"
_BELONGINGS = ("blob_reference", "part", "reference")
_REMEMBER = """
    INSERT OR REPLACE INTO evicted (digest, level, evicted, why)
    SELECT digest, level, ?, ? FROM entry WHERE digest = ?
"""
_DELETE_ENTRY = "DELETE FROM entry WHERE digest = ?"
# What was removed last has the highest rowid, one that replaces another's row included: nothing need be counted.
_FORGET = "DELETE FROM evicted WHERE rowid <= (SELECT max(rowid) FROM evicted) - ?"


@dataclass(frozen=True, slots=True)
class Publication:
    """All that is written of one entry: its description, what a hit returns (record.py), the compressed encoding of its
    key and the digests of that key's parts, the blobs and the keys of the entries that it refers to."""

    entry: Entry
    record: bytes
    encoding: bytes
    parts: Mapping[str, bytes]
    blobs: Sequence[Reference]
    references: Collection[bytes]


def write(
    database: Database,
    publication: Publication,
    may_publish: Callable[[], bool],
    make_room: Callable[[sqlite3.Connection], None],
) -> bool:
    """Put an entry with all that belongs to it in one transaction, unless `may_publish`, asked within it, says no.

    It is read back before it is committed: SQLite can follow a damaged chain of pages without noticing. Last of
    all, in the same transaction, `make_room` removes what is too much. Raises sqlite3.Error and OSError.
    """
    row = _row_of(publication.entry)  # all that can be done before others have to wait is
    digest = publication.entry.digest
    with database.writing() as connection:
        if not may_publish():
            return False
        _put(connection, row, publication)
        if connection.execute(SELECT_RECORD, (digest,)).fetchone() != (publication.record,):
            raise IndexDamaged(f"storing {digest.hex()}: the index returned something else than was written")
        make_room(connection)
    return True


def add_if_missing(connection: sqlite3.Connection, publication: Publication) -> bool:
    """Put an entry, in the transaction of `connection`, where there is none of its key; return whether there was none."""
    if connection.execute(_SELECT_ENTRY_ID, (publication.entry.digest,)).fetchone() is not None:
        return False
    _put(connection, _row_of(publication.entry), publication)
    return True


def delete(database: Database, reasons: Mapping[bytes, str]) -> int:
    """Remove the entries of these keys in one transaction and return how many there were.

    That they were there, and why (key digest -> reason) they went, is remembered for the latest EVICTED_KEPT.
    Raises sqlite3.Error and OSError.
    """
    with database.writing() as connection:
        removed = sum(remove(connection, digest, why) for digest, why in reasons.items())
        forget(connection)
        return removed


def forget(connection: sqlite3.Connection) -> None:
    """Remember no more than the latest EVICTED_KEPT removals, in the transaction of `connection`."""
    connection.execute(_FORGET, (EVICTED_KEPT,))


def remove(connection: sqlite3.Connection, digest: bytes, why: str) -> int:
    """Remove an entry and remember `why`, in the transaction of `connection`; return how many there were, 0 or 1."""
    connection.execute(_REMEMBER, (time.time(), why, digest))
    return connection.execute(_DELETE_ENTRY, (digest,)).rowcount


def remove_damaged(connection: sqlite3.Connection, digest: bytes) -> None:
    """Remove an entry as if it had never been there, in the transaction of `connection`."""
    connection.execute(_DELETE_ENTRY, (digest,))


def _put(connection: sqlite3.Connection, row: Mapping[str, object], publication: Publication) -> None:
    digest = publication.entry.digest
    connection.execute(_UPSERT_ENTRY, row)
    (entry_id,) = connection.execute(_SELECT_ENTRY_ID, (digest,)).fetchone() or (None,)
    _write_belongings(connection, entry_id, publication)


def _write_belongings(connection: sqlite3.Connection, entry_id: int | None, publication: Publication) -> None:
    """Write all but the description of an entry, in place of what an entry of that key had before."""
    for table in _BELONGINGS:
        connection.execute(f"DELETE FROM {table} WHERE entry_id = ?", (entry_id,))
    connection.execute(_UPSERT_RECORD, (entry_id, publication.record))
    connection.execute(_UPSERT_ENCODING, (entry_id, publication.encoding))
    blobs = [(entry_id, blob.name, bytes.fromhex(blob.digest), blob.size) for blob in publication.blobs]
    connection.executemany(_INSERT_BLOB_REFERENCE, blobs)
    parts = [(entry_id, name, part) for name, part in publication.parts.items()]
    connection.executemany(_INSERT_PART, parts)
    others = sorted(set(publication.references) - {publication.entry.digest})
    connection.executemany(_INSERT_REFERENCE, [(entry_id, other) for other in others])


def _row_of(entry: Entry) -> dict[str, object]:
    row = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    return {**row, "seconds": json.dumps(dict(entry.seconds), sort_keys=True)}
