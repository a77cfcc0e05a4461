"""The store on a server: the files of a shared directory behind another interface.

Blobs are written first, the entry last; the last writer replaces one whole file by another. Whoever
can write to the server could run code in every reader, and it says of no file who wrote it. So every
entry is signed together with its place (shared/entry_file.py), and only entries of trusted signers
are read; blobs are named by their content.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.fingerprint.primitives import content_name, named_length
from cachegraph.key import CacheKey
from cachegraph.store.activity import Batch
from cachegraph.store.artifacts import describe, pack, refuse_oversized
from cachegraph.store.entry import LARGEST_ENTRY, Artifact, BlobReference, Entry, Hit, Miss, Origin
from cachegraph.store.failures import miss_of
from cachegraph.store.files import Oversized
from cachegraph.store.paths import ENTRIES, blob_place, entry_place, is_key
from cachegraph.store.protocol import Claim
from cachegraph.store.record import Record
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.shared.entry_check import EntryCheck
from cachegraph.store.shared.entry_file import read_description, read_record, write_again, write_entry
from cachegraph.store.shared.without_index import StoredFile, StoreWithoutIndex
from cachegraph.store.signing import sign
from cachegraph.store.trust import Trust, Untrusted
from cachegraph.store.use_log.writing import LARGEST_FILE, REPORTS, report_name

if TYPE_CHECKING:
    from cachegraph.store.revocation.reading import Revocations
    from cachegraph.store.shared.near_blobs import NearBlobs
    from cachegraph.store.use_log.writing import UseLog


class RemoteStore(StoreWithoutIndex):
    """The store in `files`; entries of the signers of `trust` are believed.

    With `near`, blobs are copied to this node when they are first read. `use_log` is this node's, of
    which uses are reported. `revocations` are those of all tiers; by default, the store reads its own.
    Methods raise RemoteError unless they say otherwise.
    """

    def __init__(
        self,
        files: RemoteFiles,
        trust: Trust,
        near: NearBlobs | None = None,
        use_log: UseLog | None = None,
        revocations: Revocations | None = None,
    ) -> None:
        self.files = files
        self.may_write = files.may_write and trust.may_write
        self.check = EntryCheck(files.location, files.read, trust.signers or (), revocations)
        self._near = near
        self._use_log = use_log

    @property
    def location(self) -> str:
        """Return the server, as messages name it."""
        return self.files.location

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key`, or the reason for the miss. Never raises."""
        try:
            content = self._content(key.hex)
            record = read_record(content, key)
            found = record.hit(self._sound_blob) if isinstance(record, Record) else record
            return found._replace(file=content) if isinstance(found, Hit) else found
        except FileNotFoundError:
            return Miss("never-seen", f"{self.files.location} has no such key")
        except Exception as error:  # a damaged file, or lack of memory, can raise anything
            return miss_of(error)

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        """Publish `artifact` under `key` in one step, replacing the old entry.

        A copy keeps the signature of its `origin`. Raises ValueError if the artifact cannot be stored, and
        what signing raises.
        """
        record, _ = pack(artifact, _RemoteBlobs(self.files))
        if origin is not None:
            self._publish(key, write_again(key, record, origin))
        else:
            self.write(key, record, describe(key, artifact, load_seconds), artifact.references)

    def write(self, key: CacheKey, record: Record, entry: Entry, references: Collection[bytes]) -> None:
        """Publish an entry whose blobs are there. Raises as `put` does."""
        self._publish(key, write_entry(key, record, entry, references, sign))

    def _publish(self, key: CacheKey, content: bytes) -> None:
        refuse_oversized(key, len(content))
        self.files.write(entry_place(key.hex), content)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the content of a blob, or None if it is missing, unreadable or damaged. Never raises."""
        try:
            return self._sound_blob(digest_hex)
        except Exception:  # as in get
            return None

    def stored(self) -> Iterator[StoredFile]:
        """Yield the content of every readable entry file, in no order."""
        for file in self.files.listed(f"{ENTRIES}/"):
            name = file.name.rpartition("/")[2]
            found = self._readable(name) if is_key(name) else None
            if found is not None:
                yield found

    def read_entry(self, key_hex: str) -> StoredFile | Miss:
        """Return the content of the file of a key, or why it is none. Raises Untrusted."""
        return self.described(key_hex, self._content(key_hex))

    def all_stored(self) -> Iterator[tuple[StoredFile, bool]]:
        """Yield the content of every sound entry file, and True if a trusted signer published it.

        Raises RemoteError where `stored` leaves out what cannot be read: for who must know all of them.
        """
        for file in self.files.listed(f"{ENTRIES}/"):
            name = file.name.rpartition("/")[2]
            with suppress(FileNotFoundError, Oversized):  # removed meanwhile; no entry
                content = self.files.read(file.name, LARGEST_ENTRY) if is_key(name) else b""
                found = self.described(name, content) if content else Miss("damaged", "no name of a key")
                if isinstance(found, StoredFile):
                    yield found, self._is_believed(name, content)

    def _is_believed(self, key_hex: str, content: bytes) -> bool:
        try:
            self._refuse_strange(key_hex, content)
        except Untrusted:
            return False
        return True

    def described(self, key_hex: str, content: bytes) -> StoredFile | Miss:
        """Return what an entry file says, or why it is none, whoever wrote it."""
        found = read_description(content, bytes.fromhex(key_hex))
        if isinstance(found, Miss):
            return found
        entry = found.entry._replace(stored_size=len(content))
        blobs = [
            BlobReference(name, digest, named_length(digest))
            for name, digest in found.record.all_blobs.items()
        ]
        return StoredFile(entry, blobs, found.references, found.encoding, found.origin, found.record)

    def renew(self, key: CacheKey, file: bytes | None) -> StoredFile | None:
        """Return the content of the `file` of `key` that a hit had; None if it was revoked since.

        The server is not asked again, and keeps times of its own. Never raises.
        """
        if file is None:
            return None
        try:
            self._refuse_strange(key.hex, file)
            found = self.described(key.hex, file)
        except (OSError, MemoryError):
            return None
        return found if isinstance(found, StoredFile) else None

    def add_counts(self, batch: Batch) -> bool:
        """Report what processes of this node used since the last report; return False if nothing was sent.

        Raises OSError.
        """
        if not self.may_write or self._use_log is None:
            return False
        name = report_name(time.time())
        return self._use_log.report(self.files.location, lambda content: self.files.write(name, content))

    def use_logs(self) -> Iterator[bytes]:
        """Yield the content of every report."""
        return use_reports(self.files)

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove the entries of these keys and return how many there were; `why` is not kept here."""
        return sum(self.files.remove(entry_place(digest.hex())) for digest in digests)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return the lease that lets one of the nodes that share the server build."""
        from cachegraph.store.claims.lease import Lease  # only a build needs it
        from cachegraph.store.remote.lease_files import RemoteLeaseFiles

        return (Lease(RemoteLeaseFiles(self.files, key.hex)),)

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        """Return None: the local tier keeps it."""
        return None

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
        self.files.close()

    def _readable(self, key_hex: str) -> StoredFile | None:
        try:
            found = self.read_entry(key_hex)
        except (OSError, MemoryError):  # removed meanwhile, unreadable, or of a stranger
            return None
        return found if isinstance(found, StoredFile) else None

    def _content(self, key_hex: str) -> bytes:
        """Return an entry file. Raises OSError, and Untrusted unless a trusted signer published it there.

        Also for what was revoked since.
        """
        content = self.files.read(entry_place(key_hex), LARGEST_ENTRY)
        self._refuse_strange(key_hex, content)
        return content

    def _refuse_strange(self, key_hex: str, content: bytes) -> None:
        self.check.refuse_strange(content, key_hex, f"{self.files.location}/{entry_place(key_hex)}")

    def _sound_blob(self, digest_hex: str) -> bytes | None:
        return self._near.fetch(digest_hex, self._far_blob) if self._near else self._far_blob(digest_hex)

    def _far_blob(self, digest_hex: str) -> bytes | None:
        try:
            content = self.files.read(blob_place(digest_hex), named_length(digest_hex))
        except Oversized:
            return None
        return content if content_name(content) == digest_hex else None


def use_reports(files: RemoteFiles) -> Iterator[bytes]:
    """Yield the content of every report of uses. Raises RemoteError."""
    for file in files.listed(f"{REPORTS}/"):
        with suppress(FileNotFoundError, Oversized):
            yield files.read(file.name, LARGEST_FILE)


class _RemoteBlobs:
    """Writes blobs to `files`."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files

    def write(self, content: bytes) -> str:
        """Write a blob of `content`, unless there is one; return its digest (hexadecimal).

        One that is there may be damaged, so it is read and compared.
        """
        name = content_name(content)
        place = blob_place(name)
        if not self._files.create(place, content) and not self._holds(place, content):
            self._files.write(place, content)
        return name

    def _holds(self, place: str, content: bytes) -> bool:
        try:
            return self._files.read(place, len(content)) == content
        except (FileNotFoundError, Oversized):
            return False
