"""The claim among the processes of one node: a lock on a file, which the kernel gives up when its holder dies.

    <directory>/v1/locks/<key>.lock := JSON {"host", "pid", "since"} of who holds it, or did

The lock is flock's, so the file must be on a file system of this node alone. What it holds is for people, and has no
version: a holder that cannot be read is one that has not said who it is. The file is removed when the lock is given
back; one that a killed process leaves behind locks nothing, and may be deleted at any time.

An interrupt may end a call between any two steps. So the open file is the lock's own before it is locked: when it goes, by
`release` or with the claim, the kernel gives the lock up. A forked child closes its copy, or it would hold the lock
for as long as it lives.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

from cachegraph.forking import leave_to_parent
from cachegraph.store.claims.claims import MOST_SAID, Holder
from cachegraph.store.claims.processes import host_name
from cachegraph.store.paths import identity
from cachegraph.store.shared.files import read_file, set_mode
from cachegraph.store.trust import Guard
from cachegraph.store.unkept import SUFFIX, UnkeptMark

_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_TRIES = 4


class NodeLock:
    """The claim whose lock file is at `path`, in the directory of `guard`. Making one touches nothing."""

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard
        self._mark = UnkeptMark(path.with_suffix(SUFFIX), guard)
        self._file: FileIO | None = None
        self._pid = os.getpid()

    def acquire(self) -> Holder | None:
        """Take the lock, or return who has it; raises OSError where the file cannot be made or locked, and Unkept."""
        self._mark.check()
        self._guard.make_directory(self._path.parent)
        for _ in range(_TRIES):
            self._open()
            if not self._try_to_lock():
                self._close()
                return self._holder()
            if self._is_named():
                with suppress(OSError):
                    self._sign()
                return None
            self._close()  # its holder removed the file between opening and locking
        return Holder()

    def mark(self, unkept: bool) -> None:
        """Have the mark beside the lock say whether what was built could not be kept; never raises OSError."""
        self._mark.put(unkept)

    def release(self) -> None:
        """Give the lock back; in a forked child, whose parent holds it, do nothing."""
        if self._file is None or self._pid != os.getpid():
            return
        with suppress(OSError):
            os.unlink(self._path)  # still locked: who locks a file that has lost its name begins again
        self._close()

    def leave_to_parent(self) -> None:
        """Close a forked child's copy of the file; the parent's lock stays."""
        self._close()

    def _open(self) -> None:
        leave_to_parent(self)
        self._pid = os.getpid()
        mode = self._guard.trust.file_mode
        self._file = FileIO(self._path, "r+", opener=lambda path, _: os.open(path, _OPEN, mode))
        with suppress(PermissionError):  # another user's file, which its mode lets this one lock
            set_mode(self._file.fileno(), mode)

    def _try_to_lock(self) -> bool:
        import fcntl  # Windows has none, and no node lock

        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _is_named(self) -> bool:
        """Whether what is locked is still the file at the path, and not one that its last holder removed."""
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        return (mine.st_dev, mine.st_ino) == identity(self._path)

    def _sign(self) -> None:
        """Write who holds the lock, over what the holder before may have left."""
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
            return Holder.from_document(json.loads(read_file(self._path, self._guard, MOST_SAID)))
        except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return Holder()
