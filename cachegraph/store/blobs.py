"""Blobs: immutable files named by the BLAKE2b-256 and the length of their content.

So every read can check them, and no memory is allocated for a file that is longer than its name
says. Older releases named blobs by their XXH3-128, for which anybody can build collisions; such
files are listed and pruned, but never read as blobs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from cachegraph.fingerprint.primitives import content_name, digest, named_length
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.files import Oversized, publish_file, read_file
from cachegraph.store.paths import TEMPORARY_PREFIX, Layout, SharedLayout, is_blob, is_older_blob
from cachegraph.store.trust import Guard

LARGEST_OLDER = 2**30
"""Bytes; the name of an older release's blob has no length, so larger files are refused."""


class BlobFile(NamedTuple):
    """A file under blobs/: size in bytes, time of last change; `digest` is empty for a temporary file."""

    path: Path
    digest: str
    size: int
    changed: float

    def is_unchanged(self) -> bool:
        """Return True if the file exists and was not written or renewed since it was listed."""
        with suppress(FileNotFoundError):
            return self.path.stat().st_mtime == self.changed
        return False


def is_sound(file: BlobFile, guard: Guard) -> bool:
    """Return True if the content of a file matches its name, in the scheme of its release.

    Raises OSError if it cannot be read, and Untrusted if it is not trusted.
    """
    older = is_older_blob(file.digest)
    try:
        content = read_file(file.path, guard, LARGEST_OLDER if older else named_length(file.digest))
    except Oversized:
        if older:
            raise
        return False
    return (digest(content).hex() if older else content_name(content)) == file.digest


class Blobs:
    """The blob files of one cache directory."""

    def __init__(self, layout: Layout | SharedLayout, guard: Guard) -> None:
        self.layout = layout
        self._guard = guard

    def read(self, digest_hex: str, read: Callable[[Path, Guard, int], bytes] = read_file) -> bytes | None:
        """Return the content of the blob, or None if it does not match its name.

        Raises OSError if it cannot be read, Untrusted if it is not trusted, and ValueError for the
        name of an older release's blob or for any other name.
        """
        if not is_blob(digest_hex):
            raise ValueError(f"reading a blob: its name must have 80 hexadecimal digits, got {digest_hex!r}")
        try:
            content = read(self.layout.blob(digest_hex), self._guard, named_length(digest_hex))
        except Oversized:
            return None
        return content if content_name(content) == digest_hex else None

    def write(self, content: bytes) -> str:
        """Write a blob of `content`, or renew the one that exists; return its digest (hexadecimal)."""
        digest_hex = content_name(content)
        path = self.layout.blob(digest_hex)
        if not (self._holds(path, content) and _renewed(path)):
            publish_file(path, content, self._guard)
        return digest_hex

    def exists(self, digest_hex: str) -> bool:
        """Return True if there is a blob of that digest, sound or not."""
        return self.layout.blob(digest_hex).exists()

    def files(self) -> Iterator[BlobFile]:
        """Yield every file under blobs/, including those left by killed writers."""
        if self.layout.blobs.is_symlink():  # it could lead to another user's files
            return
        for directory in _subdirectories(self.layout.blobs):
            yield from self.files_in(directory)

    def files_in(self, directory: Path) -> Iterator[BlobFile]:
        """Yield every file in one directory of blobs; none if the directory does not exist."""
        for found in _entries(directory):
            if _name_of(found) or found.name.startswith(TEMPORARY_PREFIX):
                with suppress(FileNotFoundError):
                    yield _described(found)

    def _holds(self, path: Path, content: bytes) -> bool:
        try:
            same_size = path.stat().st_size == len(content)
            return same_size and read_file(path, self._guard, len(content)) == content
        except OSError:
            return False


def _renewed(path: Path) -> bool:
    """Set the time of the file to now; return False if another user owns it."""
    try:
        os.utime(path)
    except PermissionError:
        return False
    return True


def _described(found: os.DirEntry[str]) -> BlobFile:
    status = found.stat(follow_symlinks=False)
    return BlobFile(Path(found.path), _name_of(found), status.st_size, status.st_mtime)


def _name_of(found: os.DirEntry[str]) -> str:
    return found.name if is_blob(found.name) or is_older_blob(found.name) else ""


def _subdirectories(directory: Path) -> Iterator[Path]:
    for found in _entries(directory):
        if found.is_dir(follow_symlinks=False):
            yield Path(found.path)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
