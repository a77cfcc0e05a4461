"""The local store: an index and blobs in one cache directory of this user, on a local file system.

A payload of up to 64 KiB lives in the index, a larger one in a blob; one transaction publishes the entry and the
payload, after its blobs are on the disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.key import CacheKey
from cachegraph.store.claims.claims import Claim
from cachegraph.store.entry import Artifact, Entry, Hit, Miss
from cachegraph.store.failures import miss_of
from cachegraph.store.local.activity import Batch
from cachegraph.store.local.blobs import Blobs
from cachegraph.store.local.connections import WRITE_TIMEOUT, open_for_update
from cachegraph.store.local.database import Database
from cachegraph.store.local.index import add_counts, recorded_cost, select_record
from cachegraph.store.local.miss_reasons import refine
from cachegraph.store.paths import Layout
from cachegraph.store.record import Record, decode
from cachegraph.store.trust import PRIVATE, Guard, Trust

if TYPE_CHECKING:
    from cachegraph.store.local.catalogue import Catalogue


class LocalStore:
    """The store in `directory`, of at most `max_size` bytes (0: no limit; eviction.py). Making one touches nothing."""

    def __init__(self, directory: Path, max_size: int = 0) -> None:
        self.max_size = max_size
        self.layout = Layout(directory)
        self.database = Database(self.layout.index)
        self.guard = Guard(directory, Trust.of(PRIVATE))
        self.blobs = Blobs(self.layout, self.guard)

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key`, checked; never raises. Takes no lock and writes nothing."""
        try:
            found = self._look(key)
            if isinstance(found, Miss) and self.database.renew():
                found = self._look(key)
            if isinstance(found, Miss) and found.reason == "never-seen":
                return refine(self.database, key, found)
            return found
        except Exception as error:  # whatever a damaged index makes SQLite raise
            return miss_of(error)

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Publish `artifact` under `key` at once, replacing what is there; a damaged index is set aside first.

        Raises sqlite3.Error, OSError, and ValueError for what cannot be stored.
        """
        from cachegraph.store.shared.publishing import publish

        publish(self, key, artifact, load_seconds)

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first; raises sqlite3.Error and OSError."""
        return self.catalogue.scan()

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove entries and return how many there were; their blobs stay until they are pruned.

        A later miss says `why`. Raises sqlite3.Error and OSError.
        """
        from cachegraph.store.shared.publication import delete  # no hit needs it

        return delete(self.database, dict.fromkeys(digests, why))

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return what a blob holds, None when it is missing, unreadable or not what was written; never raises."""
        try:
            return self.blobs.read(digest_hex)
        except Exception:  # whatever a damaged file, or a lack of memory, makes it raise
            return None

    def add_counts(self, batch: Batch) -> bool:
        """Add counts to the index if there is one; raises sqlite3.Error and OSError."""
        return add_counts(self.database, batch)

    def set_aside(self, key: CacheKey, payload: bytes) -> Path | None:
        """Keep `payload`, which is not what building `key` gives, for a look; return where, None if that fails."""
        from cachegraph.store.local.quarantine import keep_aside  # only what went wrong needs it

        return keep_aside(self.layout.root, key, payload, self.guard)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return the lock by which the processes of this node let one of them build."""
        from cachegraph.store.claims.node_lock import NodeLock  # only what builds needs it

        return (NodeLock(self.layout.lock(key.hex), self.guard),)

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Return about how many seconds building `key` takes, None where nothing is known; never raises."""
        try:
            return recorded_cost(self.database, key)
        except Exception:  # whatever a damaged index makes SQLite raise
            return None

    def upgrade(self) -> None:
        """Bring an index of an older release up to this one's, if there is one; raises sqlite3.Error and OSError."""
        connection = open_for_update(self.layout.index, WRITE_TIMEOUT)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
        self.database.close()

    @property
    def catalogue(self) -> Catalogue:
        """The rows of the index; asking for it imports SQLAlchemy."""
        from cachegraph.store.local.catalogue import Catalogue

        return Catalogue(self.database)

    def _look(self, key: CacheKey) -> Hit | Miss:
        content = select_record(self.database, key.digest)
        if content is None:
            return Miss("never-seen", "the index has no such key")
        record = decode(content, key)
        if isinstance(record, Record):
            return self._hit(record)
        if record.reason == "damaged":
            self.database.doubt()
        return record

    def _hit(self, record: Record) -> Hit | Miss:
        if record.payload_blob is None:
            return Hit(record.payload, record.blobs, record.seconds)
        try:
            payload = self.blobs.read(record.payload_blob)
        except FileNotFoundError:
            return Miss("damaged", f"the blob {record.payload_blob} of the payload is missing")
        if payload is None:
            return Miss("damaged", f"the blob {record.payload_blob} of the payload does not match its name")
        return Hit(payload, record.blobs, record.seconds)
