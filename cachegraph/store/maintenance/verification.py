"""Verifying a store of either kind: checksums, the index against the blobs, and references.

Damaged files and rows are copied to the quarantine (quarantine.py) and deleted, so that the next
build replaces them. Jobs may write meanwhile, so each fault is checked again just before the
deletion; in a local store, under the write lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.primitives import digest
from cachegraph.key import expanded
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.blobs import BlobFile, Blobs, is_sound
from cachegraph.store.entry import Miss
from cachegraph.store.failures import IndexDamaged, is_suspicious
from cachegraph.store.files import Oversized, remove_file
from cachegraph.store.local.connections import open_for_reading
from cachegraph.store.local.eviction import remove_damaged
from cachegraph.store.local.sizes import COUNT_BLOB_BYTES, COUNT_ROW_BYTES
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.planning import Advance
from cachegraph.store.paths import identity
from cachegraph.store.quarantine import quarantine_content, quarantine_file
from cachegraph.store.record import decode_by_digest
from cachegraph.store.shared.store import SharedStore, entry_files

UNREADABLE = "it cannot be read"
"""The beginning of a fault that proves nothing, so that nothing is removed."""

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
    """A fault of an index, an entry, a blob or of the books: its name, the fault, the repair."""

    what: str
    name: str
    found: str
    done: str


def verify(store: LocalStore | SharedStore, advance: Advance = lambda _: None) -> list[Problem]:
    """Check every entry and blob of `store`, repair it, and return its problems.

    `advance` is called for each thing. A file that cannot be read or is not trusted is a problem, and
    stays. Raises sqlite3.Error and OSError if the index cannot be read or repaired for other reasons
    than damage.
    """
    if isinstance(store, SharedStore):
        return [*_check_blobs(store, advance), *_check_entry_files(store, advance)]
    try:
        return list(_check_local(store, advance))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        replaced = _replace_index(store, error)
        if replaced is None:
            raise
    return [replaced, *_check_local(store, advance)]


def _check_local(store: LocalStore, advance: Advance) -> Iterator[Problem]:
    _check_index(store)
    store.upgrade()
    digests = [entry.digest for entry in store.catalogue.listed("key", None, _refuse_row)]
    yield from _check_blobs(store, advance)
    yield from _check_rows(store, digests, advance)
    if digests:
        yield from _check_books(store)


def _check_index(store: LocalStore) -> None:
    """Raise sqlite3.DatabaseError if SQLite finds the index damaged."""
    with _reading(store) as select:
        found = select("PRAGMA integrity_check(1)", ())
    if found not in ([], [("ok",)]):
        raise IndexDamaged(f"its integrity check says: {found[0][0]}")


def _refuse_row(found: str) -> None:
    raise sqlite3.DataError(found)


def _replace_index(store: LocalStore, error: Exception) -> Problem | None:
    """Replace the index if it is damaged and return the problem; return None if it is not."""
    damaged = identity(store.layout.index)
    if not is_suspicious(error) or damaged is None:
        return None
    store.close()
    # Of both, SQLite's own check may find nothing.
    proof = str(error) if isinstance(error, IndexDamaged | sqlite3.DataError) else ""
    done = store.database.replace_if_damaged(damaged, proof)
    if done is None:
        return None
    entries = "entry" if done.kept == 1 else "entries"
    return Problem(
        "index", store.layout.index.name, done.fault, f"quarantined; {done.kept} {entries} of it kept"
    )


@contextmanager
def _reading(store: LocalStore) -> Iterator[Select]:
    """Open a new connection, which has cached nothing of the index; without an index, no rows are found."""
    connection = open_for_reading(store.layout.index)
    if connection is None:
        yield lambda statement, parameters: []
        return
    with closing(connection):
        yield _selecting(connection)


def _selecting(connection: sqlite3.Connection) -> Select:
    return lambda statement, parameters: connection.execute(statement, parameters).fetchall()


def _check_blobs(store: LocalStore | SharedStore, advance: Advance) -> Iterator[Problem]:
    for file in store.blobs.files():
        found = _blob_fault(store, file)
        if found:
            yield _remove_blob(store, file, found)
        advance(1)


def _blob_fault(store: LocalStore | SharedStore, file: BlobFile) -> str:
    """Return the fault of a file among the blobs; empty if it is sound, gone, or not a blob."""
    if not file.digest:
        return ""
    try:
        sound = is_sound(file, store.guard)
    except FileNotFoundError:
        return ""
    except (OSError, MemoryError) as error:
        return f"{UNREADABLE}: {error}"
    return "" if sound else "it does not match its name, which is its digest"


def _remove_blob(store: LocalStore | SharedStore, file: BlobFile, found: str) -> Problem:
    def remove() -> Problem:
        still = bool(_blob_fault(store, file))
        return _remove_damaged_file(store, "blob", file.digest, file.path, found, still)

    if isinstance(store, SharedStore):
        return remove()
    if found.startswith(UNREADABLE):
        return Problem("blob", file.digest, found, "left as it is")
    with store.database.writing():
        return remove()


def _remove_damaged_file(
    store: LocalStore | SharedStore, what: str, name: str, path: Path, found: str, still: bool
) -> Problem:
    """Quarantine and remove a file if it is `still` damaged and can be read at all."""
    if not still:
        return Problem(what, name, found, "written again meanwhile")
    if found.startswith(UNREADABLE):
        return Problem(what, name, found, "left as it is")
    try:
        quarantine_file(store.layout.root, f"{what}-{name}", path, store.guard)
        remove_file(path)
    except OSError as error:
        return Problem(what, name, found, f"not removed: {error}")
    return Problem(what, name, found, "removed")


def _check_entry_files(store: SharedStore, advance: Advance) -> Iterator[Problem]:
    for name, path in entry_files(store.layout):
        found = _file_fault(store, name, path)
        if found:
            still = bool(_file_fault(store, name, path))
            yield _remove_damaged_file(store, "entry", name, path, found, still)
        advance(1)


def _file_fault(store: SharedStore, name: str, path: Path) -> str:
    """Return the fault of an entry file; empty if it is sound, gone, or of another release."""
    try:
        found = store.read_entry(name, path)
    except FileNotFoundError:
        return ""
    except Oversized as error:
        return str(error)
    except OSError as error:
        return f"{UNREADABLE}: {error}"
    if isinstance(found, Miss):
        return "" if found.reason == "foreign-format" else found.detail
    blobs = {blob.name: blob.digest for blob in found.blobs}
    return _missing_blob(store.blobs, blobs) or _encoding_fault(found.encoding, found.entry.digest)


def _check_rows(store: LocalStore, digests: Sequence[bytes], advance: Advance) -> Iterator[Problem]:
    with _reading(store) as select:
        for key_digest in digests:
            if _row_fault(select, store, key_digest):
                yield from _remove_row(store, key_digest)
            advance(1)


def _row_fault(select: Select, store: LocalStore, key_digest: bytes) -> str:
    """Return the fault of an entry in the index; empty if it is sound, gone, or of another release."""
    stored = select(_SELECT_STORED, (key_digest,))
    if not stored:
        return ""
    ((content, encoding),) = stored
    record = decode_by_digest(content, key_digest)
    if isinstance(record, Miss):
        return "" if record.reason == "foreign-format" else record.detail
    if {name: blob.hex() for name, blob in select(_SELECT_BLOBS, (key_digest,))} != record.all_blobs:
        return "the index refers to other blobs than the record does"
    return _missing_blob(store.blobs, record.all_blobs) or _encoding_fault(encoding, key_digest)


def _remove_row(store: LocalStore, key_digest: bytes) -> Iterator[Problem]:
    with store.database.writing() as connection:
        select = _selecting(connection)
        found = _row_fault(select, store, key_digest)
        if not found:
            return
        ((content, _),) = select(_SELECT_STORED, (key_digest,))
        if isinstance(content, bytes):
            quarantine_content(store.layout.root, f"entry-{key_digest.hex()}", content, store.guard)
        remove_damaged(connection, key_digest)
    yield Problem("entry", key_digest.hex(), found, "removed")


def _missing_blob(blobs: Blobs, references: Mapping[str, str]) -> str:
    for name, blob in references.items():
        if not blobs.exists(blob):
            return f"the blob {blob} ({name or 'its payload'}) is missing"
    return ""


def _encoding_fault(compressed: object, key_digest: bytes) -> str:
    """Return the fault of the compressed encoding of the key with that digest; empty if it is sound."""
    try:
        encoding = expanded(compressed) if isinstance(compressed, bytes) else b""
    except InvalidEncoding as error:
        return f"the encoding of its key is damaged: {error}"
    found = digest(encoding)
    return "" if found == key_digest else f"the encoding of its key is that of {found.hex()}"


def _check_books(store: LocalStore) -> Iterator[Problem]:
    """Count again the sums and references that eviction relies on."""
    with store.database.writing() as connection:
        select = _selecting(connection)
        ((blobs, counted_blobs, rows, counted_rows, wrong),) = select(_COUNT_BOOKS, ())
        connection.execute(_CORRECT_BYTES)
        connection.execute(_CORRECT_REFERRERS)
    for what, said, counted in (("blobs", blobs, counted_blobs), ("rows", rows, counted_rows)):
        if said != counted:
            yield Problem("books", f"bytes of {what}", f"{said}, but counting gives {counted}", "corrected")
    if wrong:
        yield Problem(
            "books", "references", f"{wrong} entries with a wrong number of references", "corrected"
        )
