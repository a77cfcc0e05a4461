"""Verifying a store: every checksum, the index against the blobs, what refers to what; what is wrong is deleted.

So the next build heals it. What was damaged is kept aside for a look (aside.py). Nothing is taken for damaged that was found
so once: it is looked at again just before it is deleted, in a local store under the write lock, for jobs go on meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.hasher import digest
from cachegraph.key import expanded
from cachegraph.store import schema
from cachegraph.store.aside import keep_damaged
from cachegraph.store.blobs import BlobFile
from cachegraph.store.criteria import Advance
from cachegraph.store.database import identity, set_aside
from cachegraph.store.entry import PAYLOAD, Miss
from cachegraph.store.failures import is_damage
from cachegraph.store.files import read_file, remove_file
from cachegraph.store.local import LocalStore
from cachegraph.store.record import decode_unasked

if TYPE_CHECKING:
    import sqlalchemy


UNREADABLE = "it cannot be read"
"""How what was found begins where nothing can be said, and nothing is removed."""

_ENTRIES_AT_ONCE = 100


class Problem(NamedTuple):
    """What is wrong (index, entry, blob, books), with which key or digest (hex), what was found, and what was done."""

    what: str
    name: str
    found: str
    done: str


def verify(store: LocalStore, advance: Advance = lambda _: None) -> list[Problem]:
    """Check all of `store`, repair it, and return what was wrong; `advance` is told of every entry and blob looked at.

    Raises sqlite3.Error and OSError when it cannot be read or repaired, for other reasons than damage.
    """
    try:
        _check_index(store)
        store.upgrade()
        digests = [entry.digest for entry in store.scan()]
        return list(_check_contents(store, digests, advance))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        damaged = identity(store.layout.index)
        if not is_damage(error) or damaged is None:
            raise
        store.close()
        set_aside(store.layout.index, damaged)
        return [
            Problem(
                "index", store.layout.index.name, str(error), "set aside; the next build begins a new one"
            )
        ]


def _check_index(store: LocalStore) -> None:
    """Raise sqlite3.DatabaseError if SQLite finds the index damaged."""
    try:
        with store.database.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    except FileNotFoundError:
        return
    if found != "ok":
        raise sqlite3.DataError(f"its integrity check says: {found}")


def _check_contents(store: LocalStore, digests: Sequence[bytes], advance: Advance) -> Iterator[Problem]:
    for file in store.blobs.files():
        found = blob_fault(store, file)
        if found:
            yield _without_blob(store, file, found)
        advance(1)
    for begin in range(0, len(digests), _ENTRIES_AT_ONCE):
        batch = digests[begin : begin + _ENTRIES_AT_ONCE]
        with store.database.reading() as connection:
            suspicious = [one for one in batch if _entry_fault(connection, store, one)]
        for key_digest in suspicious:
            yield from _without_entry(store, key_digest)
        advance(len(batch))
    if digests:
        yield from _check_books(store)


def blob_fault(store: LocalStore, file: BlobFile) -> str:
    """Return what is wrong with a file among the blobs; empty if nothing is, or it is gone, or not a blob."""
    if not file.digest:
        return ""
    try:
        content = read_file(file.path, store.guard)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{UNREADABLE}: {error}"
    return "" if digest(content).hex() == file.digest else "it does not match its name, which is its checksum"


def _without_blob(store: LocalStore, file: BlobFile, found: str) -> Problem:
    if found.startswith(UNREADABLE):
        return Problem("blob", file.digest, found, "left as it is")
    with store.database.writing():
        if not blob_fault(store, file):
            return Problem("blob", file.digest, found, "written anew meanwhile")
        try:
            keep_damaged(store.layout.root, f"blob-{file.digest}", file.path.read_bytes(), store.guard)
            remove_file(file.path)
        except OSError as error:
            return Problem("blob", file.digest, found, f"not removed: {error}")
    return Problem("blob", file.digest, found, "removed")


def _entry_fault(connection: sqlalchemy.Connection, store: LocalStore, key_digest: bytes) -> str:
    """What is wrong with an entry; empty if nothing is, if it is gone, or of another release."""
    row = connection.execute(schema.SELECT_STORED, {"key": key_digest}).first()
    if row is None:
        return ""
    record = decode_unasked(row[0], key_digest)
    if isinstance(record, Miss):
        return "" if record.reason == "foreign-format" else record.detail
    blobs = {**record.blobs, **({} if record.payload_blob is None else {PAYLOAD: record.payload_blob})}
    rows = connection.execute(schema.SELECT_REFERENCES_OF, {"key": key_digest}).all()
    if {name: blob.hex() for _, name, blob, _ in rows} != blobs:
        return "the index refers to other blobs than the record does"
    for name, blob in blobs.items():
        if not store.blobs.exists(blob):
            return f"the blob {blob} ({name or 'its payload'}) is missing"
    return encoding_fault(row[1], key_digest)


def encoding_fault(compressed: object, key_digest: bytes) -> str:
    """Return what is wrong with the compressed encoding of the key of that digest; empty if nothing is."""
    try:
        encoding = expanded(compressed) if isinstance(compressed, bytes) else b""
    except InvalidEncoding as error:
        return f"the encoding of its key is damaged: {error}"
    found = digest(encoding)
    return "" if found == key_digest else f"the encoding of its key is that of {found.hex()}"


def _without_entry(store: LocalStore, key_digest: bytes) -> Iterator[Problem]:
    with store.database.writing() as connection:
        found = _entry_fault(connection, store, key_digest)
        if not found:
            return
        (content, _) = connection.execute(schema.SELECT_STORED, {"key": key_digest}).one()
        if isinstance(content, bytes):
            keep_damaged(store.layout.root, f"entry-{key_digest.hex()}", content, store.guard)
        connection.execute(schema.DELETE_ENTRY, {"key": key_digest})
    yield Problem("entry", key_digest.hex(), found, "removed")


def _check_books(store: LocalStore) -> Iterator[Problem]:
    """What eviction goes by is counted anew."""
    with store.database.writing() as connection:
        said = connection.execute(schema.SELECT_BLOB_BYTES).scalar()
        counted = connection.execute(schema.COUNT_BLOB_BYTES).scalar_one()
        wrong = connection.execute(schema.COUNT_WRONG_REFERRERS).scalar_one()
        connection.execute(schema.CORRECT_BLOB_BYTES)
        connection.execute(schema.CORRECT_REFERRERS)
    if said != counted:
        yield Problem("books", "bytes of blobs", f"{said} where there are {counted}", "corrected")
    if wrong:
        yield Problem(
            "books", "references", f"{wrong} entries with another number than there are", "corrected"
        )
