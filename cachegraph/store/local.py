"""The local store: an index and blobs in one cache directory on a local file system.

A payload of up to 64 KiB lives in the index, a larger one in a blob; one transaction publishes the entry and the
payload, after its blobs are on the disk.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from pathlib import Path

from cachegraph.key import CacheKey
from cachegraph.store import record
from cachegraph.store.activity import Batch
from cachegraph.store.blobs import Blobs
from cachegraph.store.database import Database
from cachegraph.store.entry import Artifact, Entry, Hit, Miss
from cachegraph.store.failures import miss_reason
from cachegraph.store.index import Index, Reference
from cachegraph.store.paths import Layout

INLINE_LIMIT = 64 * 1024
PAYLOAD = ""

_ATTEMPTS = 3


class LocalStore:
    """The store in `directory`. Making one touches nothing."""

    def __init__(self, directory: Path) -> None:
        self.layout = Layout(directory)
        self.database = Database(self.layout.index)
        self.index = Index(self.database)
        self.blobs = Blobs(self.layout)

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key`, checked; never raises. Takes no lock and writes nothing."""
        try:
            content = self.index.record(key.digest)
            if content is None:
                return Miss("never-seen", "the index has no such key")
            found = record.decode(content, key)
            if isinstance(found, Miss):
                return found
            payload = found.payload
            if found.payload_blob is not None:
                return self._with_blob(found)
            return Hit(payload, found.blobs, found.seconds)
        except Exception as error:  # whatever a damaged store makes SQLite or the record's reader raise
            return Miss(miss_reason(error), f"{type(error).__name__}: {error}")

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Publish `artifact` under `key` at once, replacing what is there.

        A damaged index is set aside first. Raises sqlite3.Error, OSError, and ValueError for what cannot be stored.
        """
        for attempt in range(_ATTEMPTS):
            try:
                if self._publish(key, artifact, load_seconds):
                    return
            except Exception as error:
                if attempt == _ATTEMPTS - 1 or not self.database.heals(error):
                    raise
        raise OSError(f"storing {key.hex}: its blobs were removed {_ATTEMPTS} times while it was published")

    def scan(self) -> list[Entry]:
        """Return every entry, the least recently used first; raises sqlite3.Error and OSError."""
        return self.index.scan()

    def delete(self, digests: Iterable[bytes]) -> int:
        """Remove entries and return how many there were; their blobs stay until they are pruned.

        Raises sqlite3.Error and OSError.
        """
        return self.index.delete(digests)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return what a blob holds, None when it is missing, unreadable or not what was written; never raises."""
        try:
            return self.blobs.read(digest_hex)
        except (OSError, ValueError):
            return None

    def add_activity(self, batch: Batch) -> bool:
        """Add counts to the index if there is one; raises sqlite3.Error and OSError."""
        return self.index.add(batch)

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
        self.database.close()

    def _with_blob(self, found: record.Record) -> Hit | Miss:
        digest_hex = found.payload_blob or ""
        try:
            payload = self.blobs.read(digest_hex)
        except FileNotFoundError:
            return Miss("damaged", f"the blob {digest_hex} of the payload is missing")
        if payload is None:
            return Miss("damaged", f"the blob {digest_hex} of the payload does not match its name")
        return Hit(payload, found.blobs, found.seconds)

    def _publish(self, key: CacheKey, artifact: Artifact, load_seconds: float) -> bool:
        payload = self._payload_reference(artifact.payload)
        named = [self._named_reference(name, content) for name, content in artifact.blobs.items()]
        references = [*payload, *named]
        content = record.encode(
            key,
            record.Record(
                b"" if payload else artifact.payload,
                payload[0].digest if payload else None,
                {reference.name: reference.digest for reference in named},
                artifact.seconds,
            ),
        )
        encoding = zlib.compress(key.encoding)
        blob_size = sum(reference.size for reference in named)
        entry = _describe(key, artifact, blob_size, len(content) + len(encoding), load_seconds)
        return self.index.publish(entry, content, encoding, references, lambda: self._all_exist(references))

    def _payload_reference(self, payload: bytes) -> list[Reference]:
        if len(payload) <= INLINE_LIMIT:
            return []
        return [Reference(PAYLOAD, self.blobs.write(payload), len(payload))]

    def _named_reference(self, name: str, content: bytes) -> Reference:
        if name == PAYLOAD:
            raise ValueError("storing an artifact: a blob has the empty name, which is the payload's; name it")
        return Reference(name, self.blobs.write(content), len(content))

    def _all_exist(self, references: list[Reference]) -> bool:
        """Asked while holding the write lock that pruning also takes: what exists now stays."""
        return all(self.blobs.exists(reference.digest) for reference in references)


def _describe(
    key: CacheKey, artifact: Artifact, blob_size: int, stored_size: int, load_seconds: float
) -> Entry:
    from cachegraph import __version__

    now = time.time()
    return Entry(
        digest=key.digest,
        level=key.level,
        format=record.RECORD_FORMAT,
        payload_size=len(artifact.payload),
        blob_size=blob_size,
        stored_size=stored_size,
        seconds=artifact.seconds,
        build_seconds=sum(artifact.seconds.values()),
        load_seconds=load_seconds,
        created=now,
        last_used=now,
        uses=0,
        summary=artifact.summary,
        version=__version__,
    )
