"""The whole content of a cache directory: entries in an index, in files that hosts share, or in both.

A directory on a local file system has an index, and also files if others use it as
CACHEGRAPH_SHARED_DIR. One on a network file system has files, and an index on this node that knows
some of them.
"""

from __future__ import annotations

import heapq
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any

from cachegraph.errors import StoreError
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import ALL_LEVELS, Entry, Miss
from cachegraph.store.local.connections import path_exists
from cachegraph.store.local.index import has_entry
from cachegraph.store.local.sizes import COUNT_BYTES_HELD
from cachegraph.store.local.store import LocalStore
from cachegraph.store.paths import CLEARING_PREFIX, Layout, SharedLayout, unique_name
from cachegraph.store.shared.store import SharedStore, entry_files
from cachegraph.store.shared.without_index import StoredFile
from cachegraph.store.tiers import Placement
from cachegraph.store.trust import Untrusted
from cachegraph.store.use_log.reading import LoggedUse, sum_up

ORDERS: Mapping[str, Callable[[Entry], Any]] = {
    "used": lambda entry: -entry.last_used,
    "created": lambda entry: -entry.created,
    "size": lambda entry: -entry.size,
    "build": lambda entry: -entry.build_seconds,
    "uses": lambda entry: -entry.uses,
    "key": lambda entry: entry.digest,
}
"""Orders of listing: last used, last made, largest, longest to build, or most used first, or by key."""


class FilesHeld(NamedTuple):
    """The bytes of all files; `only` (level -> entries, bytes) counts entries missing in the index.

    `refused` are the reasons for which files of others were not counted.
    """

    bytes: int
    only: Mapping[str, tuple[int, int]]
    refused: Sequence[str]


