"""Writing use logs: one small append for each process, and never an error that anybody must handle.

    <directory>/v1/uses                     the log of a local store
    <directory>/v1/uses.reported-<digest>   when this node last reported to a remote: seconds since 1970, as
                                            text; the digest is that of the remote's location
    <directory>/v1/u/<node>-<uid>           in a shared directory: the log of one user on one node
    v1/u/<day>/<unique name>                on a remote: the blocks of one report, never changed
    .../<log>.older                         a log that had grown to LARGEST_LOG when it was renamed

A block is appended by one write with O_APPEND, which one kernel does not tear; so a node has a log of
its own in a shared directory. Processes of a node report to a remote together, every REPORT_SECONDS:
a server is asked for one file, not for one per process. Lost blocks are lost usage, nothing else.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cachegraph.fingerprint.primitives import digest
from cachegraph.processes import boot_id, host_name
from cachegraph.store.files import read_file
from cachegraph.store.paths import STORE_VERSION, unique_name
from cachegraph.store.trust import Guard
from cachegraph.store.use_log.blocks import read_blocks

LARGEST_LOG = 512 * 1024
"""Bytes at which a log is renamed to the older one, which it replaces: a log has at most twice as many."""
LARGEST_FILE = 2 * LARGEST_LOG
"""Bytes of a log that is read; a larger one was written by somebody else."""
REPORT_SECONDS = 600.0
OLDER = ".older"
REPORTS = f"{STORE_VERSION}/u"
"""The folder of all reports, relative to the top of a remote."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LONGEST_TIME = 64


class UseLog:
    """The log at `path`, below the directory of `guard`. Creating it opens nothing."""

    def __init__(self, path: Path, guard: Guard) -> None:
        self.path = path
        self.older = path.with_name(f"{path.name}{OLDER}")
        self.guard = guard

    def append(self, block: bytes) -> None:
        """Append `block`. Raises OSError; the log then ends in a part of it, which readers skip."""
        self.guard.make_directory(self.path.parent)
        with suppress(FileNotFoundError):
            if os.lstat(self.path).st_size > LARGEST_LOG:
                os.replace(self.path, self.older)
        descriptor = os.open(self.path, _APPEND, self.guard.trust.file_mode)
        try:
            status = os.fstat(descriptor)
            self._refuse_others_file(status)
            if stat.S_IMODE(status.st_mode) != self.guard.trust.file_mode:  # the umask took some of it
                os.fchmod(descriptor, self.guard.trust.file_mode)
            os.write(descriptor, block)
        finally:
            os.close(descriptor)

    def content(self) -> bytes:
        """Return the older log and this one; a file that is missing or cannot be read is left out."""
        found = []
        for path in (self.older, self.path):
            with suppress(OSError):
                found.append(read_file(path, self.guard, LARGEST_FILE))
        return b"".join(found)

    def report(self, location: str, send: Callable[[bytes], object]) -> bool:
        """Send what was logged since the last report to `location`, if that was REPORT_SECONDS ago.

        Returns False if there is nothing to do, or another process is at it. Raises OSError and what `send`
        raises; these blocks are not sent again.
        """
        name = f"{self.path.name}.reported-{digest(location.encode()).hex()}"
        descriptor = os.open(self.path.with_name(name), _OPEN, self.guard.trust.file_mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            last, now = _time_in(descriptor), time.time()
            if last <= now < last + REPORT_SECONDS:
                return False
            os.pwrite(descriptor, f"{now:<{_LONGEST_TIME}.6f}".encode(), 0)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        content = self._since(last)
        if content:
            send(content)
        return bool(content)

    def _since(self, last: float) -> bytes:
        """Return the blocks that were written after `last`, the newest LARGEST_LOG bytes of them."""
        blocks, size = [], 0
        for block in reversed(list(read_blocks(self.content()))):
            size += len(block.content)
            if block.written <= last or size > LARGEST_LOG:
                break
            blocks.append(block.content)
        return b"".join(reversed(blocks))

    def _refuse_others_file(self, status: os.stat_result) -> None:
        # In a directory that a group writes to, the name may be that of any file of anybody.
        ours = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
        if not ours:
            raise OSError(f"appending to {self.path}: it is no file of this user's alone")


def node_log(folder: Path, guard: Guard) -> UseLog:
    """Return the log of this user on this node in the `folder` of a shared store."""
    node = digest((boot_id() or host_name()).encode()).hex()
    return UseLog(folder / f"{node}-{os.geteuid()}", guard)


def report_name(now: float) -> str:
    """Return a new name for a report made at `now` (seconds since 1970)."""
    return f"{REPORTS}/{int(now // 86400)}/{unique_name('')}"


def _time_in(descriptor: int) -> float:
    try:
        return float(os.pread(descriptor, _LONGEST_TIME, 0))
    except ValueError:  # a new file, or a damaged one
        return 0.0
