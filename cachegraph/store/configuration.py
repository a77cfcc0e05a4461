"""Files in the user's configuration directory, which decide whose code runs as this user.

    <configuration directory>/key                       the private key (signing.py)
    <configuration directory>/trusted                   whose entries are believed (trusted_signers.py)
    <configuration directory>/revocations/*             what was revoked (revocation/kept.py)
    <configuration directory>/config.toml               settings (settings_files.py, which reads it)

A file counts only if nobody else can have written it: it belongs to this user, or to root, and
neither group nor others may write it. A secret file belongs to this user, who alone may read it.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from cachegraph.store.paths import TEMPORARY_PREFIX, make_directory, unique_name
from cachegraph.user_directories import user_config_directory

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_ROOT = 0


class UnusableFile(OSError):
    """An error for a configuration file at `path` that cannot be used: what was `found`, and `advice`."""

    def __init__(self, path: Path, found: str, advice: str) -> None:
        super().__init__(errno.EPERM, found, os.fspath(path))
        self.path = path
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        return f"not using {self.path}: found {self.found}; {self.advice}"


def configuration_path(*names: str) -> Path:
    """Return the path of a file of this user, present or not. Raises NoDirectoryError."""
    return Path(user_config_directory(), *names)


def read_configuration(path: Path, most: int, is_secret: bool = False) -> bytes:
    """Return the content of a file, of at most `most` bytes. Raises UnusableFile and OSError."""
    descriptor = os.open(path, _READ)
    try:
        _check(path, os.fstat(descriptor), is_secret)
        content = b""
        while piece := os.read(descriptor, most + 1 - len(content)):
            content += piece
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise UnusableFile(path, f"more than {most} bytes", "remove it")
    return content


def create_configuration(path: Path, content: bytes) -> bool:
    """Create a file, whole and for this user alone; return False if there is one. Raises OSError."""
    temporary = _written(path, content)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def append_to_configuration(path: Path, line: bytes) -> None:
    """Add a line to a file, or create it with that line. Raises OSError.

    One write adds the line, so those of several processes are all there.
    """
    make_directory(path.parent)
    descriptor = os.open(path, _APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        is_open = size and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" * bool(is_open) + line + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _written(path: Path, content: bytes) -> Path:
    """Return a new temporary file beside `path` with that content."""
    make_directory(path.parent)
    temporary = path.parent / unique_name(TEMPORARY_PREFIX)
    descriptor = os.open(temporary, _MAKE, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    return temporary


def _check(path: Path, status: os.stat_result, is_secret: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFile(path, "no regular file", "remove it")
    mode, owners = stat.S_IMODE(status.st_mode), {os.geteuid(), *([] if is_secret else [_ROOT])}
    if status.st_uid not in owners or mode & (0o077 if is_secret else 0o022):
        found = f"mode {mode:04o} and uid {status.st_uid} as its owner"
        others = "others can have it: remove it" if is_secret else "others can have written it: remove it"
        raise UnusableFile(path, found, others)