class CacheDirectory:
    """The cache in the directory of the user: `local` is its index, `shared` its files, if any.

    Methods raise sqlite3.Error and OSError.
    """

    def __init__(self, placement: Placement) -> None:
        self.local = LocalStore(placement.local.directory)
        files = placement.shared[0] if placement.on_node else placement.local
        self.path: Path = files.directory
        has_files = placement.on_node or SharedLayout(files.directory).entries.is_dir()
        network = not files.file_system.local
        self.shared = SharedStore(files.directory, network, files.trust) if has_files else None

    @property
    def stores(self) -> tuple[LocalStore | SharedStore, ...]:
        """Return the index, and the files if there are any."""
        return (self.local,) if self.shared is None else (self.local, self.shared)

    @property
    def exists(self) -> bool:
        """Return True if there is a store, empty or not. Raises OSError if that cannot be told."""
        return path_exists(self.local.layout.root) or path_exists(SharedLayout(self.path).root)

    def listed(
        self,
        order: str = "used",
        most: int | None = None,
        unreadable: Callable[[str], None] = lambda _: None,
        levels: str = ALL_LEVELS,
    ) -> Iterator[Entry]:
        """Yield the first `most` entries (None: all) of `levels` in `order`, a name in ORDERS, each once.

        Rows of an index are read on demand. `unreadable` is called with the fault of each damaged row. Raises
        sqlite3.Error and OSError.
        """
        if self.shared is None:
            return self.local.catalogue.listed(order, most, unreadable, levels)
        in_files = (entry for entry in self._only_in_files() if fnmatchcase(entry.level, levels))
        every = chain(self.local.catalogue.listed(order, most, unreadable, levels), in_files)
        if most is None:
            return iter(sorted(every, key=ORDERS[order]))
        return iter(heapq.nsmallest(most, every, key=ORDERS[order]))

    def logged(self) -> LoggedUse:
        """Return the sum of the use logs of the files: of all nodes, as far as their users may write here."""
        return LoggedUse() if self.shared is None else sum_up(self.shared.use_logs(), time.time())

    def files_held(self) -> FilesHeld:
        """Return the totals of the entry files; reads each file once."""
        held = 0
        blobs: dict[bytes, int] = {}
        only: dict[str, tuple[int, int]] = {}
        refused: list[str] = []
        for file in self._files(lambda error: refused.append(str(error))):
            held += file.entry.stored_size
            blobs.update((bytes.fromhex(blob.digest), blob.size) for blob in file.blobs)
            if not has_entry(self.local.database.select_one, file.entry.digest):
                entries, size = only.get(file.entry.level, (0, 0))
                only[file.entry.level] = entries + 1, size + file.entry.size
        return FilesHeld(held + sum(blobs.values()), only, refused)

    def keys(self, prefix: str, most: int) -> list[bytes]:
        """Return up to `most` digests of keys that start with `prefix`, in order.

        `prefix` has lower-case hexadecimal digits. Reads no entry file.
        """
        found = {entry.digest for entry in self.local.catalogue.find(prefix, most)}
        if self.shared is not None:
            names = (bytes.fromhex(name) for name, _ in entry_files(self.shared.layout, prefix))
            found.update(heapq.nsmallest(most, names))
        return sorted(found)[:most]

    def described(self, digest: bytes) -> StoredFile | Miss:
        """Return the description of an entry from the index, or else from its file, without its record."""
        catalogue = self.local.catalogue
        for entry in catalogue.find(digest.hex()):
            references = tuple(catalogue.entry_references_of(digest))
            encoding = catalogue.encoding(digest) or b""
            origin = self.local.origin(digest)
            return StoredFile(entry, catalogue.references_of(digest), references, encoding, origin)
        if self.shared is None:
            return Miss("never-seen", "the index has no such key")
        found = self.shared.read_entry(digest.hex(), self.shared.layout.entry(digest.hex()))
        if isinstance(found, StoredFile):
            return found._replace(blobs=sorted(found.blobs, key=lambda blob: blob.name), record=None)
        return found

    def bytes_in_index(self) -> int:
        """Return the bytes of the entries and blobs of the index (sizes.py)."""
        (held,) = self.local.database.select_one(COUNT_BYTES_HELD, ()) or (0,)
        return int(held)

    def bytes_on_disk(self) -> int:
        """Return the total size of all files, the index on this node included."""
        here = bytes_on_disk(self.local.layout)
        return here + bytes_on_disk(self.shared.layout) if self.index_is_elsewhere and self.shared else here

    def count_files(self) -> int:
        """Return the number of entries and blobs: rows of the index, if it is readable, and files."""
        try:
            rows = self.local.database.select_one("SELECT count(*) FROM entry", ()) or (0,)
        except Exception:  # a damaged index can make SQLite raise anything
            rows = (0,)
        files = sum(1 for _ in self.local.blobs.files())
        if self.shared is not None:
            files += sum(1 for _ in self.shared.blobs.files()) + sum(
                1 for _ in entry_files(self.shared.layout)
            )
        return int(rows[0]) + files

    @property
    def index_is_elsewhere(self) -> bool:
        """Return True if the index lies on this node: the use logs have all of its counts."""
        return self.path != self.local.layout.directory

    def _files(self, refused: Callable[[Untrusted], None] = lambda _: None) -> Iterator[StoredFile]:
        return iter(()) if self.shared is None else self.shared.stored(refused)

    def _only_in_files(self) -> Iterator[Entry]:
        logged = self.logged()
        return (
            logged.of(file.entry)
            for file in self._files()
            if not has_entry(self.local.database.select_one, file.entry.digest)
        )


def bytes_on_disk(layout: Layout | SharedLayout) -> int:
    """Return the total size of all files of a store; 0 if there is none. Reads no file."""
    total = 0
    for directory, _, names in os.walk(layout.root):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(directory, name)).st_size
    return total


def clear(layout: Layout | SharedLayout) -> bool:
    """Remove a whole store, damaged or not, and return True if there was one. Running jobs begin a new one.

    The store is renamed before its files are removed, so nobody meets half of it. Raises StoreError.
    """
    doomed = layout.directory / unique_name(CLEARING_PREFIX)
    try:
        os.rename(layout.root, doomed)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError("clearing", layout.root, str(error)) from error
    try:
        shutil.rmtree(doomed)
    except OSError as error:
        raise StoreError("removing", doomed, f"{error}; remove it by hand") from error
    return True
