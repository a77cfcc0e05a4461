"""The local store: an index and blobs in one cache directory of this user, on a local file system.

A payload of up to 64 KiB is a row of the index, a longer one is a blob. Blobs are written first;
then one transaction publishes the entry.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.fingerprint.source_records import RECORD_SIZE
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.store.activity import Batch
from cachegraph.store.blobs import Blobs
from cachegraph.store.entry import Artifact, Entry, Hit, Miss, NearKey, Origin
from cachegraph.store.failures import miss_of
from cachegraph.store.files import publish_file, read_file
from cachegraph.store.filesystem import file_system
from cachegraph.store.local.connections import WRITE_TIMEOUT, open_for_update
from cachegraph.store.local.database import Database
from cachegraph.store.local.index import add_counts, recorded_cost, select_record, select_records, summary_of
from cachegraph.store.paths import Layout
from cachegraph.store.record import Record, decode
from cachegraph.store.trust import PRIVATE, Guard, Trust

if TYPE_CHECKING:
    from cachegraph.store.local.believed_copies import BelievedCopies
    from cachegraph.store.local.catalogue import Catalogue
    from cachegraph.store.local.eviction import Eviction
    from cachegraph.store.protocol import Claim
    from cachegraph.store.revocation.list_file import Revoked
    from cachegraph.store.revocation.node import NodeRevocations
    from cachegraph.store.use_log.writing import UseLog

_PUT_ATTEMPTS = 3
_LOOKS = 8
"""Times that a key is looked for if forks of this process, one after the other, close the connection."""


class LocalStore:
    """The store in `directory`, which holds at most `max_size` bytes (0: no limit; eviction.py).

    With `signers`, copies of entries that others signed are misses. Creating the object does not access
    the disk. Methods raise sqlite3.Error and OSError unless they say otherwise.
    """

    def __init__(self, directory: Path, max_size: int = 0, signers: Collection[bytes] | None = None) -> None:
        self.max_size = max_size
        self.layout = Layout(directory)
        self.database = Database(self.layout.index)
        self._copies = None if signers is None else self._believed(signers)
        self.guard = Guard(directory, Trust.of(PRIVATE))
        self.blobs = Blobs(self.layout, self.guard)

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key`, or the reason for the miss. Takes no lock, writes nothing."""
        try:
            found = self._look(key)
            for _ in range(_LOOKS - 1):
                if isinstance(found, Hit) or not self.database.renew():
                    break
                found = self._look(key)
            if isinstance(found, Miss) and found.reason == "never-seen":
                from cachegraph.store.local.miss_reasons import refine  # a hit has no use for it

                return refine(self.database, key, found)
            return found
        except Exception as error:  # a damaged index can make SQLite raise anything
            return miss_of(error)

    def get_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `get` returns for each of `keys`, in their order; hits are found by one SELECT.

        A key that is no hit there is looked up by itself: one damaged row can hide all others from a SELECT.
        """
        try:
            digests = [key.digest for key in keys]
            if self._copies is None:
                records = select_records(self.database.select_all, digests)
            else:
                records = self._copies.records(digests)
        except Exception:  # as in get, which finds the keys that it concerns
            records = {}
        return [self._sound_hit(key, records.get(key.digest)) or self.get(key) for key in keys]

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        """Publish `artifact` under `key` in one step, replacing the old entry; first replace a damaged index.

        A copy of a shared entry has its `origin`. Raises sqlite3.Error, OSError, and ValueError if the
        artifact cannot be stored.
        """
        self._refuse_too_large(key, artifact)
        for attempt in range(_PUT_ATTEMPTS):
            try:
                if self._publish(key, artifact, load_seconds, origin):
                    return
            except Exception as error:
                if attempt == _PUT_ATTEMPTS - 1 or not self.database.heals(error):
                    raise
        raise OSError(f"storing {key.hex}: its blobs were removed {_PUT_ATTEMPTS} times during publication")

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        return self.catalogue.scan()

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove entries and return how many there were; their blobs stay until they are pruned.

        A later miss gives `why` as its reason.
        """
        from cachegraph.store.local.eviction import delete  # a hit does not need it

        return delete(self.database, dict.fromkeys(digests, why))

    def origin(self, key_digest: bytes) -> Origin | None:
        """Return where a copy came from; None for what was built here, or came unsigned."""
        from cachegraph.store.local.origins import origin_of  # exports need it, no hit

        has_origins = self.database.has_table("origin")
        return origin_of(self.database.select_one, key_digest) if has_origins else None

    def revocations(self) -> NodeRevocations:
        """Return the record of what was done about revocation lists here. Opens nothing."""
        from cachegraph.store.local.origins import REVOKED, revoked_entries  # only signed tiers need it
        from cachegraph.store.revocation.node import NodeRevocations

        def sweep(revoked: Revoked) -> int:
            self.upgrade()
            doomed = revoked_entries(self.database.select_all, self.database.select_one, revoked)
            return self.delete(doomed, REVOKED) if doomed else 0

        return NodeRevocations(self.layout.revocations, self.guard, sweep)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the content of a blob, or None if it is missing, unreadable or damaged. Never raises."""
        try:
            return self.blobs.read(digest_hex)
        except Exception:  # a damaged file, or lack of memory, can raise anything
            return None

    def add_counts(self, batch: Batch) -> bool:
        """Add counts to the index and to the use log; return False if there is no index."""
        if not add_counts(self.layout.index, batch):
            return False
        from cachegraph.store.use_log.blocks import encode_block

        self.use_log.append(encode_block(batch))
        return True

    @property
    def use_log(self) -> UseLog:
        """Return the log of uses. Opens nothing."""
        from cachegraph.store.use_log.writing import UseLog  # the end of a process needs it, no hit

        return UseLog(self.layout.uses, self.guard)

    def use_logs(self) -> Iterator[bytes]:
        """Yield the content of the use log."""
        yield self.use_log.content()

    def read_source_record(self, name: str) -> bytes | None:
        """Return the record of a directory of source, or None if it is missing, or not trusted. Never
        raises."""
        try:
            return read_file(self.layout.sources / name, self.guard, RECORD_SIZE)
        except OSError:
            return None

    def write_source_record(self, name: str, content: bytes) -> None:
        """Replace the record of a directory of source. Raises OSError."""
        publish_file(self.layout.sources / name, content, self.guard)

    def write_module_code(self, name: str, content: bytes) -> None:
        """Replace the bytecode of the modules of a hit (hit_modules.py). Raises OSError, also if the cache
        was removed meanwhile."""
        os.stat(self.layout.root)
        publish_file(self.layout.modules / name, content, self.guard)

    def tells_changes(self, directory: str) -> bool:
        """Return True if the file system of `directory` keeps times of change that nobody can set."""
        return file_system(Path(directory)).keeps_change_times

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        """Keep `payload`, which differs from a fresh build, for inspection; return its path, or None."""
        from cachegraph.store.quarantine import quarantine_payload  # rarely needed

        return quarantine_payload(self.layout.root, key, payload, self.guard)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return the lock that lets one process of this node build."""
        from cachegraph.store.claims.node_lock import NodeLock  # only a build needs it

        return (NodeLock(self.layout.lock(key.hex), self.guard),)

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Estimate the seconds that building `key` takes; None if nothing is recorded. Never raises."""
        try:
            return recorded_cost(self.database.select_one, key)
        except Exception:  # a damaged index can make SQLite raise anything
            return None

    def summary(self, key: CacheKey) -> str:
        """Return what the entry of `key` says of itself for people; empty if it is unknown. Never raises."""
        try:
            return summary_of(self.database.select_one, key)
        except Exception:  # a damaged index can make SQLite raise anything
            return ""

    def nearest_keys(self, key: CacheKey, before: float, most: int) -> Sequence[NearKey]:
        """Return up to `most` keys of the same level that share the most parts with `key`.

        Returns only keys stored up to `before`.
        """
        from cachegraph.store.local.miss_reasons import nearest_keys

        return nearest_keys(self.database, key, before, most)

    def upgrade(self) -> None:
        """Migrate an index of an older release, if there is one."""
        connection = open_for_update(self.layout.index, WRITE_TIMEOUT)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
        self.database.close()

    @property
    def catalogue(self) -> Catalogue:
        """Return the listing of the index. Imports SQLAlchemy."""
        from cachegraph.store.local.catalogue import Catalogue

        return Catalogue(self.database)

    def _believed(self, signers: Collection[bytes]) -> BelievedCopies:
        from cachegraph.store.local.believed_copies import BelievedCopies  # most users name no signers

        return BelievedCopies(self.database, signers)

    def _look(self, key: CacheKey) -> Hit | Miss:
        if self._copies is None:
            content = select_record(self.database.select_one, key.digest)
        else:
            content = self._copies.record(key.digest)
        if content is None:
            return Miss("never-seen", "the index has no such key")
        record = decode(content, key)
        if isinstance(record, Record):
            return record.hit(self.blobs.read)
        if record.reason == "damaged":
            self.database.doubt()
        return record

    def _sound_hit(self, key: CacheKey, content: object) -> Hit | None:
        """Return the hit of `key` in its stored record, or None for any miss. Never raises."""
        try:
            record = decode(content, key)
            found = record.hit(self.blobs.read) if isinstance(record, Record) else record
        except Exception:  # as in get
            return None
        return found if isinstance(found, Hit) else None

    def _refuse_too_large(self, key: CacheKey, artifact: Artifact) -> None:
        """Raise ValueError for an artifact larger than the limit: everything else would be evicted for it."""
        size = len(artifact.payload) + sum(map(len, artifact.blobs.values()))
        if self.max_size and size > self.max_size:
            raise ValueError(
                f"storing {key.hex}: it has {size} bytes, and the cache may hold {self.max_size}; "
                "raise CACHEGRAPH_MAX_SIZE"
            )

    def _publish(self, key: CacheKey, artifact: Artifact, load_seconds: float, origin: Origin | None) -> bool:
        """Write an entry and evict others for it; return False if its blobs were removed meanwhile."""
        from cachegraph.store.local.eviction import Eviction  # a hit needs none of it
        from cachegraph.store.local.publication import prepare, write

        publication = prepare(key, artifact, load_seconds, self.blobs, origin)
        eviction = Eviction(self.max_size, key.digest)
        with self.database.writing() as connection:
            # Pruning removes blobs under the same write lock, so a blob that exists now stays.
            if not all(self.blobs.exists(blob.digest) for blob in publication.blobs):
                return False
            write(connection, publication)
            eviction.make_room(connection)
        if eviction.evicted:
            self._remove_freed(eviction)
        return True

    def _remove_freed(self, eviction: Eviction) -> None:
        """Remove the blobs of evicted entries. A failure is only logged: the put has already succeeded."""
        from cachegraph.store.local.eviction import remove_freed

        try:
            remove_freed(self.database, self.blobs, eviction.freed)
        except (sqlite3.Error, OSError) as error:
            logger("cachegraph").debug(
                "removing evicted blobs in %s failed, so pruning will: %s", self.layout.blobs, error
            )
