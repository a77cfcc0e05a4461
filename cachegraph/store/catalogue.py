"""The index as everything but a hit uses it: publishing, listing, deleting, adding up. SQLAlchemy Core throughout."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Select

from cachegraph.store import schema
from cachegraph.store.database import Database
from cachegraph.store.entry import Entry, Reference
from cachegraph.store.eviction import index_bytes
from cachegraph.store.failures import IndexDamaged

EVICTED_KEPT = 10_000
_ENTRY_FIELDS = tuple(field.name for field in fields(Entry))


@dataclass(frozen=True, slots=True)
class KeptMiss:
    """A miss that the index remembers: when (seconds since 1970), and the compressed encoding of a key not stored."""

    digest: bytes
    level: str
    missed: float
    reason: str
    detail: str
    encoding: bytes | None


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


class Catalogue:
    """The rows in `database`. Methods raise sqlite3.Error and OSError; where there is no index they find nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(
        self,
        publication: Publication,
        may_publish: Callable[[], bool],
        make_room: Callable[[Connection], None],
    ) -> bool:
        """Put an entry with all that belongs to it in one transaction, unless `may_publish`, asked within it, says no.

        It is read back before it is committed: SQLite can follow a damaged chain of pages without noticing. Last of
        all, in the same transaction, `make_room` removes what is too much.
        """
        digest = publication.entry.digest
        row = _row_of(publication.entry)  # all that can be done before others have to wait is
        with self._database.writing() as connection:
            if not may_publish():
                return False
            replaced = connection.execute(schema.SELECT_ENTRY_ID, {"digest": digest}).scalar()
            connection.execute(schema.UPSERT_ENTRY, row)
            if replaced is not None:
                _remove_belongings(connection, replaced)
            entry_id = connection.execute(schema.SELECT_ENTRY_ID, {"digest": digest}).scalar_one()
            _write_belongings(connection, entry_id, publication)
            if connection.execute(schema.SELECT_RECORD, {"key": digest}).scalar() != publication.record:
                raise IndexDamaged(
                    f"storing {digest.hex()}: the index returned something else than was written"
                )
            make_room(connection)
        return True

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        return [entry_of(row) for row in self._rows(schema.SELECT_ENTRIES, {})]

    def find(self, prefix: str) -> list[Entry]:
        """Return the entries whose key starts with `prefix` (lower-case hexadecimal), in order of key."""
        return [entry_of(row) for row in self._rows(schema.SELECT_ENTRIES_BY_PREFIX, {"prefix": prefix})]

    def delete(self, reasons: Mapping[bytes, str]) -> int:
        """Remove the entries of these keys in one transaction and return how many there were.

        That they were there, and why (key digest -> reason) they went, is remembered for the latest EVICTED_KEPT.
        """
        now = time.time()
        with self._database.writing() as connection:
            for digest, why in reasons.items():
                connection.execute(schema.UPSERT_EVICTED, {"key": digest, "now": now, "why": why})
            removed = sum(
                connection.execute(schema.DELETE_ENTRY, {"key": digest}).rowcount for digest in reasons
            )
            connection.execute(schema.FORGET_EVICTED, {"kept": EVICTED_KEPT})
            return removed

    def encoding(self, digest: bytes) -> bytes | None:
        """Return the stored encoding of a key, compressed with zlib; None when it is not there."""
        for row in self._rows(schema.SELECT_ENCODING, {"key": digest}):
            return bytes(row[0])
        return None

    def references(self) -> list[tuple[bytes, Reference]]:
        """Return (key digest, reference) for every reference of every entry."""
        rows = self._rows(schema.SELECT_REFERENCES, {})
        return [(digest, Reference(name, blob.hex(), size)) for digest, name, blob, size in rows]

    def references_of(self, digest: bytes) -> list[Reference]:
        """Return what one entry refers to, in order of name."""
        rows = self._rows(schema.SELECT_REFERENCES_OF, {"key": digest})
        return [Reference(name, blob.hex(), size) for _, name, blob, size in rows]

    def misses(self, most: int) -> list[KeptMiss]:
        """Return the latest misses, the last first; none of an index of an older release that kept none."""
        if not self._database.has_table("miss"):
            return []
        return [KeptMiss(**row._mapping) for row in self._rows(schema.SELECT_MISSES, {"most": most})]

    def find_misses(self, prefix: str) -> list[KeptMiss]:
        """Return the kept misses of keys that start with `prefix` (lower-case hexadecimal)."""
        if not self._database.has_table("miss"):
            return []
        rows = self._rows(schema.SELECT_MISSES_BY_PREFIX, {"prefix": prefix})
        return [KeptMiss(**row._mapping) for row in rows]

    def used_bytes(self) -> int:
        """Return how many bytes of the index file hold something."""
        try:
            with self._database.reading() as connection:
                return index_bytes(connection)
        except FileNotFoundError:
            return 0

    def worths(self) -> dict[bytes, float]:
        """Return key digest -> what eviction goes by, of every entry."""
        return dict(self._rows(schema.SELECT_WORTHS, {}))

    def entry_references_of(self, digest: bytes) -> list[bytes]:
        """Return the key digests of what one entry refers to; none where an older release wrote the index."""
        if not self._database.has_table("reference"):
            return []
        return [other for _, other in self._rows(schema.SELECT_ENTRY_REFERENCES_OF, {"key": digest})]

    def entry_references(self) -> list[tuple[bytes, bytes]]:
        """Return (key digest, key digest of an entry it refers to, there or not) for every such reference."""
        return [(digest, other) for digest, other in self._rows(schema.SELECT_ENTRY_REFERENCES, {})]

    def _rows(self, statement: Select[*tuple[Any, ...]], parameters: dict[str, object]) -> Sequence[Any]:
        try:
            with self._database.reading() as connection:
                return connection.execute(statement, parameters).all()
        except FileNotFoundError:
            return []


