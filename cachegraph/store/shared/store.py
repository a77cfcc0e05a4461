"""The shared store: a directory of immutable files that any number of hosts read and write without a lock.

Blobs are written first, the entry last; in a race, the last writer replaces one whole file by
another. Every read is checksummed, and a file that cannot be read is a miss. The store needs
nothing else of a file system, so it works on NFS, Lustre, sshfs and the like.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.key import CacheKey
from cachegraph.store.activity import Batch
from cachegraph.store.artifacts import describe, pack, refuse_oversized
from cachegraph.store.blobs import Blobs
from cachegraph.store.entry import LARGEST_ENTRY, Artifact, BlobReference, Hit, Miss, Origin
from cachegraph.store.failures import miss_of
from cachegraph.store.files import publish_file, read_file, read_network_file, remove_file
from cachegraph.store.paths import SharedLayout, file_size, is_key
from cachegraph.store.protocol import Claim
from cachegraph.store.record import Record
from cachegraph.store.shared.entry_file import read_description, read_record, write_again, write_entry
from cachegraph.store.shared.without_index import StoredFile, StoreWithoutIndex
from cachegraph.store.signing import sign
from cachegraph.store.trust import PRIVATE, Guard, Trust, Untrusted

if TYPE_CHECKING:
    from cachegraph.store.revocation.reading import Revocations
    from cachegraph.store.shared.entry_check import EntryCheck
    from cachegraph.store.shared.near_blobs import NearBlobs

RENEWED_SECONDS = 86400.0
"""A file that was read is touched at most once in this time."""


class SharedStore(StoreWithoutIndex):
    """The store in `directory`. Creating the object does not access the disk.

    With `network`, a miss is checked twice. `trust` names the users whose files are read; by
    default only this user. With `near`, blobs are copied to this node when they are first read.
    `revocations` are those of all tiers; by default, the store reads its own.
    Methods raise OSError unless they say otherwise.
    """

    def __init__(
        self,
        directory: Path,
        network: bool = True,
        trust: Trust | None = None,
        near: NearBlobs | None = None,
        revocations: Revocations | None = None,
    ) -> None:
        self.layout = SharedLayout(directory)
        self.guard = Guard(directory, trust or Trust.of(PRIVATE))
        self._read = read_network_file if network else read_file
        self.blobs = Blobs(self.layout, self.guard)
        self._near = near
        self.may_write = self.guard.trust.may_write
        signers = self.guard.trust.signers
        self._sign = sign if signers is not None else None
        self.check = None if signers is None else self._checked(signers, revocations)

    @property
    def location(self) -> str:
        """Return the directory, as messages name it."""
        return str(self.layout.directory)

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key`, or the reason for the miss. Never raises."""
        try:
            content = self._content(key.hex, self.layout.entry(key.hex))
            record = read_record(content, key)
            return record.hit(self._sound_blob) if isinstance(record, Record) else record
        except FileNotFoundError:
            return Miss("never-seen", f"{self.layout.directory} has no such key")
        except Exception as error:  # a damaged file, or lack of memory, can raise anything
            return miss_of(error)

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        """Publish `artifact` under `key` in one step, replacing the old entry.

        Where entries are signed, a copy keeps the signature of its `origin`. Raises OSError, and ValueError
        if the artifact cannot be stored.
        """
        record, _ = pack(artifact, self.blobs)
        if origin is not None and self._sign is not None:
            content = write_again(key, record, origin)
        else:
            entry = describe(key, artifact, load_seconds)
            content = write_entry(key, record, entry, artifact.references, self._sign)
        refuse_oversized(key, len(content))
        publish_file(self.layout.entry(key.hex), content, self.guard)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the content of a blob, or None if it is missing, unreadable or damaged. Never raises."""
        try:
            return self._sound_blob(digest_hex)
        except Exception:  # as in get
            return None

    def stored(self, refused: Callable[[Untrusted], None] = lambda _: None) -> Iterator[StoredFile]:
        """Yield the content of every readable entry file, in no order; `refused` gets strangers'."""
        for name, path in entry_files(self.layout):
            try:
                found = self.read_entry(name, path)
            except Untrusted as error:
                refused(error)
                continue
            except (OSError, MemoryError):  # removed meanwhile, or unreadable
                continue
            if isinstance(found, StoredFile):
                yield found

    def read_entry(self, name: str, path: Path) -> StoredFile | Miss:
        """Return the content of the file of the key `name` (hexadecimal), or why it is none."""
        content = self._content(name, path)
        found = read_description(content, bytes.fromhex(name))
        if isinstance(found, Miss):
            return found
        used = max(found.entry.last_used, os.stat(path).st_mtime)
        entry = found.entry._replace(last_used=used, stored_size=len(content))
        blobs = [
            BlobReference(name, digest, file_size(self.layout.blob(digest)))
            for name, digest in found.record.all_blobs.items()
        ]
        return StoredFile(entry, blobs, found.references, found.encoding, found.origin, found.record)

    def renew(self, key: CacheKey, file: bytes | None = None) -> StoredFile | None:
        """Touch the file of `key`, so that pruning spares it, and return its content or None.

        Touches it at most once a day, and only if this user owns it. It is read again, whatever `file` was
        read before. Never raises.
        """
        path = self.layout.entry(key.hex)
        try:
            found = self.read_entry(key.hex, path)
            if os.stat(path).st_mtime < time.time() - RENEWED_SECONDS:
                with suppress(PermissionError):  # another user's file
                    os.utime(path)
        except (OSError, MemoryError):
            return None
        return found if isinstance(found, StoredFile) else None

    def add_counts(self, batch: Batch) -> bool:
        """Append to the use log of this node; return False if this user may not write here, or nobody did.

        Raises OSError.
        """
        if not self.may_write or not os.path.isdir(self.layout.root):
            return False
        from cachegraph.store.use_log.blocks import encode_block  # the end of a process needs it, no hit
        from cachegraph.store.use_log.writing import node_log

        node_log(self.layout.uses, self.guard).append(encode_block(batch))
        return True

    def use_logs(self) -> Iterator[bytes]:
        """Yield the content of every readable use log of a trusted directory. Raises OSError."""
        from cachegraph.store.use_log.writing import LARGEST_FILE

        for path in files_in(self.layout.uses, self.guard):
            with suppress(OSError):  # removed meanwhile, unreadable, or of a stranger
                yield self._read(path, self.guard, LARGEST_FILE)

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove the entries of these keys and return how many there were; `why` is not kept here.

        Their blobs stay: another host may be about to refer to them.
        """
        return sum(remove_file(self.layout.entry(digest.hex())) for digest in digests)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return the lease that lets one of the hosts that share the directory build."""
        from cachegraph.store.claims.directory_lease_files import DirectoryLeaseFiles  # only a build needs it
        from cachegraph.store.claims.lease import Lease

        return (Lease(DirectoryLeaseFiles(self.layout.lease(key.hex), self.guard)),)

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        """Keep `payload`, which differs from a fresh build, for inspection; return its path, or None."""
        from cachegraph.store.quarantine import quarantine_payload  # rarely needed

        return quarantine_payload(self.layout.root, key, payload, self.guard)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _checked(self, signers: Collection[bytes], revocations: Revocations | None) -> EntryCheck:
        from cachegraph.store.shared.entry_check import EntryCheck  # most directories are not signed

        directory, guard = self.layout.directory, self.guard
        return EntryCheck(
            self.location,
            lambda place, most: self._read(directory / place, guard, most),
            signers,
            revocations,
        )

    def _content(self, name: str, path: Path) -> bytes:
        """Return an entry file. Raises OSError, and Untrusted for one of nobody trusted, or revoked."""
        content = self._read(path, self.guard, LARGEST_ENTRY)
        if self.check is not None:
            self.check.refuse_strange(content, name, path)
        return content

    def _sound_blob(self, digest_hex: str) -> bytes | None:
        return (
            self._near.fetch(digest_hex, self._shared_blob) if self._near else self._shared_blob(digest_hex)
        )

    def _shared_blob(self, digest_hex: str) -> bytes | None:
        return self.blobs.read(digest_hex, self._read)


def files_in(directory: Path, guard: Guard) -> Iterator[Path]:
    """Yield the files in `directory` if it is trusted: a link could lead to another user's files."""
    try:
        guard.check_directory(directory)
        yield from sorted(directory.iterdir())
    except OSError:
        return


def entry_files(layout: SharedLayout, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Yield (key in hexadecimal, path) of every file named as an entry whose key starts with `prefix`."""
    for directory, below, names in os.walk(layout.entries):
        below[:] = [name for name in below if name.startswith(prefix[:2])]
        for name in names:
            if is_key(name) and name.startswith(prefix):
                yield name, Path(directory, name)
