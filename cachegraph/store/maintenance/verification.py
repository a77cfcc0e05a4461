"""Verifying a store: every checksum, the index against the blobs, what refers to what; what is wrong is deleted.

So the next build heals it. What was damaged is kept aside for a look (aside.py). Nothing is taken for damaged that was found
so once: it is looked at again just before it is deleted, in a local store under the write lock, for jobs go on meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.primitives import digest
from cachegraph.key import expanded
from cachegraph.store.entry import PAYLOAD, Miss
from cachegraph.store.failures import IndexDamaged, is_suspicious
from cachegraph.store.local.blobs import BlobFile, is_sound
from cachegraph.store.local.connections import open_for_reading
from cachegraph.store.local.quarantine import keep_damaged, keep_file
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.criteria import Advance
from cachegraph.store.paths import identity
from cachegraph.store.record import decode_unasked
from cachegraph.store.shared.files import remove_file
from cachegraph.store.shared.publication import remove_damaged
from cachegraph.store.sizes import COUNT_BLOB_BYTES, COUNT_ROW_BYTES

if TYPE_CHECKING:
    from cachegraph.store.shared.store import SharedStore

UNREADABLE = "it cannot be read"
"""How what was found begins where nothing can be said, and nothing is removed."""

_SELECT_STORED = """
    SELECT record.content, encoding.content FROM entry
    LEFT JOIN record ON record.entry_id = entry.id LEFT JOIN encoding ON encoding.entry_id = entry.id
    WHERE digest = ?
"""
_SELECT_BLOBS = "SELECT name, blob FROM blob_reference JOIN entry ON entry.id = entry_id WHERE digest = ?"
_REFERRERS = "(SELECT count(*) FROM reference WHERE reference.digest = entry.digest)"
_COUNT_BOOKS = f"""
    SELECT (SELECT blob_bytes FROM eviction), ({COUNT_BLOB_BYTES}),
    (SELECT stored_bytes FROM eviction), ({COUNT_ROW_BYTES}),
    (SELECT count(*) FROM entry WHERE referrers != {_REFERRERS})
