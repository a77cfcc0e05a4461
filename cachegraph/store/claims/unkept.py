"""A mark beside a lock: the last build could not be stored, so waiting for the next one is useless.

    <directory>/v1/locks/<key>.unkept      beside a lock on this node (node_lock.py)

The file is empty, because most full disks still have inodes. A process that finds the key stored,
or stores it, removes the mark; pruning removes it after a grace period. If it is deleted early,
processes wait for one more build.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cachegraph.store.protocol import Unkept
from cachegraph.store.trust import Guard

SUFFIX = ".unkept"
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class UnkeptMark:
    """The mark at `path` in the directory of `guard`. Creating the object does not access the disk."""

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard

    def check(self) -> None:
        """Raise Unkept if the mark is present; raise no other error."""
        if os.path.lexists(self._path):
            raise Unkept(self._path)

    def put(self, unkept: bool) -> None:
        """Create the mark, or remove it. Never raises OSError: without a mark, others wait in vain."""
        with suppress(OSError):
            if unkept:
                os.close(os.open(self._path, _MAKE, self._guard.trust.file_mode))
            else:
                os.unlink(self._path)
