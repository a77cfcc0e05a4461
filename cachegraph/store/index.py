"""The rows of the index. A hit is one SELECT through sqlite3; everything else goes through SQLAlchemy Core."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cachegraph.store.activity import Batch
from cachegraph.store.connections import open_for_update
from cachegraph.store.database import Database
from cachegraph.store.entry import Entry

if TYPE_CHECKING:
    import sqlalchemy

FLUSH_TIMEOUT = 0.5
SECONDS_PER_DAY = 86400

_SELECT_RECORD = (
    "SELECT record.content FROM entry JOIN record ON record.entry_id = entry.id WHERE entry.digest = ?"
)
_COUNT_USE = (
    "UPDATE entry SET uses = uses + ?, last_used = max(last_used, ?), load_seconds = ? WHERE digest = ?"
)
_COUNT_ACTIVITY = """
    INSERT INTO activity (day, level, outcome, reason, events, seconds) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (day, level, outcome, reason)
    DO UPDATE SET events = events + excluded.events, seconds = seconds + excluded.seconds
"""


@dataclass(frozen=True, slots=True)
class Reference:
    """A blob an entry refers to: under which name ('' for the payload itself), its digest (hex), its size in bytes."""

    name: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class LevelTotals:
    """What the index holds and has seen at one level."""

    entries: int
    bytes: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class Totals:
    """What the index holds and has seen: by level, misses and bypasses by reason, seconds saved and spent."""

    levels: Mapping[str, LevelTotals]
    misses: Mapping[str, int]
    bypasses: Mapping[str, int]
    seconds_saved: float
    seconds_spent: float


class Index:
    """The rows in `database`. Methods raise sqlite3.Error and OSError; those that list find nothing in no index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, digest: bytes) -> object:
        """Return the stored record of a key, None when there is none; not checked in any way."""
        row = self._database.select_one(_SELECT_RECORD, (digest,))
        return None if row is None else row[0]

    def publish(
        self,
        entry: Entry,
        record: bytes,
        encoding: bytes,
        references: Sequence[Reference],
        may_publish: Callable[[], bool],
    ) -> bool:
        """Put an entry with all that belongs to it in one transaction, unless `may_publish`, asked within it, says no."""
        from cachegraph.store import schema

        with self._database.writing() as connection:
            if not may_publish():
                return False
            connection.execute(schema.UPSERT_ENTRY, _row_of(entry))
            entry_id = connection.execute(schema.SELECT_ENTRY_ID, {"digest": entry.digest}).scalar_one()
            connection.execute(schema.UPSERT_RECORD, {"entry_id": entry_id, "content": record})
            connection.execute(schema.UPSERT_ENCODING, {"entry_id": entry_id, "content": encoding})
            connection.execute(schema.DELETE_REFERENCES, {"entry": entry_id})
            if references:
                connection.execute(schema.INSERT_REFERENCE, [_reference_row(entry_id, one) for one in references])
        return True

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        from cachegraph.store import schema

        return [_entry_of(row) for row in self._rows(schema.SELECT_ENTRIES, {})]

    def find(self, prefix: str) -> list[Entry]:
        """Return the entries whose key starts with `prefix` (lower-case hexadecimal), in order of key."""
        from cachegraph.store import schema

        return [_entry_of(row) for row in self._rows(schema.SELECT_ENTRIES_BY_PREFIX, {"prefix": prefix})]

    def delete(self, digests: Iterable[bytes]) -> int:
        """Remove the entries of these keys in one transaction and return how many there were."""
        from cachegraph.store import schema

        with self._database.writing() as connection:
            return sum(connection.execute(schema.DELETE_ENTRY, {"key": digest}).rowcount for digest in digests)

    def encoding(self, digest: bytes) -> bytes | None:
        """Return the canonical encoding of a key, None when it is not there; raises zlib.error when damaged."""
        from cachegraph.store import schema

        for row in self._rows(schema.SELECT_ENCODING, {"key": digest}):
            return zlib.decompress(row[0])
        return None

    def references(self) -> list[tuple[bytes, Reference]]:
        """Return (key digest, reference) for every reference of every entry."""
        from cachegraph.store import schema

        rows = self._rows(schema.SELECT_REFERENCES, {})
        return [(digest, Reference(name, blob.hex(), size)) for digest, name, blob, size in rows]

    def references_of(self, digest: bytes) -> list[Reference]:
        """Return what one entry refers to, in order of name."""
        from cachegraph.store import schema

        rows = self._rows(schema.SELECT_REFERENCES_OF, {"key": digest})
        return [Reference(name, blob.hex(), size) for _, name, blob, size in rows]

    def totals(self) -> Totals:
        """Return what `stats` shows, from one view of the index."""
        from cachegraph.store import schema

        try:
            with self._database.reading() as connection:
                levels = connection.execute(schema.SELECT_LEVELS).all()
                activity = connection.execute(schema.SELECT_ACTIVITY).all()
        except FileNotFoundError:
            levels, activity = [], []
        return _totals(levels, activity)

    def add(self, batch: Batch) -> bool:
        """Add counts in one transaction through sqlite3, waiting little; return False when there is no index."""
        connection = open_for_update(self._database.path, FLUSH_TIMEOUT)
        if connection is None:
            return False
        day = int(time.time() // SECONDS_PER_DAY)
        uses = [(use.uses, use.last_used, use.load_seconds, digest) for digest, use in batch.uses.items()]
        totals = [(day, *what, total.events, total.seconds) for what, total in batch.totals.items()]
        with closing(connection), connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_COUNT_USE, uses)
            connection.executemany(_COUNT_ACTIVITY, totals)
        return True

    def used_bytes(self) -> int:
        """Return how many bytes of the index file hold something; 0 when there is no index."""
        try:
            with self._database.reading() as connection:
                pages = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                    for name in ("page_count", "freelist_count", "page_size")
                ]
        except FileNotFoundError:
            return 0
        return int((pages[0] - pages[1]) * pages[2])

    def _rows(
        self, statement: sqlalchemy.Select[Any], parameters: dict[str, object]
    ) -> Sequence[sqlalchemy.Row[Any]]:
        try:
            with self._database.reading() as connection:
                return connection.execute(statement, parameters).all()
        except FileNotFoundError:
            return []


