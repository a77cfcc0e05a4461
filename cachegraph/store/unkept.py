"""A mark beside a claim: what was built under it could not be kept, so it is of no use to wait for who builds it next.

    <directory>/v1/locks/<key>.unkept      beside a lock on this node (node_lock.py)
    <directory>/v1/l/kk/<key>.unkept       beside the leases of a shared directory (lease.py)

An empty file: an inode is to be had on most disks that are full. Whoever finds the key stored, or stores it, removes the
mark; so does pruning, after a grace period. It may be deleted at any time: then one more build is waited for.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from cachegraph.store.trust import Guard

SUFFIX = ".unkept"
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class Unkept(OSError):
    """There is no claim to be had: what was built under it last could not be kept. `mark` is what says so."""

    def __init__(self, mark: str | os.PathLike[str]) -> None:
        super().__init__(
            errno.EBUSY, "what was built last could not be kept: nobody waits for it", os.fspath(mark)
        )
        self.mark = mark


class UnkeptMark:
    """The mark at `path`, in the directory of `guard`. Making one touches nothing."""

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard

    def check(self) -> None:
        """Raise Unkept if the mark is there; raises no other error."""
        if os.path.lexists(self._path):
            raise Unkept(self._path)

    def put(self, unkept: bool) -> None:
        """Have the mark there, or not. Never raises OSError: where it cannot be made, others wait in vain."""
        with suppress(OSError):
            if unkept:
                os.close(os.open(self._path, _MAKE, self._guard.trust.file_mode))
            else:
                os.unlink(self._path)
