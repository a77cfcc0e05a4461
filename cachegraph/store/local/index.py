"""The index as a warm process uses it: one SELECT for a hit, one transaction of counts at the end; sqlite3 alone."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

from cachegraph.key import CacheKey, compressed
from cachegraph.store.entry import LARGEST_ENTRY
from cachegraph.store.local.activity import Batch, Missed
from cachegraph.store.local.connections import open_for_update

if TYPE_CHECKING:
    from cachegraph.store.local.database import Database

FLUSH_TIMEOUT = 0.5
SECONDS_PER_DAY = 86400
MISSES_IN_INDEX = 2000
MISSED_BYTES = 4_000_000
"""Of encodings of keys that missed and are not stored; of older misses only the reasons are kept."""

SELECT_RECORD = (
    "SELECT record.content FROM entry JOIN record ON record.entry_id = entry.id WHERE entry.digest = ?"
)
_COUNT_USE = (
    "UPDATE entry SET uses = uses + ?, last_used = max(last_used, ?), load_seconds = coalesce(?, load_seconds) "
    "WHERE digest = ?"
)
_COUNT_ACTIVITY = """
    INSERT INTO activity (day, level, outcome, reason, events, seconds) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (day, level, outcome, reason)
    DO UPDATE SET events = events + excluded.events, seconds = seconds + excluded.seconds
"""


_KEEP_MISS = """
    INSERT INTO miss (digest, level, missed, reason, detail, encoding) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (digest) DO UPDATE SET missed = excluded.missed, reason = excluded.reason, detail = excluded.detail,
    encoding = excluded.encoding
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
_COST_OF_LEVEL = "SELECT max(build_seconds) FROM (SELECT build_seconds FROM entry WHERE level = ? ORDER BY id DESC LIMIT 100)"
_HAS_ENTRY = "SELECT 1 FROM entry WHERE digest = ?"


def select_record(database: Database, digest: bytes) -> object:
    """Return the stored record of a key, None when there is none; not checked in any way.

    Raises sqlite3.Error and OSError.
    """
    row = database.select_one(SELECT_RECORD, (digest,))
    return None if row is None else row[0]


def recorded_cost(database: Database, key: CacheKey) -> float | None:
    """Return the seconds that building `key` took or, where that is not known, the longest of late at its level.

    None where nothing of that level was built yet. Raises sqlite3.Error and OSError.
    """
    row = database.select_one(_COST_OF_ENTRY, (key.digest,)) or database.select_one(
        _COST_OF_LEVEL, (key.level,)
    )
    return None if row is None or row[0] is None else float(row[0])


def add_counts(database: Database, batch: Batch) -> bool:
    """Add counts in one transaction, waiting little for other writers; return False when there is no index.

    Raises sqlite3.Error and OSError.
    """
    connection = open_for_update(database.path, FLUSH_TIMEOUT)
    if connection is None:
        return False
    day = int(time.time() // SECONDS_PER_DAY)
    uses = [(use.uses, use.last_used, use.load_seconds, digest) for digest, use in batch.uses.items()]
    totals = [(day, *what, total.events, total.seconds) for what, total in batch.totals.items()]
    with closing(connection), connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_COUNT_USE, uses)
        connection.executemany(_COUNT_ACTIVITY, totals)
        for missed in batch.misses.values():
            connection.execute(_KEEP_MISS, _miss_row(connection, missed))
        if batch.misses:
            connection.execute(_FORGET_MISSES, (MISSES_IN_INDEX,))
            connection.execute(_FORGET_ENCODINGS, (MISSED_BYTES,))
    return True


def _miss_row(connection: sqlite3.Connection, missed: Missed) -> tuple[object, ...]:
    key, when, miss = missed
    stored = connection.execute(_HAS_ENTRY, (key.digest,)).fetchone()
    encoding = None if stored else compressed(key, 1)
    if encoding is not None and len(encoding) > LARGEST_ENTRY:
        encoding = None
    return key.digest, key.level, when, miss.reason, miss.detail, encoding
