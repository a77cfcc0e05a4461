"""The files of a lease on a server (claims/lease.py)."""

from __future__ import annotations

import errno
from collections.abc import Collection
from itertools import islice

from cachegraph.store.paths import lease_place
from cachegraph.store.protocol import LARGEST_HOLDER, Pauses
from cachegraph.store.remote.files import RemoteError, RemoteFiles

MOST_LEASES = 1000
"""Those of one key. Killed holders leave one each until a successor releases; others may leave millions."""


class RemoteLeaseFiles:
    """The files of the lease of a key (hexadecimal) in `files`. Methods raise OSError."""

    pauses = Pauses(0.05, 2.0)
    """Each try of a waiting process is two or three requests, and thousands of nodes may wait."""

    def __init__(self, files: RemoteFiles, key_hex: str) -> None:
        self._files = files
        self._prefix = f"{lease_place(key_hex)}."

    def place(self, end: str) -> str:
        """Return the URL of a file."""
        return f"{self._files.location}/{self._prefix}{end}"

    def ends(self) -> Collection[str]:
        """Return the ends of the existing names. Raises RemoteError above MOST_LEASES."""
        listed = list(islice(self._files.listed(self._prefix), MOST_LEASES + 1))
        if len(listed) > MOST_LEASES:
            raise RemoteError(self._files.location, f"one key has more than {MOST_LEASES} leases")
        return [file.name.removeprefix(self._prefix) for file in listed]

    def read(self, end: str) -> bytes:
        """Return a file. Raises FileNotFoundError and Oversized, too."""
        return self._files.read(self._prefix + end, LARGEST_HOLDER)

    def create(self, end: str, content: bytes) -> bool:
        """Create a file; return False if there is one."""
        return self._files.create(self._prefix + end, content)

    def replace(self, end: str, content: bytes) -> None:
        """Replace a file. Raises FileNotFoundError if it was removed, unless that happens meanwhile."""
        self.read(end)
        self._files.write(self._prefix + end, content)

    def remove(self, end: str) -> None:
        """Remove a file. Raises FileNotFoundError if there is none."""
        if not self._files.remove(self._prefix + end):
            raise FileNotFoundError(errno.ENOENT, "removed already", self.place(end))

    def wait(self, end: str, seconds: float) -> None:
        """Return when the file is removed, if the server tells, or else after `seconds`."""
        self._files.wait(self._prefix + end, seconds)
