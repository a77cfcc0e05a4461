"""Writing the rows of one entry, through sqlite3 alone.

Processes that compile write entries. SQLAlchemy, which the commands use (catalogue.py), takes 0.15
to 0.2 s to import, a tenth of compiling a small model.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence

from cachegraph.key import CacheKey, compressed
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.artifacts import describe, pack, refuse_oversized
from cachegraph.store.blobs import Blobs
from cachegraph.store.entry import Artifact, BlobReference, Entry, Origin
from cachegraph.store.failures import IndexDamaged
from cachegraph.store.local.index import SELECT_ENTRY_ID, SELECT_RECORD
from cachegraph.store.local.origins import write_origin
from cachegraph.store.local.sizes import bytes_of_rows
from cachegraph.store.record import encode

_ENTRY_FIELDS = Entry._fields
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _ENTRY_FIELDS if name != "digest")
_UPSERT_ENTRY = (
    f"INSERT INTO entry ({', '.join(_ENTRY_FIELDS)}) "
    f"VALUES ({', '.join(f':{name}' for name in _ENTRY_FIELDS)}) "
    f"ON CONFLICT (digest) DO UPDATE SET {_REPLACED}"
)
_UPSERT_CONTENT = """
    INSERT INTO {} (entry_id, content) VALUES (?, ?)
    ON CONFLICT (entry_id) DO UPDATE SET content = excluded.content
"""
_UPSERT_RECORD = _UPSERT_CONTENT.format("record")
_UPSERT_ENCODING = _UPSERT_CONTENT.format("encoding")
_INSERT_BLOB_REFERENCE = "INSERT INTO blob_reference (entry_id, name, blob, size) VALUES (?, ?, ?, ?)"
_INSERT_PART = "INSERT INTO part (entry_id, name, digest) VALUES (?, ?, ?)"
_INSERT_REFERENCE = "INSERT INTO reference (entry_id, digest) VALUES (?, ?)"
_DETAIL_TABLES = ("blob_reference", "part", "reference", "origin")


class Publication(NamedTuple):
    """All rows of one entry.

    `record` is the content of a hit (record.py), `encoding` the compressed encoding of the key, `parts`
    the digests of the key's parts, `references` the digests of the keys of other entries, and `origin`
    is that of a copy, whose encoding is that of the file.
    """

    entry: Entry
    record: bytes
    encoding: bytes
    parts: Mapping[str, bytes]
    blobs: Sequence[BlobReference]
    references: Collection[bytes]
    origin: Origin | None = None


def prepare(
    key: CacheKey, artifact: Artifact, load_seconds: float, blobs: Blobs, origin: Origin | None = None
) -> Publication:
    """Write the blobs of `artifact` and return its rows.

    Raises OSError, and ValueError if it cannot be stored.
    """
    packed = pack(artifact, blobs)
    record, encoding = encode(key, packed.record), origin.encoding if origin else compressed(key)
    content = len(record) + len(encoding) + (len(origin.description) if origin else 0)
    refuse_oversized(key, content)
    references = len(packed.blobs) + len(artifact.references)
    stored_size = bytes_of_rows(content + len(artifact.summary), len(key.parts), references)
    entry = describe(key, artifact, load_seconds, stored_size)
    return Publication(entry, record, encoding, key.part_digests, packed.blobs, artifact.references, origin)


def write(connection: sqlite3.Connection, publication: Publication) -> None:
    """Write an entry in the transaction of `connection`, replacing the old one, and read its record back.

    Raises IndexDamaged if the record read differs: SQLite can follow a damaged chain of pages
    without noticing.
    """
    _write_rows(connection, publication)
    digest = publication.entry.digest
    if connection.execute(SELECT_RECORD, (digest,)).fetchone() != (publication.record,):
        raise IndexDamaged(f"storing {digest.hex()}: the index returned something else than was written")


def add_if_missing(connection: sqlite3.Connection, publication: Publication) -> bool:
    """Write an entry unless its key has one; return True if it was written."""
    if connection.execute(SELECT_ENTRY_ID, (publication.entry.digest,)).fetchone() is not None:
        return False
    _write_rows(connection, publication)
    return True


def _write_rows(connection: sqlite3.Connection, publication: Publication) -> None:
    entry = publication.entry
    row = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    connection.execute(_UPSERT_ENTRY, {**row, "seconds": json.dumps(dict(entry.seconds), sort_keys=True)})
    (entry_id,) = connection.execute(SELECT_ENTRY_ID, (entry.digest,)).fetchone() or (None,)
    _write_details(connection, entry_id, publication)


def _write_details(connection: sqlite3.Connection, entry_id: int | None, publication: Publication) -> None:
    """Write all rows of an entry but its description, replacing those of the old entry."""
    for table in _DETAIL_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE entry_id = ?", (entry_id,))
    connection.execute(_UPSERT_RECORD, (entry_id, publication.record))
    connection.execute(_UPSERT_ENCODING, (entry_id, publication.encoding))
    blobs = [(entry_id, blob.name, bytes.fromhex(blob.digest), blob.size) for blob in publication.blobs]
    connection.executemany(_INSERT_BLOB_REFERENCE, blobs)
    parts = [(entry_id, name, part) for name, part in publication.parts.items()]
    connection.executemany(_INSERT_PART, parts)
    others = sorted(set(publication.references) - {publication.entry.digest})
    connection.executemany(_INSERT_REFERENCE, [(entry_id, other) for other in others])
    if publication.origin is not None:
        write_origin(connection, entry_id, publication.origin)
