"""Listing the index for the commands. Compiling processes do not import this module."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import ALL_LEVELS, BlobReference, Entry, check_entry
from cachegraph.store.local import queries
from cachegraph.store.local.database import Database


class KeptMiss(NamedTuple):
    """A remembered miss: its time (seconds since 1970), and its key unless that is stored."""

    digest: bytes
    level: str
    missed: float
    reason: str
    detail: str
    encoding: bytes | None


_DIGITS = 32  # of a key
_ENTRY_FIELDS = queries.ENTRY_COLUMNS.split(", ")


class Catalogue:
    """The rows of `database`. Methods raise sqlite3.Error and OSError; without an index they find none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        return [entry_of(row) for row in self._rows(queries.SELECT_ENTRIES, {})]

    def listed(
        self, order: str, most: int | None, unreadable: Callable[[str], None], levels: str = ALL_LEVELS
    ) -> Iterator[Entry]:
        """Yield the first `most` entries (None: all) of `levels` in `order`, a name in queries.SELECT_LISTED.

        Rows are read on demand. `unreadable` is called with the fault of each damaged row, which is
        skipped.
        """
        try:
            with self._database.reading() as connection:
                given = {"levels": levels, "most": -1 if most is None else most}
                for row in connection.execute(queries.SELECT_LISTED[order], given):
                    try:
                        entry = entry_of(row)
                    except sqlite3.DataError as error:
                        unreadable(str(error))
                        continue
                    yield entry
        except FileNotFoundError:
            return

    def made_since(self, since: float, most: int) -> tuple[set[bytes], list[Entry]]:
        """Return the key digests of the entries made since, and the `most` that took longest to build."""
        digests = {digest for (digest,) in self._rows(queries.SELECT_MADE_SINCE, {"since": since})}
        return digests, self._sound(queries.SELECT_LONGEST_MADE_SINCE, {"since": since, "most": most})

    def used_since(self, since: float, most: int) -> tuple[int, list[Entry]]:
        """Return how many entries were used since then, and the `most` that took longest to load."""
        counts = [count for (count,) in self._rows(queries.COUNT_USED_SINCE, {"since": since})]
        return sum(counts), self._sound(queries.SELECT_LONGEST_USED_SINCE, {"since": since, "most": most})

    def costs(self) -> Iterator[tuple[bytes, int, float]]:
        """Yield the key digest of every entry, its size, and the seconds that a hit saves.

        Much faster than entries, and in no memory. Raises sqlite3.DataError for a row that says nonsense.
        """
        try:
            with self._database.reading() as connection:
                for digest, size, built, loaded in connection.execute(queries.SELECT_COSTS):
                    types = type(digest), type(size), type(built), type(loaded)
                    if types != (bytes, int, float, float) or not isfinite(built - loaded):
                        raise sqlite3.DataError(f"reading the index: {size!r} bytes took {built!r} seconds")
                    yield digest, size, built - loaded
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
        return [entry_of(row) for row in self._rows(queries.SELECT_ENTRIES_BETWEEN, {**bounds, "most": most})]

    def encoding(self, digest: bytes) -> bytes | None:
        """Return the stored encoding of a key, compressed with zlib, or None."""
        for row in self._rows(queries.SELECT_ENCODING, {"key": digest}):
            return bytes(row[0])
        return None

    def references_of(self, digest: bytes) -> list[BlobReference]:
        """Return the blob references of one entry, in order of name."""
        rows = self._rows(queries.SELECT_REFERENCES_OF, {"key": digest})
        return [BlobReference(name, blob.hex(), size) for name, blob, size in rows]

    def misses(self, most: int) -> list[KeptMiss]:
        """Return the latest misses, those of functions first; an index of an older release may have none."""
        return self._misses(queries.SELECT_MISSES, {"most": most})

    def find_misses(self, prefix: str) -> list[KeptMiss]:
        """Return the remembered misses of keys that start with `prefix` (lower-case hexadecimal)."""
        return self._misses(queries.SELECT_MISSES_BY_PREFIX, {"prefix": prefix})

    def entry_references_of(self, digest: bytes) -> list[bytes]:
        """Return the key digests of the entries that one entry refers to."""
        if not self._database.has_table("reference"):
            return []
        return [other for _, other in self._rows(queries.SELECT_ENTRY_REFERENCES_OF, {"key": digest})]

    def entry_references(self) -> list[tuple[bytes, bytes]]:
        """Return (key digest, key digest of an entry it refers to, there or not) for every such reference."""
        return [(digest, other) for digest, other in self._rows(queries.SELECT_ENTRY_REFERENCES, {})]

    def _misses(self, statement: str, parameters: Mapping[str, object]) -> list[KeptMiss]:
        if not self._database.has_table("miss"):
            return []
        return [KeptMiss(*row) for row in self._rows(statement, parameters)]

    def _sound(self, statement: str, parameters: Mapping[str, object]) -> list[Entry]:
        """Return the entries of those rows that are what was written."""
        found = []
        for row in self._rows(statement, parameters):
            with suppress(sqlite3.DataError):
                found.append(entry_of(row))
        return found

    def _rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
        try:
            with self._database.reading() as connection:
                return connection.execute(statement, parameters).fetchall()
        except FileNotFoundError:
            return []


def entry_of(row: Sequence[Any]) -> Entry:
    """Return the entry in a row of ENTRY_COLUMNS. Raises sqlite3.DataError."""
    values = dict(zip(_ENTRY_FIELDS, row, strict=True))
    try:
        seconds = json.loads(values["seconds"])
        entry = Entry(**{**values, "seconds": {str(step): float(cost) for step, cost in seconds.items()}})
        check_entry(entry)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise sqlite3.DataError(f"reading the index: a row is not what was written ({error})") from error
    return entry
