"""Blobs: immutable files named by the BLAKE2b-256 of what they hold, and its length, so that each read can check itself.

No memory is taken for a file that is longer than its name says. Those of older releases are named by the XXH3-128, of which anybody makes two. They are listed, and pruned, but never read.

A blob is written beside its place under a name of its own, made durable, and renamed: nobody ever sees half of one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cachegraph.fingerprint.primitives import content_name, digest, named_length
from cachegraph.store.paths import TEMPORARY_PREFIX, Layout, SharedLayout, is_blob, is_older_blob
from cachegraph.store.shared.files import Oversized, publish_file, read_file
from cachegraph.store.trust import Guard

LARGEST_OLDER = 2**30
"""Bytes; a blob of an older release has no length in its name, and is not read beyond this."""


class BlobFile(NamedTuple):
    """A file under blobs/: its path, size in bytes, time of last change; `digest` is empty for a temporary file."""

    path: Path
    digest: str
    size: int
    changed: float

    def is_unchanged(self) -> bool:
        """Return whether the file is there and nobody has written or renewed it since it was listed."""
        with suppress(FileNotFoundError):
            return self.path.stat().st_mtime == self.changed
        return False


def is_sound(file: BlobFile, guard: Guard) -> bool:
    """Return whether a file holds what its name says: by its XXH3-128 where an older release wrote it.

    Raises OSError when it cannot be read, and Untrusted when it is not to be believed.
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
        self._layout = layout
        self._guard = guard

    def read(self, digest_hex: str, read: Callable[[Path, Guard, int], bytes] = read_file) -> bytes | None:
        """Return what the blob holds, None when that is not what its name says.

        Raises OSError when it cannot be read, Untrusted when it is not to be believed, and ValueError for the name of
        what is no blob of this release.
        """
        if not is_blob(digest_hex):
            raise ValueError(f"reading a blob: its name must have 80 hexadecimal digits, got {digest_hex!r}")
        try:
            content = read(self._layout.blob(digest_hex), self._guard, named_length(digest_hex))
        except Oversized:
            return None
        return content if content_name(content) == digest_hex else None

    def write(self, content: bytes) -> str:
        """Make sure there is a sound blob of `content`, young enough not to be pruned; return its digest (hex)."""
        digest_hex = content_name(content)
        path = self._layout.blob(digest_hex)
        if not (self._holds(path, content) and _renewed(path)):
            publish_file(path, content, self._guard)
        return digest_hex

    def exists(self, digest_hex: str) -> bool:
        """Return whether there is a blob of that digest, sound or not."""
        return self._layout.blob(digest_hex).exists()

    def files(self) -> Iterator[BlobFile]:
        """Yield every file under blobs/, those left by killed writers included."""
        if self._layout.blobs.is_symlink():  # another's files could be meant
            return
        for directory in _subdirectories(self._layout.blobs):
            yield from self.files_in(directory)

    def files_in(self, directory: Path) -> Iterator[BlobFile]:
        """Yield every file in one directory of blobs; none where there is no such directory."""
        for found in _entries(directory):
            if _name_of(found) or found.name.startswith(TEMPORARY_PREFIX):
                with suppress(FileNotFoundError):
                    yield _described(found)

    def _holds(self, path: Path, content: bytes) -> bool:
        try:
            return (
                path.stat().st_size == len(content) and read_file(path, self._guard, len(content)) == content
            )
        except OSError:
            return False


def _renewed(path: Path) -> bool:
    """Make the file young; return whether that went well, which it does not on another user's."""
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
