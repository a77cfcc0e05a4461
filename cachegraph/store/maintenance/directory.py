"""All that one cache directory holds: entries in an index, in files that hosts share, or in both.

A directory on a local file system has an index, and files too where others use it as CACHEGRAPH_SHARED_DIR. One on a
network file system has files, and an index on this node that knows some of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from cachegraph.store.entry import Entry, Miss
from cachegraph.store.local.connections import path_exists
from cachegraph.store.local.store import LocalStore
from cachegraph.store.local.usage import bytes_on_disk
from cachegraph.store.paths import SharedLayout
from cachegraph.store.shared.store import SharedStore, StoredFile, entry_files
from cachegraph.store.sizes import COUNT_BYTES_HELD
from cachegraph.store.tiers import Placement

ORDERS: Mapping[str, Callable[[Entry], Any]] = {
    "used": lambda entry: -entry.last_used,
    "created": lambda entry: -entry.created,
    "size": lambda entry: -entry.size,
    "build": lambda entry: -entry.build_seconds,
    "uses": lambda entry: -entry.uses,
    "key": lambda entry: entry.digest,
}
"""By what entries are listed: the last used, the last made, the largest, the dearest, the most used, the least key first."""


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

    @property
    def exists(self) -> bool:
        """Whether there is a store, empty or not; raises OSError where that cannot be told."""
        return path_exists(self.local.layout.root) or path_exists(SharedLayout(self.path).root)

    def listed(
        self, order: str = "used", most: int | None = None, unreadable: Callable[[str], None] = lambda _: None
    ) -> Iterator[Entry]:
        """Yield the `most` entries that come first in `order`, a name in ORDERS (None: all), each once.

        Those of an index come as they are asked for. `unreadable` is told of each that is not what was written. Raises
        sqlite3.Error and OSError.
        """
        if self.shared is None:
            return self.local.catalogue.listed(order, most, unreadable)
        every = chain(self.local.catalogue.listed(order, most, unreadable), self._only_in_files())
        if most is None:
            return iter(sorted(every, key=ORDERS[order]))
        return iter(heapq.nsmallest(most, every, key=ORDERS[order]))

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

    def keys(self, prefix: str, most: int) -> list[bytes]:
        """Return up to `most` digests of keys that start with `prefix` (lower-case hexadecimal digits), in order.

        Opens no file. Raises sqlite3.Error and OSError.
        """
        found = {entry.digest for entry in self.local.catalogue.find(prefix, most)}
        if self.shared is not None:
            names = (bytes.fromhex(name) for name, _ in entry_files(self.shared.layout, prefix))
            found.update(heapq.nsmallest(most, names))
        return sorted(found)[:most]

    def described(self, digest: bytes) -> StoredFile | Miss:
        """Return what the index, or else the one file, says of an entry; raises sqlite3.Error and OSError."""
        catalogue = self.local.catalogue
        for entry in catalogue.find(digest.hex()):
            references = tuple(catalogue.entry_references_of(digest))
            encoding = catalogue.encoding(digest) or b""
            return StoredFile(entry, catalogue.references_of(digest), references, encoding)
        if self.shared is None:
            return Miss("never-seen", "the index has no such key")
        found = self.shared.look_at(digest.hex(), self.shared.layout.entry(digest.hex()))
        if isinstance(found, StoredFile):
            return found._replace(blobs=sorted(found.blobs, key=lambda blob: blob.name))
        return found

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

    def _only_in_files(self) -> Iterator[Entry]:
        return (file.entry for file in self._files() if not self._knows(file.entry.digest))
