"""The claim among the processes of one node: a lock on a file, which the kernel gives up when its holder dies.

    <directory>/v1/locks/<key>.lock := JSON {"host", "pid", "since"} of who holds it, or did

The lock is flock's, so the file must be on a file system of this node alone. What it holds is for people, and has no
version: a holder that cannot be read is one that has not said who it is. The file is removed when the lock is given
back; one that a killed process leaves behind locks nothing, and may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.store.claims import MOST_SAID, Holder
from cachegraph.store.files import read_file
from cachegraph.store.processes import host_name
from cachegraph.store.trust import Guard
from cachegraph.store.unkept import SUFFIX, UnkeptMark

if TYPE_CHECKING:
    from filelock import BaseFileLock


_REWRITE = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class NodeLock:
    """The claim whose lock file is at `path`, in the directory of `guard`. Making one touches nothing."""

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard
        self._mark = UnkeptMark(path.with_suffix(SUFFIX), guard)
        self._lock: BaseFileLock | None = None
        self._pid = 0

    def acquire(self) -> Holder | None:
        """Take the lock, or return who has it; raises OSError where the file cannot be made or locked, and Unkept."""
        from filelock import FileLock, Timeout

        self._mark.check()
        self._guard.make_directory(self._path.parent)
        lock = FileLock(
            self._path, mode=self._guard.trust.file_mode, thread_local=False, fallback_to_soft=False
        )
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return self._holder()
        self._lock, self._pid = lock, os.getpid()
        with suppress(OSError):
            self._sign()
        return None

    def mark(self, unkept: bool) -> None:
        """Have the mark beside the lock say whether what was built could not be kept; never raises OSError."""
        self._mark.put(unkept)

    def release(self) -> None:
        """Give the lock back; in a forked child, whose parent holds it, do nothing."""
        lock, self._lock = self._lock, None
        if lock is None or self._pid != os.getpid():
            return
        with suppress(OSError):
            os.unlink(self._path)  # still locked: who locks a file that has lost its name begins again
        with suppress(OSError):
            lock.release()

    def _sign(self) -> None:
        """Write who holds the lock, over what the holder before may have left."""
        content = json.dumps({"host": host_name(), "pid": os.getpid(), "since": time.time()}).encode()
        descriptor = os.open(self._path, _REWRITE)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)

    def _holder(self) -> Holder:
        try:
            return Holder.from_document(json.loads(read_file(self._path, self._guard, MOST_SAID)))
        except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return Holder()
