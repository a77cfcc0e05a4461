"""Immutable files that appear whole or not at all, also where the file system is a network's.

A file is written in the directory it will lie in, under a name of its own, made durable, closed with the close checked
(quotas are charged there), and renamed. On a network file system errors come and go: what may be gone at the next try
(ESTALE, EBUSY, ETXTBSY, a directory removed meanwhile) is tried again, a few times and not for long.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from cachegraph.store.paths import TEMPORARY_PREFIX, unique_name
from cachegraph.store.trust import Guard, link_found

T = TypeVar("T")

_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_BINARY: int = getattr(os, "O_BINARY", 0)
_PASSING = frozenset({errno.ESTALE, errno.EBUSY, errno.ETXTBSY, errno.ENOENT})
_TRIES = 3
_PAUSE = 0.01  # seconds, doubled from try to try


class Oversized(OSError):
    """A file is larger than anything that is written there: it lies at `path`, has `size` bytes, may have `most`."""

    def __init__(self, path: str | os.PathLike[str], size: int, most: int) -> None:
        super().__init__(
            errno.EFBIG, f"it has {size} bytes, and {most} at most were written", os.fspath(path)
        )
        self.path = path
        self.size = size
        self.most = most


def read_file(path: Path, guard: Guard | None, most: int) -> bytes:
    """Return what the regular file at `path` holds; raises OSError, also for anything else than a regular file.

    Nothing is read of a file that `guard` does not believe (raises Untrusted), and nothing of one of more than `most`
    bytes, for which no memory is taken either (raises Oversized).
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
    """Return what `read_file` does. What is not there, or went stale, is looked for again through its directory.

    A client may go on saying "not there" for half a minute; opening the directory makes it ask the server.
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
    """Have `path` hold `content`, whole, with the modes of `guard`, replacing what is there; raises OSError, Untrusted."""
    for attempt in range(_TRIES):
        try:
            return _publish_once(path, content, guard)
        except OSError as error:
            if error.errno not in _PASSING or attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE * 2**attempt)


def set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file whatever the umask made of it, where there are modes; raises OSError."""
    fchmod: Callable[[int, int], None] | None = getattr(os, "fchmod", None)
    if fchmod is not None:
        fchmod(descriptor, mode)


def remove_file(path: Path) -> bool:
    """Remove the file at `path` and return whether it was there; raises OSError."""
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
        return os.open(path, _READ_FLAGS | _BINARY)
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
    descriptor = os.open(path, _WRITE_FLAGS | _BINARY, mode)
    try:
        set_mode(descriptor, mode)
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
    while read <= most and (piece := os.read(descriptor, 1 << 20)):  # short reads, or it grows meanwhile
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
        os.close(os.open(directory, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0)))