def _remove_belongings(connection: Connection, entry_id: int) -> None:
    """Remove what of an entry is not replaced by writing it anew."""
    for delete in (schema.DELETE_REFERENCES, schema.DELETE_PARTS, schema.DELETE_ENTRY_REFERENCES):
        connection.execute(delete, {"entry": entry_id})


def _write_belongings(connection: Connection, entry_id: int, publication: Publication) -> None:
    """Write all but the description of an entry."""
    connection.execute(schema.UPSERT_RECORD, {"entry_id": entry_id, "content": publication.record})
    connection.execute(schema.UPSERT_ENCODING, {"entry_id": entry_id, "content": publication.encoding})
    others = set(publication.references) - {publication.entry.digest}
    rows = {
        schema.INSERT_REFERENCE: [_reference_row(entry_id, blob) for blob in publication.blobs],
        schema.INSERT_PART: [
            {"entry_id": entry_id, "name": name, "digest": part} for name, part in publication.parts.items()
        ],
        schema.INSERT_ENTRY_REFERENCE: [{"entry_id": entry_id, "digest": other} for other in sorted(others)],
    }
    for insert, belonging in rows.items():
        if belonging:
            connection.execute(insert, belonging)


def _row_of(entry: Entry) -> dict[str, object]:
    row = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    return {**row, "seconds": json.dumps(dict(entry.seconds), sort_keys=True)}


def entry_of(row: Any) -> Entry:
    """Return the entry that a row of the columns of `schema.SELECT_ENTRIES` holds; raises sqlite3.DataError."""
    values = dict(row._mapping)
    try:
        seconds = json.loads(values["seconds"])
        return Entry(**{**values, "seconds": {str(step): float(cost) for step, cost in seconds.items()}})
    except (TypeError, ValueError, AttributeError) as error:
        raise sqlite3.DataError(f"reading the index: a row is not what was written ({error})") from error


def _reference_row(entry_id: int, reference: Reference) -> dict[str, object]:
    blob = bytes.fromhex(reference.digest)
    return {"entry_id": entry_id, "name": reference.name, "blob": blob, "size": reference.size}