"""
_CORRECT_BYTES = f"UPDATE eviction SET blob_bytes = ({COUNT_BLOB_BYTES}), stored_bytes = ({COUNT_ROW_BYTES})"
_CORRECT_REFERRERS = f"UPDATE entry SET referrers = {_REFERRERS} WHERE referrers != {_REFERRERS}"

Select = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]
"""Runs a statement with its parameters and returns every row."""


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
        return list(_check(store, advance))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        replaced = _replaced(store, error)
        if replaced is None:
            raise
    return [replaced, *_check(store, advance)]


def _check(store: LocalStore, advance: Advance) -> Iterator[Problem]:
    _check_index(store)
    store.upgrade()
    digests = [entry.digest for entry in store.catalogue.listed("key", None, _refuse_row)]
    yield from _check_contents(store, digests, advance)


def _replaced(store: LocalStore, error: Exception) -> Problem | None:
    """Set the index aside if it is damaged, and say so; None if it is not."""
    damaged = identity(store.layout.index)
    if not is_suspicious(error) or damaged is None:
        return None
    store.close()
    proof = str(error) if isinstance(error, sqlite3.DataError) else ""  # a row that is sound to SQLite alone
    done = store.database.replace_if_damaged(damaged, proof)
    if done is None:
        return None
    entries = "entry" if done.kept == 1 else "entries"
    return Problem(
        "index", store.layout.index.name, done.fault, f"set aside; {done.kept} {entries} of it kept"
    )


def _refuse_row(found: str) -> None:
    raise sqlite3.DataError(found)


def _check_index(store: LocalStore) -> None:
    """Raise sqlite3.DatabaseError if SQLite finds the index damaged."""
    with _reading(store) as select:
        found = select("PRAGMA integrity_check(1)", ())
    if found not in ([], [("ok",)]):
        raise IndexDamaged(f"its integrity check says: {found[0][0]}")


@contextmanager
def _reading(store: LocalStore) -> Iterator[Select]:
    """A connection of its own, which has nothing of the index in memory; without an index, nothing is found."""
    connection = open_for_reading(store.layout.index)
    if connection is None:
        yield lambda statement, parameters: []
        return
    with closing(connection):
        yield _selecting(connection)


def _selecting(connection: sqlite3.Connection) -> Select:
    return lambda statement, parameters: connection.execute(statement, parameters).fetchall()


def _check_contents(store: LocalStore, digests: Sequence[bytes], advance: Advance) -> Iterator[Problem]:
    for file in store.blobs.files():
        found = blob_fault(store, file)
        if found:
            yield _without_blob(store, file, found)
        advance(1)
    with _reading(store) as select:
        for key_digest in digests:
            if _entry_fault(select, store, key_digest):
                yield from _without_entry(store, key_digest)
            advance(1)
    if digests:
        yield from _check_books(store)


def blob_fault(store: LocalStore | SharedStore, file: BlobFile) -> str:
    """Return what is wrong with a file among the blobs; empty if nothing is, or it is gone, or not a blob."""
    if not file.digest:
        return ""
    try:
        sound = is_sound(file, store.guard)
    except FileNotFoundError:
        return ""
    except (OSError, MemoryError) as error:
        return f"{UNREADABLE}: {error}"
    return "" if sound else "it does not match its name, which is its digest"


def _without_blob(store: LocalStore, file: BlobFile, found: str) -> Problem:
    if found.startswith(UNREADABLE):
        return Problem("blob", file.digest, found, "left as it is")
    with store.database.writing():
        if not blob_fault(store, file):
            return Problem("blob", file.digest, found, "written anew meanwhile")
        try:
            keep_file(store.layout.root, f"blob-{file.digest}", file.path, store.guard)
            remove_file(file.path)
        except OSError as error:
            return Problem("blob", file.digest, found, f"not removed: {error}")
    return Problem("blob", file.digest, found, "removed")


def _entry_fault(select: Select, store: LocalStore, key_digest: bytes) -> str:
    """What is wrong with an entry; empty if nothing is, if it is gone, or of another release."""
    stored = select(_SELECT_STORED, (key_digest,))
    if not stored:
        return ""
    ((content, encoding),) = stored
    record = decode_unasked(content, key_digest)
    if isinstance(record, Miss):
        return "" if record.reason == "foreign-format" else record.detail
    blobs = {**record.blobs, **({} if record.payload_blob is None else {PAYLOAD: record.payload_blob})}
    if {name: blob.hex() for name, blob in select(_SELECT_BLOBS, (key_digest,))} != blobs:
        return "the index refers to other blobs than the record does"
    for name, blob in blobs.items():
        if not store.blobs.exists(blob):
            return f"the blob {blob} ({name or 'its payload'}) is missing"
    return encoding_fault(encoding, key_digest)


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
        select = _selecting(connection)
        found = _entry_fault(select, store, key_digest)
        if not found:
            return
        ((content, _),) = select(_SELECT_STORED, (key_digest,))
        if isinstance(content, bytes):
            keep_damaged(store.layout.root, f"entry-{key_digest.hex()}", content, store.guard)
        remove_damaged(connection, key_digest)
    yield Problem("entry", key_digest.hex(), found, "removed")


def _check_books(store: LocalStore) -> Iterator[Problem]:
    """What eviction goes by is counted anew."""
    with store.database.writing() as connection:
        select = _selecting(connection)
        ((blobs, counted_blobs, rows, counted_rows, wrong),) = select(_COUNT_BOOKS, ())
        connection.execute(_CORRECT_BYTES)
        connection.execute(_CORRECT_REFERRERS)
    for what, said, counted in (("blobs", blobs, counted_blobs), ("rows", rows, counted_rows)):
        if said != counted:
            yield Problem("books", f"bytes of {what}", f"{said} where there are {counted}", "corrected")
    if wrong:
        yield Problem(
            "books", "references", f"{wrong} entries with another number than there are", "corrected"
        )
