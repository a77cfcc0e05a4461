"""The shared store: a directory of immutable files that any number of hosts read and write without a lock.

Blobs first, the entry last; who loses a race has replaced one whole file by another. Every read is checksummed, and what
cannot be read is a miss: that is all it needs of a file system, so it works on NFS, Lustre, sshfs and the like.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachegraph.key import CacheKey
from cachegraph.store.claims.claims import Claim
from cachegraph.store.entry import LARGEST_ENTRY, Artifact, Entry, Hit, Miss, Reference
from cachegraph.store.failures import miss_of
from cachegraph.store.local.blobs import Blobs
from cachegraph.store.paths import SharedLayout, file_size, is_key
from cachegraph.store.record import Record
from cachegraph.store.shared.entry_file import (
    read_description,
    read_record,
    signature_fault,
    write_entry,
)
from cachegraph.store.shared.files import publish_file, read_file, read_network_file, remove_file
from cachegraph.store.shared.publishing import describe, make_record, refuse_oversized, write_blobs
from cachegraph.store.signing import sign
from cachegraph.store.trust import PRIVATE, Guard, Trust, Untrusted

if TYPE_CHECKING:
    from cachegraph.store.shared.near_blobs import NearBlobs

RENEWED_SECONDS = 86400.0
"""How long a file is not touched again after somebody has read it."""


class StoredFile(NamedTuple):
    """What a file says of its entry, whose `last_used` is when anybody last wrote or renewed it: the blobs, the key
    digests of the entries it refers to, and the compressed encoding of its key."""

    entry: Entry
    blobs: list[Reference]
    references: tuple[bytes, ...]
    encoding: bytes


class SharedStore:
    """The store in `directory`. Making one touches nothing. `network`: a miss there is looked at twice.

    `trust` says whose files are believed; by default this user's. What is large is read through `near` if that is given.
    """

    def __init__(
        self,
        directory: Path,
        network: bool = True,
        trust: Trust | None = None,
        near: NearBlobs | None = None,
    ) -> None:
        self.layout = SharedLayout(directory)
        self.guard = Guard(directory, trust or Trust.of(PRIVATE))
        self._read = read_network_file if network else read_file
        self.blobs = Blobs(self.layout, self.guard)
        self._near = near
        self._sign = sign if self.guard.trust.signers is not None else None

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key`, checked; never raises."""
        try:
            content = self._content(key.hex, self.layout.entry(key.hex))
            record = read_record(content, key)
            return self._hit(record) if isinstance(record, Record) else record
        except FileNotFoundError:
            return Miss("never-seen", f"{self.layout.directory} has no such key")
        except Exception as error:  # whatever a damaged file, or a lack of memory, makes it raise
            return miss_of(error)

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Publish `artifact` under `key` at once, replacing what is there; raises OSError, and ValueError as publish does."""
        payload, named = write_blobs(self.blobs, artifact)
        record = make_record(artifact, payload, named)
        entry = describe(key, artifact, named, 0, load_seconds)
        content = write_entry(key, record, entry, artifact.references, self._sign)
        refuse_oversized(key, len(content))
        publish_file(self.layout.entry(key.hex), content, self.guard)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return what a blob holds, None when it is missing, unreadable or not what was written; never raises."""
        try:
            return self._sound_blob(digest_hex)
        except Exception:  # as above
            return None

    def scan(self) -> list[Entry]:
        """Return every entry that can be read, the oldest first: when one was used is known to each host alone."""
        return sorted((file.entry for file in self.stored()), key=lambda entry: (entry.created, entry.digest))

    def stored(self) -> Iterator[StoredFile]:
        """Yield what every file says of its entry that can be read, in no order."""
        for name, path in entry_files(self.layout):
            try:
                found = self.look_at(name, path)
            except (OSError, MemoryError):  # removed meanwhile, or unreadable: it is no entry to anybody now
                continue
            if isinstance(found, StoredFile):
                yield found

    def look_at(self, name: str, path: Path) -> StoredFile | Miss:
        """Return what the file of the key `name` (hex) says of its entry, or why it says nothing; raises OSError."""
        content = self._content(name, path)
        found = read_description(content, bytes.fromhex(name))
        if isinstance(found, Miss):
            return found
        used = max(found.entry.last_used, os.stat(path).st_mtime)
        entry = replace(found.entry, last_used=used, stored_size=len(content))
        blobs = [
            Reference(name, digest, file_size(self.layout.blob(digest)))
            for name, digest in found.blobs.items()
        ]
        return StoredFile(entry, blobs, found.references, found.encoding)

    def renew(self, key: CacheKey) -> StoredFile | None:
        """Show that `key` was read, to those who prune; return what its file says, None if it cannot be read.

        At most once a day, and only by its owner; never raises.
        """
        path = self.layout.entry(key.hex)
        try:
            found = self.look_at(key.hex, path)
            if os.stat(path).st_mtime < time.time() - RENEWED_SECONDS:
                with suppress(PermissionError):  # another user's
                    os.utime(path)
        except (OSError, MemoryError):
            return None
        return found if isinstance(found, StoredFile) else None

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove the entries of these keys and return how many there were; nothing here remembers `why`.

        Their blobs stay: another host may be about to refer to them. Raises OSError.
        """
        return sum(remove_file(self.layout.entry(digest.hex())) for digest in digests)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return the lease by which hosts that share the directory let one of them build."""
        from cachegraph.store.claims.lease import Lease  # only what builds needs it

        return (Lease(self.layout.lease(key.hex), self.guard),)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _content(self, name: str, path: Path) -> bytes:
        """What the entry file of the key `name` (hex) holds; raises OSError, Untrusted if it is not signed as it must be."""
        content = self._read(path, self.guard, LARGEST_ENTRY)
        signers = self.guard.trust.signers
        fault = "" if signers is None else signature_fault(content, name, signers)
        if fault:
            raise Untrusted(
                path, fault, "list in CACHEGRAPH_TRUST whose entries may run code here, and nobody else"
            )
        return content

    def _hit(self, record: Record) -> Hit | Miss:
        if record.payload_blob is None:
            return Hit(record.payload, record.blobs, record.seconds)
        try:
            payload = self._sound_blob(record.payload_blob)
        except FileNotFoundError:
            return Miss("damaged", f"the blob {record.payload_blob} of the payload is missing")
        except OSError as error:
            return miss_of(error)
        if payload is None:
            return Miss("damaged", f"the blob {record.payload_blob} of the payload does not match its name")
        return Hit(payload, record.blobs, record.seconds)

    def _sound_blob(self, digest_hex: str) -> bytes | None:
        return self._near.fetch(digest_hex, self._far_blob) if self._near else self._far_blob(digest_hex)

    def _far_blob(self, digest_hex: str) -> bytes | None:
        return self.blobs.read(digest_hex, self._read)


def entry_files(layout: SharedLayout, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Yield (key in hexadecimal, path) of every file that is named as an entry whose key starts with `prefix`."""
    for directory, below, names in os.walk(layout.entries):
        below[:] = [name for name in below if name.startswith(prefix[:2])]
        for name in names:
            if is_key(name) and name.startswith(prefix):
                yield name, Path(directory, name)
