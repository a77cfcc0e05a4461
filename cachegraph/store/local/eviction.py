"""Eviction: what a put takes out so that the cache stays within its limit, in the transaction of the put itself.

The policy is GreedyDual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency
Caching Policy", HP Laboratories HPL-98-69, 1998), with the seconds that a use saves as the cost:

    worth = clock + (uses + 1) * (build seconds - load seconds) / bytes

The clock rises to the worth of whatever is evicted, and an entry takes the clock of its last use along, so what is used
no more is overtaken, however much it once saved. An entry that another refers to is not evicted before that one: a
function without one of its kernels is no hit. The index of the least worth and the books are kept by the database
(migrations/0003_eviction.sql), so a put looks at what it evicts and at nothing else. A hit takes no part in it: uses are
written when a process ends.

The limit holds at each commit, for what sizes.py says that a store holds. A limit that is smaller than a function with all
that it refers to is exceeded by that function.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, NamedTuple

from cachegraph.store.local.blobs import BlobFile
from cachegraph.store.shared.files import remove_file
from cachegraph.store.shared.publication import forget, remove
from cachegraph.store.sizes import bytes_held
from cachegraph.units import format_size

if TYPE_CHECKING:
    from cachegraph.store.local.store import LocalStore

GRACE_SECONDS = 3600.0
MOST_EVICTED = 256
"""Of one put. A limit that was lowered is reached over several puts, or by pruning."""

WORTH = (
    "clock + (uses + 1) * max(build_seconds - load_seconds, 0.0) / "
    "(max(stored_size, payload_size) + blob_size + 1)"
)
"""As above. SQLite uses the index on it only for the expression that the migration has."""

SELECT_LEAST_WORTH = f"""
    SELECT digest, {WORTH} FROM entry
    WHERE referrers = 0 AND digest != ? ORDER BY {WORTH} LIMIT ?
"""
_SELECT_BLOBS_OF = """
    SELECT DISTINCT blob FROM blob_reference JOIN entry ON entry.id = entry_id WHERE digest = ?
"""
_SELECT_REFERENCE_TO = "SELECT 1 FROM blob_reference WHERE blob = ? LIMIT 1"
_ADVANCE_CLOCK = "UPDATE eviction SET clock = max(clock, ?)"
_AT_ONCE = 16


class _Victim(NamedTuple):
    digest: bytes
    worth: float


class Eviction:
    """What the put of the entry `spared` evicts, which itself stays, so that at most `limit` bytes are held (0: no limit).

    `freed` are the digests (hex) of the blobs that nothing refers to any more.
    """

    def __init__(self, limit: int, spared: bytes) -> None:
        self.limit = limit
        self.spared = spared
        self.evicted = 0
        self.freed: list[str] = []

    def make_room(self, connection: sqlite3.Connection) -> None:
        """Evict the least worth first, and no more than there is too much, in the transaction of `connection`."""
        while self._is_over(connection):
            victims = self._least_worth(connection)
            if not victims:
                break
            for victim in victims:
                self._evict(connection, victim)
                if not self._is_over(connection):
                    break
        if self.evicted:
            forget(connection)

    def _is_over(self, connection: sqlite3.Connection) -> bool:
        return bool(self.limit) and self.evicted < MOST_EVICTED and bytes_held(connection) > self.limit

    def _least_worth(self, connection: sqlite3.Connection) -> list[_Victim]:
        rows = connection.execute(SELECT_LEAST_WORTH, (self.spared, _AT_ONCE))
        return [_Victim(*row) for row in rows.fetchall()]

    def _evict(self, connection: sqlite3.Connection, victim: _Victim) -> None:
        why = f"to keep {format_size(self.limit)}, as it saved the fewest seconds a byte"
        blobs = connection.execute(_SELECT_BLOBS_OF, (victim.digest,)).fetchall()
        remove(connection, victim.digest, why)
        connection.execute(_ADVANCE_CLOCK, (victim.worth,))
        self.freed += (blob.hex() for (blob,) in blobs if not is_referred_to(connection, blob))
        self.evicted += 1


def remove_freed(store: LocalStore, freed: list[str]) -> None:
    """Remove the blobs `freed` that nothing refers to, and what is left over in one of the 256 directories of blobs.

    Under the write lock, where a writer checks that its blobs are still there. Raises sqlite3.Error and OSError.
    """
    now = time.time()
    directory = store.layout.blobs / os.urandom(1).hex()
    old = [file for file in store.blobs.files_in(directory) if file.changed < now - GRACE_SECONDS]
    with store.database.writing() as connection:
        for digest in freed:
            if not is_referred_to(connection, bytes.fromhex(digest)):
                remove_file(store.layout.blob(digest))
        for file in old:
            remove_unreferenced(connection, file)


def remove_unreferenced(connection: sqlite3.Connection, file: BlobFile) -> int:
    """Remove a file that no entry refers to and nobody has renewed since it was listed; return the bytes freed.

    `connection` holds the write lock. Raises OSError.
    """
    referred = file.digest and is_referred_to(connection, bytes.fromhex(file.digest))
    if referred or not file.is_unchanged() or not remove_file(file.path):
        return 0
    return file.size


def is_referred_to(connection: sqlite3.Connection, blob: bytes) -> bool:
    """Return whether an entry refers to the blob of that digest."""
    return connection.execute(_SELECT_REFERENCE_TO, (blob,)).fetchone() is not None
