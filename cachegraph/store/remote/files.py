"""`RemoteFiles`: named immutable files on a server, as a shared directory has them in a file system.

    v1/e/kk/<key>              an entry (shared/entry_file.py), always signed
    v1/b/hh/<digest>           a blob
    v1/r/<signer>              what that signer has revoked (revocation/list_file.py)
    v1/u/<day>/<unique name>   a report of uses (use_log/writing.py)
    v1/l/kk/<key>.<number>     the lease for building that key (claims/lease.py)

Version history: that of the shared directory (paths.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from cachegraph.named_tuples import NamedTuple


class RemoteError(OSError):
    """An error of a server at `location`, or of the way there: `what` it said."""

    def __init__(self, location: str, what: str) -> None:
        super().__init__(f"asking {location}: {what}")
        self.location = location
        self.what = what


class WriteRefused(RemoteError):
    """An answer of a server that does not write: for lack of a right or of space. It may still be read."""


class RemoteFile(NamedTuple):
    """A file by its `name`, its `size` in bytes, and when it was written (seconds since 1970)."""

    name: str
    size: int
    written: float


class RemoteFiles(Protocol):
    """Files by name. `location` is for people, without passwords. Nothing is opened before the first use.

    Each call ends within a time that the URL sets. Methods raise RemoteError if the server fails or is too
    slow, and WriteRefused if it answers that it does not write. May be used by any
    number of threads, and in forked children.
    """

    location: str
    may_write: bool

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file in one step."""

    def create(self, name: str, content: bytes) -> bool:
        """Create a file in one step; return False if there is one. Of several callers, one creates it."""

    def remove(self, name: str) -> bool:
        """Remove a file; return False if the server knows that there was none."""

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`."""

    def wait(self, name: str, seconds: float) -> None:
        """Return when a file is removed, if the server tells, or else after `seconds`."""

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
