"""The statements of a warm process: one SELECT for a hit, or for several, and one transaction of counts when
it ends.

Sqlite3 alone. Functions raise sqlite3.Error and OSError.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from cachegraph.key import CacheKey, compressed
from cachegraph.store.activity import SECONDS_PER_DAY, Batch, Missed
from cachegraph.store.entry import LARGEST_ENTRY
from cachegraph.store.local.connections import open_for_update
from cachegraph.store.local.runs import note_run

SelectOne = Callable[[str, tuple[object, ...]], tuple[Any, ...] | None]
"""Runs a statement with its parameters and returns the first row, or None: Database.select_one."""

SelectAll = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]
"""Runs a statement with its parameters and returns every row: Database.select_all."""

MOST_SELECTED = 500
"""Keys in one SELECT; releases of SQLite before 3.32 take 999."""
FLUSH_TIMEOUT = 0.5
MISSES_IN_INDEX = 2000
MISSED_BYTES = 4_000_000
"""Bytes of encodings kept for keys that missed and were not stored.

Of older misses only the reasons are kept.
"""

SELECT_RECORD = (
    "SELECT record.content FROM entry JOIN record ON record.entry_id = entry.id WHERE entry.digest = ?"
)
SELECT_RECORDS = (
    "SELECT entry.digest, record.content FROM entry JOIN record ON record.entry_id = entry.id "
    "WHERE entry.digest IN ({marks})"
)
SELECT_ENTRY_ID = "SELECT id FROM entry WHERE digest = ?"
_COUNT_USE = (
    "UPDATE entry SET uses = uses + ?, last_used = max(last_used, ?), "
    "load_seconds = coalesce(?, load_seconds) WHERE digest = ?"
)
_COUNT_ACTIVITY = """
    INSERT INTO activity (day, level, outcome, reason, events, seconds) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (day, level, outcome, reason)
    DO UPDATE SET events = events + excluded.events, seconds = seconds + excluded.seconds
"""
_KEEP_MISS = """
    INSERT INTO miss (digest, level, missed, reason, detail, encoding) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (digest) DO UPDATE SET missed = excluded.missed, reason = excluded.reason,
    detail = excluded.detail, encoding = excluded.encoding
"""
_FORGET_MISSES = (
    "DELETE FROM miss WHERE missed <= (SELECT missed FROM miss ORDER BY missed DESC LIMIT 1 OFFSET ?)"
)
_FORGET_ENCODINGS = """
    UPDATE miss SET encoding = NULL WHERE encoding IS NOT NULL AND digest IN (
        SELECT digest FROM (
            SELECT digest, sum(length(encoding)) OVER (ORDER BY missed DESC, digest) AS bytes FROM miss
        ) WHERE bytes > ?
    )
"""
_COST_OF_ENTRY = "SELECT build_seconds FROM entry WHERE digest = ?"
_COST_OF_LEVEL = """
    SELECT max(build_seconds)
    FROM (SELECT build_seconds FROM entry WHERE level = ? ORDER BY id DESC LIMIT 100)
"""


def select_record(select_one: SelectOne, digest: bytes) -> object:
    """Return the stored record of a key, unchecked, or None."""
    row = select_one(SELECT_RECORD, (digest,))
    return None if row is None else row[0]


def select_records(select_all: SelectAll, digests: Sequence[bytes]) -> dict[bytes, object]:
    """Return the stored records of those keys that have one, unchecked, by digest."""
    records: dict[bytes, object] = {}
    for first in range(0, len(digests), MOST_SELECTED):
        some = tuple(digests[first : first + MOST_SELECTED])
        records.update(select_all(SELECT_RECORDS.format(marks=", ".join("?" * len(some))), some))
    return records


def has_entry(select_one: SelectOne, digest: bytes) -> bool:
    """Return True if the index has an entry of that key, sound or not."""
    return select_one(SELECT_ENTRY_ID, (digest,)) is not None


def recorded_cost(select_one: SelectOne, key: CacheKey) -> float | None:
    """Return the seconds that building `key` took, or else the longest of the last 100 builds at its level.

    Return None if nothing of that level was built yet.
    """
    of_entry = select_one(_COST_OF_ENTRY, (key.digest,))
    row = of_entry or select_one(_COST_OF_LEVEL, (key.level,))
    return None if row is None or row[0] is None else float(row[0])


def summary_of(select_one: SelectOne, key: CacheKey) -> str:
    """Return the summary of the entry of `key`; empty if there is none."""
    row = select_one("SELECT summary FROM entry WHERE digest = ?", (key.digest,))
    return "" if row is None else str(row[0])


def add_counts(path: Path, batch: Batch) -> bool:
    """Add counts to the index at `path` in one transaction, without waiting long for other writers.

    Return False if there is no index.
    """
    connection = open_for_update(path, FLUSH_TIMEOUT)
    if connection is None:
        return False
    day = int(time.time() // SECONDS_PER_DAY)
    uses = [(use.uses, use.last_used, use.load_seconds, digest) for digest, use in batch.uses.items()]
    totals = [(day, *event, total.events, total.seconds) for event, total in batch.totals.items()]
    with closing(connection), connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_COUNT_USE, uses)
        connection.executemany(_COUNT_ACTIVITY, totals)
        note_run(connection, batch.began)
        for missed in batch.misses.values():
            connection.execute(_KEEP_MISS, _miss_row(connection, missed))
        if batch.misses:
            connection.execute(_FORGET_MISSES, (MISSES_IN_INDEX,))
            connection.execute(_FORGET_ENCODINGS, (MISSED_BYTES,))
    return True


def _miss_row(connection: sqlite3.Connection, missed: Missed) -> tuple[object, ...]:
    key, when, miss = missed
    stored = connection.execute(SELECT_ENTRY_ID, (key.digest,)).fetchone()
    encoding = None if stored else compressed(key, 1)
    if encoding is not None and len(encoding) > LARGEST_ENTRY:
        encoding = None
    return key.digest, key.level, when, miss.reason, miss.detail, encoding