def _row_of(entry: Entry) -> dict[str, object]:
    return {**asdict(entry), "seconds": json.dumps(dict(entry.seconds), sort_keys=True)}


def _entry_of(row: sqlalchemy.Row[Any]) -> Entry:
    values = dict(row._mapping)
    try:
        seconds = json.loads(values["seconds"])
        return Entry(**{**values, "seconds": {str(step): float(cost) for step, cost in seconds.items()}})
    except (TypeError, ValueError, AttributeError) as error:
        raise sqlite3.DataError(f"reading the index: a row is not what was written ({error})") from error


def _reference_row(entry_id: int, reference: Reference) -> dict[str, object]:
    blob = bytes.fromhex(reference.digest)
    return {"entry_id": entry_id, "name": reference.name, "blob": blob, "size": reference.size}


def _totals(
    levels: Sequence[sqlalchemy.Row[Any]], activity: Sequence[sqlalchemy.Row[Any]]
) -> Totals:
    from cachegraph.key import LEVELS

    held = {level: (entries, size) for level, entries, size in levels}
    events = {"hit": dict.fromkeys(LEVELS, 0), "miss": dict.fromkeys(LEVELS, 0), "bypass": dict.fromkeys(LEVELS, 0)}
    reasons: dict[str, dict[str, int]] = {"hit": {}, "miss": {}, "bypass": {}}
    seconds = {"hit": 0.0, "miss": 0.0, "bypass": 0.0}
    for level, outcome, reason, count, cost in activity:
        events[outcome][level] = events[outcome].get(level, 0) + count
        reasons[outcome][reason] = reasons[outcome].get(reason, 0) + count
        seconds[outcome] += cost
    by_level = {
        level: LevelTotals(*held.get(level, (0, 0)), events["hit"][level], events["miss"][level]) for level in LEVELS
    }
    return Totals(by_level, reasons["miss"], reasons["bypass"], seconds["hit"], seconds["miss"])
