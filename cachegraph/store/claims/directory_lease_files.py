"""The files of a lease in a shared directory (lease.py).

A file is created with O_EXCL, which needs no lock of the file system.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from time import sleep

from cachegraph.store.files import read_file
from cachegraph.store.protocol import LARGEST_HOLDER, Pauses
from cachegraph.store.trust import Guard

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_UPDATE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class DirectoryLeaseFiles:
    """The files `path`.1, `path`.2, `path`.unkept and so on, in the directory of `guard`."""

    pauses = Pauses()

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard

    def place(self, end: str) -> str:
        """Return the path of a file."""
        return os.fspath(self._file(end))

    def ends(self) -> Collection[str]:
        """Return the ends of the existing names. Listing makes a network client ask the server."""
        prefix = f"{self._path.name}."
        try:
            names = os.listdir(self._path.parent)
        except FileNotFoundError:
            return []
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]

    def read(self, end: str) -> bytes:
        """Return a file. Raises OSError, Oversized, and Untrusted if a stranger wrote it."""
        return read_file(self._file(end), self._guard, LARGEST_HOLDER)

    def create(self, end: str, content: bytes) -> bool:
        """Create a file; return False if there is one. Raises OSError."""
        self._guard.make_directory(self._path.parent)
        mode = self._guard.trust.file_mode
        try:
            descriptor = os.open(self._file(end), _CREATE, mode)
        except FileExistsError:
            return False
        try:
            os.fchmod(descriptor, mode)
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
        return True

    def replace(self, end: str, content: bytes) -> None:
        """Write over a file that exists. Raises OSError."""
        descriptor = os.open(self._file(end), _UPDATE)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)

    def remove(self, end: str) -> None:
        """Remove a file. Raises OSError."""
        os.unlink(self._file(end))

    def wait(self, end: str, seconds: float) -> None:
        """Sleep: a directory that hosts share tells nobody what changes."""
        sleep(seconds)

    def _file(self, end: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{end}")
