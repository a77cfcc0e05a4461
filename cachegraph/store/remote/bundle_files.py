"""Files of a bundle, read only: `bundle:/PATH` in CACHEGRAPH_REMOTE.

A read opens the bundle and reads the parts that it needs. The index is read again when the file at
the path is another one, so a bundle can be replaced while programs use it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from cachegraph.remote_url import RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.paths import blob_place, entry_place, is_blob, is_key, is_signer, revocation_place
from cachegraph.store.remote.bundle_format import BundleFault, BundleIndex, Extent, read_extent
from cachegraph.store.remote.files import RemoteError, RemoteFile

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK

_Identity = tuple[int, int, int, int]
"""Device, inode, size, and time of the last change: a file that replaces another differs in one."""


class BundleFiles:
    """The files in the bundle that `url` names."""

    def __init__(self, url: RemoteURL) -> None:
        self.location = url.location
        self.may_write = False
        self._path = unquote(urlsplit(url.url).path)
        self._index: tuple[_Identity, BundleIndex] | None = None

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""
        with self._opened() as (descriptor, index):
            found = _extent(index, name)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "no such file", f"{self.location}/{name}")
            if found.length > most:
                raise Oversized(f"{self.location}/{name}", found.length, most)
            return read_extent(descriptor, found)

    def write(self, name: str, content: bytes) -> None:
        """Raise RemoteError: a bundle is only read."""
        raise self._read_only()

    def create(self, name: str, content: bytes) -> bool:
        """Raise RemoteError: a bundle is only read."""
        raise self._read_only()

    def remove(self, name: str) -> bool:
        """Raise RemoteError: a bundle is only read."""
        raise self._read_only()

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`; all were written with the bundle."""
        with self._opened() as (descriptor, index):
            written = os.fstat(descriptor).st_mtime
        entries = ((entry_place(key), length) for key, length in index.entries())
        blobs = ((blob_place(name), length) for name, length in index.blobs())
        lists = ((revocation_place(signer), length) for signer, length in index.lists())
        for files in (entries, blobs, lists):
            for name, length in files:
                if name.startswith(prefix):
                    yield RemoteFile(name, length, written)

    def wait(self, name: str, seconds: float) -> None:
        """Sleep: nobody removes a file of a bundle."""
        time.sleep(seconds)

    def close(self) -> None:
        """Forget the index; the next use reads it again."""
        self._index = None

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, BundleIndex]]:
        """Yield the open bundle and its index. Raises RemoteError for a file that is no whole bundle."""
        try:
            descriptor = os.open(self._path, _FLAGS)
        except OSError as error:
            raise RemoteError(self.location, f"opening the bundle failed ({error.strerror})") from error
        try:
            yield descriptor, self._index_of(descriptor)
        except BundleFault as error:
            raise RemoteError(self.location, str(error)) from error
        finally:
            os.close(descriptor)

    def _index_of(self, descriptor: int) -> BundleIndex:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BundleFault("it is no regular file")
        identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        if self._index is None or self._index[0] != identity:
            self._index = identity, BundleIndex.read(descriptor, status.st_size)
        return self._index[1]

    def _read_only(self) -> RemoteError:
        return RemoteError(self.location, "a bundle is only read; `cachegraph export` writes one")


def _extent(index: BundleIndex, place: str) -> Extent | None:
    """Return where the file at `place` of a shared directory is, or None."""
    name = place.rpartition("/")[2]
    if is_signer(name) and place == revocation_place(bytes.fromhex(name)):
        return index.revocations(bytes.fromhex(name))
    if is_key(name) and place == entry_place(name):
        return index.entry(name)
    return index.blob(name) if is_blob(name) and place == blob_place(name) else None
