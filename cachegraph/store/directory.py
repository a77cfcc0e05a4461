"""All that one cache directory holds: entries in an index, in files that hosts share, or in both.

A directory on a local file system has an index, and files too where others use it as CACHEGRAPH_SHARED_DIR. One on a
network file system has files, and an index on this node that knows some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cachegraph.store.entry import Entry, Reference
from cachegraph.store.local import LocalStore
from cachegraph.store.paths import SharedLayout
from cachegraph.store.shared import SharedStore, StoredFile, entry_files
from cachegraph.store.sizes import COUNT_BYTES_HELD
from cachegraph.store.tiers import Placement
from cachegraph.store.usage import bytes_on_disk


class FilesHeld(NamedTuple):
    """The bytes that files hold, and of what is in files alone: level -> entries, bytes."""

    bytes: int
    only: Mapping[str, tuple[int, int]]


class CacheDirectory:
    """What `placement` puts where its user said: `local` is the index, `shared` the files if there are any."""

    def __init__(self, placement: Placement) -> None:
        self.local = LocalStore(placement.local.directory)
        files = placement.shared[0] if placement.on_node else placement.local
        self.path: Path = files.directory
        has_files = placement.on_node or SharedLayout(files.directory).entries.is_dir()
        network = not files.file_system.local
        self.shared = SharedStore(files.directory, network, files.trust) if has_files else None

    def scan(self) -> list[Entry]:
        """Return every entry once, the least recently used first; raises sqlite3.Error and OSError."""
        found = {file.entry.digest: file.entry for file in self._files()}
        found.update(
            (entry.digest, entry) for entry in self.local.scan()
        )  # which knows how often it was used
        return sorted(found.values(), key=lambda entry: (entry.last_used, entry.digest))

    def files_held(self) -> FilesHeld:
        """Return what the files hold, and by level what of it the index does not know; reads each file once.

        Raises sqlite3.Error and OSError.
        """
        held = 0
        blobs: dict[bytes, int] = {}
        only: dict[str, tuple[int, int]] = {}
        for file in self._files():
            held += file.entry.stored_size
            blobs.update((bytes.fromhex(blob.digest), blob.size) for blob in file.blobs)
            if not self._knows(file.entry.digest):
                entries, size = only.get(file.entry.level, (0, 0))
                only[file.entry.level] = entries + 1, size + file.entry.size
        return FilesHeld(held + sum(blobs.values()), only)

    def find(self, prefix: str) -> list[Entry]:
        """Return the entries whose key starts with `prefix` (lower-case hexadecimal); raises sqlite3.Error and OSError."""
        return [entry for entry in self.scan() if entry.hex.startswith(prefix)]

    def encoding(self, digest: bytes) -> bytes | None:
        """Return the compressed encoding of a key; None when it is not there. Raises sqlite3.Error and OSError."""
        found = self.local.catalogue.encoding(digest)
        if found is not None or self.shared is None:
            return found
        file = self._file(digest)
        return None if file is None else file.encoding

    def references_of(self, digest: bytes) -> list[Reference]:
        """Return the blobs that one entry refers to, in order of name; raises sqlite3.Error and OSError."""
        file = None if self.local.catalogue.find(digest.hex()) else self._file(digest)
        if file is None:
            return self.local.catalogue.references_of(digest)
        return sorted(file.blobs, key=lambda blob: blob.name)

    def refers_to(self, digest: bytes) -> list[bytes]:
        """Return the key digests of the entries that one entry refers to; raises sqlite3.Error and OSError."""
        file = None if self.local.catalogue.find(digest.hex()) else self._file(digest)
        return list(file.references) if file else self.local.catalogue.entry_references_of(digest)

    def bytes_in_index(self) -> int:
        """Return what the index holds (sizes.py), with the blobs beside it; raises sqlite3.Error and OSError."""
        (held,) = self.local.database.select_one(COUNT_BYTES_HELD, ()) or (0,)
        return int(held)

    def bytes_on_disk(self) -> int:
        """Return the sizes of all files added up, the index on this node included."""
        here = bytes_on_disk(self.local.layout)
        return here + bytes_on_disk(self.shared.layout) if self._is_elsewhere and self.shared else here

    def count_files(self) -> int:
        """Return how many files of entries and blobs there are; a row of a sound index is counted as one. Raises OSError."""
        try:
            rows = self.local.database.select_one("SELECT count(*) FROM entry", ()) or (0,)
        except Exception:  # whatever a damaged index makes SQLite raise
            rows = (0,)
        files = sum(1 for _ in self.local.blobs.files())
        if self.shared is not None:
            files += sum(1 for _ in self.shared.blobs.files()) + sum(
                1 for _ in entry_files(self.shared.layout)
            )
        return int(rows[0]) + files

    def _knows(self, digest: bytes) -> bool:
        return self.local.database.select_one("SELECT 1 FROM entry WHERE digest = ?", (digest,)) is not None

    @property
    def _is_elsewhere(self) -> bool:
        return self.path != self.local.layout.directory

    def _files(self) -> Iterator[StoredFile]:
        return iter(()) if self.shared is None else self.shared.stored()

    def _file(self, digest: bytes) -> StoredFile | None:
        if self.shared is None:
            return None
        try:
            found = self.shared.look_at(digest.hex(), self.shared.layout.entry(digest.hex()))
        except OSError:
            return None
        return found if isinstance(found, StoredFile) else None
