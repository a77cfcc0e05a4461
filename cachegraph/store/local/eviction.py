"""Removing entries: on request, and by eviction, which keeps the cache within its limit.

Each put evicts in its own transaction. The policy is GreedyDual-Size-Frequency (L. Cherkasova,
"Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Laboratories
HPL-98-69, 1998); the cost is the time that a use saves:

    worth = clock + (uses + 1) * (build seconds - load seconds) / bytes

The entry of least worth is evicted first, and the clock rises to its worth. An entry keeps the
clock of its last use, so newer entries overtake one that is no longer used, however much time it
once saved. An entry that another refers to is not evicted before that one, because a function
without one of its kernels is no hit.

The database keeps an index by worth and the sums (migrations/0003_eviction.sql), so a put reads
only what it evicts. A hit does nothing for it: uses are written when a process ends. The limit
holds at each commit for the bytes that sizes.py defines; only a function that exceeds it alone,
with all that it refers to, is kept nevertheless. Functions raise sqlite3.Error and OSError.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.blobs import BlobFile, Blobs
from cachegraph.store.files import remove_file
from cachegraph.store.local.sizes import WORTH, bytes_held
from cachegraph.units import format_size

if TYPE_CHECKING:
    from cachegraph.store.local.database import Database

GRACE_SECONDS = 3600.0
MOST_EVICTED = 256
"""Entries evicted by one put. After the limit was lowered, several puts, or pruning, reach it."""
EVICTED_KEPT = 10_000
"""Removed entries that the index remembers, so that a later miss can say why."""

SELECT_LEAST_WORTH = f"""
    SELECT digest, {WORTH} FROM entry
    WHERE referrers = 0 AND digest != ? ORDER BY {WORTH} LIMIT ?
"""
_SELECT_BLOBS_OF = """
    SELECT DISTINCT blob FROM blob_reference JOIN entry ON entry.id = entry_id WHERE digest = ?
"""
_SELECT_REFERENCE_TO = "SELECT 1 FROM blob_reference WHERE blob = ? LIMIT 1"
_ADVANCE_CLOCK = "UPDATE eviction SET clock = max(clock, ?)"
_REMEMBER = """
    INSERT OR REPLACE INTO evicted (digest, level, evicted, why)
    SELECT digest, level, ?, ? FROM entry WHERE digest = ?
"""
_DELETE_ENTRY = "DELETE FROM entry WHERE digest = ?"
# The last removal has the highest rowid, even if it replaced another row, so nothing need be counted.
_FORGET = "DELETE FROM evicted WHERE rowid <= (SELECT max(rowid) FROM evicted) - ?"
_AT_ONCE = 16


class _LeastWorth(NamedTuple):
    digest: bytes
    worth: float


class Eviction:
    """The eviction by one put, down to `limit` bytes (0: no limit).

    It spares the new entry, whose key digest is `spared`. `freed` are the digests (hexadecimal) of
    blobs to which no entry refers any more.
    """

    def __init__(self, limit: int, spared: bytes) -> None:
        self.limit = limit
        self.spared = spared
        self.evicted = 0
        self.freed: list[str] = []

    def make_room(self, connection: sqlite3.Connection) -> None:
        """Evict the entries of least worth until the limit holds, in the transaction of `connection`."""
        while self._is_over(connection):
            least = self._least_worth(connection)
            if not least:
                break
            for entry in least:
                self._evict(connection, entry)
                if not self._is_over(connection):
                    break
        if self.evicted:
            _forget_oldest(connection)

    def _is_over(self, connection: sqlite3.Connection) -> bool:
        return bool(self.limit) and self.evicted < MOST_EVICTED and bytes_held(connection) > self.limit

    def _least_worth(self, connection: sqlite3.Connection) -> list[_LeastWorth]:
        rows = connection.execute(SELECT_LEAST_WORTH, (self.spared, _AT_ONCE))
        return [_LeastWorth(*row) for row in rows.fetchall()]

    def _evict(self, connection: sqlite3.Connection, entry: _LeastWorth) -> None:
        why = f"to keep {format_size(self.limit)}, as it saved the least time per byte"
        blobs = connection.execute(_SELECT_BLOBS_OF, (entry.digest,)).fetchall()
        _remove(connection, entry.digest, why)
        connection.execute(_ADVANCE_CLOCK, (entry.worth,))
        self.freed += (blob.hex() for (blob,) in blobs if not is_referred_to(connection, blob))
        self.evicted += 1


def delete(database: Database, reasons: Mapping[bytes, str]) -> int:
    """Remove entries (key digest -> reason) in one transaction and return how many there were.

    The index remembers the reasons of the latest EVICTED_KEPT removals.
    """
    with database.writing() as connection:
        removed = sum(_remove(connection, digest, why) for digest, why in reasons.items())
        _forget_oldest(connection)
        return removed


def remove_damaged(connection: sqlite3.Connection, digest: bytes) -> int:
    """Remove an entry without remembering it; return how many there were, 0 or 1."""
    return connection.execute(_DELETE_ENTRY, (digest,)).rowcount


def remove_freed(database: Database, blobs: Blobs, freed: list[str]) -> None:
    """Remove the blobs `freed` that no entry refers to, and leftovers in one random directory.

    Works under the write lock, under which a writer checks that its blobs still exist. Raises
    sqlite3.Error and OSError.
    """
    now = time.time()
    directory = blobs.layout.blobs / os.urandom(1).hex()
    old = [file for file in blobs.files_in(directory) if file.changed < now - GRACE_SECONDS]
    with database.writing() as connection:
        for digest in freed:
            if not is_referred_to(connection, bytes.fromhex(digest)):
                remove_file(blobs.layout.blob(digest))
        for file in old:
            remove_unreferenced(connection, file)


def remove_unreferenced(connection: sqlite3.Connection, file: BlobFile) -> int:
    """Remove a file unless an entry refers to it or it was renewed since it was listed; return its bytes.

    `connection` must hold the write lock.
    """
    referred = file.digest and is_referred_to(connection, bytes.fromhex(file.digest))
    if referred or not file.is_unchanged() or not remove_file(file.path):
        return 0
    return file.size


def _remove(connection: sqlite3.Connection, digest: bytes, why: str) -> int:
    """Remove an entry and remember `why`; return how many there were, 0 or 1."""
    connection.execute(_REMEMBER, (time.time(), why, digest))
    return remove_damaged(connection, digest)


def _forget_oldest(connection: sqlite3.Connection) -> None:
    connection.execute(_FORGET, (EVICTED_KEPT,))


def is_referred_to(connection: sqlite3.Connection, blob: bytes) -> bool:
    """Return True if an entry refers to the blob of that digest."""
    return connection.execute(_SELECT_REFERENCE_TO, (blob,)).fetchone() is not None
