"""Blobs: immutable files named by the XXH3-128 of what they hold, so that each read can check itself.

A blob is written beside its place under a name of its own, made durable, and renamed: nobody ever sees half of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cachegraph.fingerprint.hasher import digest
from cachegraph.store.paths import FILE_MODE, TEMPORARY_PREFIX, Layout, is_digest, make_directory, unique_name

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class BlobFile(NamedTuple):
    """A file under blobs/: its path, size in bytes, time of last change; `digest` is empty for a temporary file."""

    path: Path
    digest: str
    size: int
    changed: float


class Blobs:
    """The blob files of one cache directory."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def read(self, digest_hex: str) -> bytes | None:
        """Return what the blob holds, None when that is not what its name says; raises OSError when it cannot be read."""
        content = _read_file(self._layout.blob(digest_hex))
        return content if digest(content).hex() == digest_hex else None

    def write(self, content: bytes) -> str:
        """Make sure there is a sound blob of `content`, young enough not to be pruned; return its digest (hex)."""
        digest_hex = digest(content).hex()
        path = self._layout.blob(digest_hex)
        if self._holds(path, content):
            os.utime(path)
        else:
            _write_file(path, content)
        return digest_hex

    def exists(self, digest_hex: str) -> bool:
        """Return whether there is a blob of that digest, sound or not."""
        return self._layout.blob(digest_hex).exists()

    def files(self) -> Iterator[BlobFile]:
        """Yield every file under blobs/, those left by killed writers included."""
        for directory in _subdirectories(self._layout.blobs):
            for found in _entries(directory):
                if is_digest(found.name) or found.name.startswith(TEMPORARY_PREFIX):
                    with suppress(FileNotFoundError):
                        yield _described(found)

    def _holds(self, path: Path, content: bytes) -> bool:
        try:
            return path.stat().st_size == len(content) and _read_file(path) == content
        except OSError:
            return False


def _read_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NOFOLLOW | _BINARY)
    with open(descriptor, "rb") as file:
        return file.read()


def _write_file(path: Path, content: bytes) -> None:
    make_directory(path.parent)
    temporary = path.parent / unique_name(TEMPORARY_PREFIX)
    try:
        _write_durably(temporary, content)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def _write_durably(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | _BINARY, FILE_MODE)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _described(found: os.DirEntry[str]) -> BlobFile:
    status = found.stat(follow_symlinks=False)
    name = found.name if is_digest(found.name) else ""
    return BlobFile(Path(found.path), name, status.st_size, status.st_mtime)


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
