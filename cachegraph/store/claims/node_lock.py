"""A claim among the processes of one node: a file lock, which the kernel releases when its holder dies.

    <directory>/v1/locks/<key>.lock := JSON {"host", "pid", "since"} of the current or last holder

The lock is taken with flock, so the file must be on a file system of this node alone. The content
is for people and has no version; a holder that cannot be read is shown as unidentified. `release`
removes the file. A file left by a killed process locks nothing, and may be deleted at any time.

An interrupt may end a call between any two steps. So the object owns the open file before it locks
it: when `release` closes the file, or the object is dropped, the kernel releases the lock. A forked
child closes its copy, which would otherwise hold the lock as long as the child lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

from cachegraph.forking import leave_to_parent
from cachegraph.processes import host_name
from cachegraph.store.claims.unkept import SUFFIX, UnkeptMark
from cachegraph.store.files import read_file
from cachegraph.store.paths import identity
from cachegraph.store.protocol import LARGEST_HOLDER, Holder, Pauses
from cachegraph.store.trust import Guard

_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_TRIES = 4


class NodeLock:
    """The claim with that lock file, below the directory of `guard`. Creating it opens nothing."""

    pauses = Pauses()
    may_be_elsewhere = False

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard
        self._mark = UnkeptMark(path.with_suffix(SUFFIX), guard)
        self._file: FileIO | None = None
        self._pid = os.getpid()

    def acquire(self) -> Holder | None:
        """Take the lock and return None, or return its holder.

        Raises OSError if the file cannot be created or locked, and Unkept if the mark is present.
        """
        self._mark.check()
        self._guard.make_directory(self._path.parent)
        for _ in range(_TRIES):
            self._open()
            if not self._try_to_lock():
                self._close()
                return self._holder()
            if self._is_named():
                with suppress(OSError):
                    self._write_holder()
                return None
            self._close()  # its holder removed the file between opening and locking
        return Holder()

    def wait(self, seconds: float) -> None:
        """Sleep: the next try tells whether the lock is free."""
        time.sleep(seconds)

    def mark(self, unkept: bool) -> None:
        """Mark whether the last build could not be stored. Never raises OSError."""
        self._mark.put(unkept)

    def release(self) -> None:
        """Release the lock; in a forked child, whose parent holds it, do nothing."""
        if self._file is None or self._pid != os.getpid():
            return
        with suppress(OSError):
            os.unlink(self._path)  # still locked: a process that locks an unlinked file starts over
        self._close()

    def leave_to_parent(self) -> None:
        """Close a forked child's copy of the file; the parent keeps the lock."""
        self._close()

    def _open(self) -> None:
        leave_to_parent(self)
        self._pid = os.getpid()
        mode = self._guard.trust.file_mode
        self._file = FileIO(self._path, "r+", opener=lambda path, _: os.open(path, _OPEN, mode))
        with suppress(PermissionError):  # another user's file, which its mode lets this one lock
            os.fchmod(self._file.fileno(), mode)

    def _try_to_lock(self) -> bool:
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _is_named(self) -> bool:
        """Return True unless the last holder has removed the file that is locked now."""
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        return (mine.st_dev, mine.st_ino) == identity(self._path)

    def _write_holder(self) -> None:
        """Write this process into the file, over what the last holder may have left."""
        assert self._file is not None
        content = json.dumps({"host": host_name(), "pid": os.getpid(), "since": time.time()}).encode()
        self._file.truncate(0)
        self._file.write(content)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _holder(self) -> Holder:
        try:
            return Holder.from_document(json.loads(read_file(self._path, self._guard, LARGEST_HOLDER)))
        except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return Holder()
