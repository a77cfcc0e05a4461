"""Immutable files that appear whole or not at all, also on network file systems.

A file is written in its final directory under a unique temporary name, synced, closed with the
result of close checked (some file systems check quotas only then), and renamed. On network file
systems some errors are transient (ESTALE, EBUSY, ETXTBSY, a directory removed meanwhile): such an
operation is tried a few times.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from cachegraph.store.paths import TEMPORARY_PREFIX, unique_name
from cachegraph.store.trust import Guard, link_found

_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_PASSING = frozenset({errno.ESTALE, errno.EBUSY, errno.ETXTBSY, errno.ENOENT})
_TRIES = 3
_PAUSE = 0.01  # seconds, doubled from try to try


class Oversized(OSError):
    """An error for a file of `size` bytes, where at most `most` bytes are ever written."""

    def __init__(self, path: str | os.PathLike[str], size: int, most: int) -> None:
        message = f"it has {size} bytes, and at most {most} were written"
        super().__init__(errno.EFBIG, message, os.fspath(path))
        self.path = path
        self.size = size
        self.most = most


def read_file(path: Path, guard: Guard | None, most: int) -> bytes:
    """Return the content of the regular file at `path`. Raises OSError, also for anything but a regular file.

    Raises Untrusted, before reading, if `guard` does not trust the file; raises Oversized, without
    allocating memory, if it has more than `most` bytes.
    """
    descriptor = _open_to_read(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if guard is not None:
            guard.check_file(path, status)
        if status.st_size > most:
            raise Oversized(path, status.st_size, most)
        return _read_all(descriptor, path, status.st_size, most)
    finally:
        os.close(descriptor)


def read_network_file(path: Path, guard: Guard | None, most: int) -> bytes:
    """Return the content as `read_file` does, on a network file system: after ENOENT or ESTALE, try again.

    A client may report a file as missing for half a minute; opening its directory makes the client
    ask the server.
    """
    for attempt in range(_TRIES):
        try:
            return read_file(path, guard, most)
        except OSError as error:
            if error.errno not in _PASSING or attempt == _TRIES - 1:
                raise
            if error.errno == errno.ENOENT and attempt > 0:
                raise
            _reopen_directory(path.parent)
    raise AssertionError("unreachable: the last try returns or raises")


def publish_file(path: Path, content: bytes, guard: Guard) -> None:
    """Replace the file at `path` by `content` in one step. Raises OSError and Untrusted."""
    for attempt in range(_TRIES):
        try:
            return _publish_once(path, content, guard)
        except OSError as error:
            if error.errno not in _PASSING or attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE * 2**attempt)


def remove_file(path: Path) -> bool:
    """Remove the file at `path` and return True if it existed. Raises OSError."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ESTALE:  # another client removed it
            return False
        raise
    return True


def _open_to_read(path: Path) -> int:
    try:
        return os.open(path, _READ_FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise link_found(path) from error
        raise


def _publish_once(path: Path, content: bytes, guard: Guard) -> None:
    guard.make_directory(path.parent)
    temporary = path.parent / unique_name(TEMPORARY_PREFIX)
    try:
        _write_durably(temporary, content, guard.trust.file_mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _write_durably(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, _WRITE_FLAGS, mode)
    try:
        os.fchmod(descriptor, mode)  # whatever the umask is
        _write_all(descriptor, content)
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise
    os.close(descriptor)


def _read_all(descriptor: int, path: Path, size: int, most: int) -> bytes:
    content = os.read(descriptor, size + 1)
    if len(content) == size:
        return content
    pieces = [content]
    read = len(content)
    while read <= most and (piece := os.read(descriptor, 1 << 20)):  # short reads, or a growing file
        pieces.append(piece)
        read += len(piece)
    if read > most:
        raise Oversized(path, read, most)
    return b"".join(pieces)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _reopen_directory(directory: Path) -> None:
    with suppress(OSError):
        os.close(os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY))
