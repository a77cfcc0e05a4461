"""Listing the index for the commands, through SQLAlchemy. Compiling processes do not import this module."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Select

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import ALL_LEVELS, BlobReference, Entry, check_entry
from cachegraph.store.local import schema
from cachegraph.store.local.database import Database


class KeptMiss(NamedTuple):
    """A remembered miss: its time (seconds since 1970), and its key unless that is stored."""

    digest: bytes
    level: str
    missed: float
    reason: str
    detail: str
    encoding: bytes | None


_ROWS_AT_ONCE = 500
_DIGITS = 32  # of a key


class Catalogue:
    """The rows of `database`. Methods raise sqlite3.Error and OSError; without an index they find none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        return [entry_of(row) for row in self._rows(schema.SELECT_ENTRIES, {})]

    def listed(
        self, order: str, most: int | None, unreadable: Callable[[str], None], levels: str = ALL_LEVELS
    ) -> Iterator[Entry]:
        """Yield the first `most` entries (None: all) of `levels` in `order`, a name in schema.ORDERS.

        Rows are read on demand. `unreadable` is called with the fault of each damaged row, which is
        skipped.
        """
        try:
            with self._database.reading() as connection:
                streamed = connection.execution_options(yield_per=_ROWS_AT_ONCE)
                given = {"levels": levels, "most": -1 if most is None else most}
                for row in streamed.execute(schema.SELECT_LISTED[order], given):
                    try:
                        entry = entry_of(row)
                    except sqlite3.DataError as error:
                        unreadable(str(error))
                        continue
                    yield entry
        except FileNotFoundError:
            return

    def find(self, prefix: str, most: int | None = None) -> list[Entry]:
        """Return entries whose key starts with `prefix` (lower-case hexadecimal digits), in order of key."""
        if len(prefix) > _DIGITS:
            return []
        bounds = {
            "first": bytes.fromhex(prefix.ljust(_DIGITS, "0")),
            "last": bytes.fromhex(prefix.ljust(_DIGITS, "f")),
        }
        most = -1 if most is None else most
        return [entry_of(row) for row in self._rows(schema.SELECT_ENTRIES_BETWEEN, {**bounds, "most": most})]

    def encoding(self, digest: bytes) -> bytes | None:
        """Return the stored encoding of a key, compressed with zlib, or None."""
        for row in self._rows(schema.SELECT_ENCODING, {"key": digest}):
            return bytes(row[0])
        return None

    def references_of(self, digest: bytes) -> list[BlobReference]:
        """Return the blob references of one entry, in order of name."""
        rows = self._rows(schema.SELECT_REFERENCES_OF, {"key": digest})
        return [BlobReference(name, blob.hex(), size) for name, blob, size in rows]

    def misses(self, most: int) -> list[KeptMiss]:
        """Return the latest misses, those of functions first; an index of an older release may have none."""
        return self._misses(schema.SELECT_MISSES, {"most": most})

    def find_misses(self, prefix: str) -> list[KeptMiss]:
        """Return the remembered misses of keys that start with `prefix` (lower-case hexadecimal)."""
        return self._misses(schema.SELECT_MISSES_BY_PREFIX, {"prefix": prefix})

    def entry_references_of(self, digest: bytes) -> list[bytes]:
        """Return the key digests of the entries that one entry refers to."""
        if not self._database.has_table("reference"):
            return []
        return [other for _, other in self._rows(schema.SELECT_ENTRY_REFERENCES_OF, {"key": digest})]

    def entry_references(self) -> list[tuple[bytes, bytes]]:
        """Return (key digest, key digest of an entry it refers to, there or not) for every such reference."""
        return [(digest, other) for digest, other in self._rows(schema.SELECT_ENTRY_REFERENCES, {})]

    def _misses(self, statement: Select[*tuple[Any, ...]], parameters: dict[str, object]) -> list[KeptMiss]:
        if not self._database.has_table("miss"):
            return []
        return [KeptMiss(**row._mapping) for row in self._rows(statement, parameters)]

    def _rows(self, statement: Select[*tuple[Any, ...]], parameters: dict[str, object]) -> Sequence[Any]:
        try:
            with self._database.reading() as connection:
                return connection.execute(statement, parameters).all()
        except FileNotFoundError:
            return []


def entry_of(row: Any) -> Entry:
    """Return the entry in a row with the columns of `schema.SELECT_ENTRIES`. Raises sqlite3.DataError."""
    values = dict(row._mapping)
    try:
        seconds = json.loads(values["seconds"])
        entry = Entry(**{**values, "seconds": {str(step): float(cost) for step, cost in seconds.items()}})
        check_entry(entry)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise sqlite3.DataError(f"reading the index: a row is not what was written ({error})") from error
    return entry
