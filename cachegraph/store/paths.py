"""Where things are in a cache directory, and how directories and files come into being there.

    <directory>/v1/index.sqlite            the index, with -wal and -shm beside it while in use
    <directory>/v1/index.sqlite.damaged-*  an index that was set aside
    <directory>/v1/blobs/hh/<digest>       a blob, hh being the first two digits of its digest
    <directory>/v1/blobs/hh/.tmp-*         a blob being written
    <directory>/v1/locks/<name>.lock       who builds the entry of that key, or reads that blob (node_lock.py)
    <directory>/v1/locks/<key>.unkept      what was built could not be kept (unkept.py)
    <directory>/v1/damaged/*               what was found damaged, kept for a look
    <directory>/.clearing-*                a store being removed

and in one that is shared, or lies on a network file system:

    <directory>/v1/e/kk/<key>              an entry (entry_file.py), kk being the first two digits of its key
    <directory>/v1/b/hh/<digest>           a blob
    <directory>/v1/?/??/.tmp-*             either being written
    <directory>/v1/l/kk/<key>.<number>     who builds an entry (lease.py)
    <directory>/v1/l/kk/<key>.unkept       what was built could not be kept (unkept.py)
    <directory>/v1/damaged/*               what was found damaged, kept for a look

A key has 32 hexadecimal digits, a blob 80 (cachegraph/fingerprint/primitives.py); one of 32 was written by an older release, which named blobs by XXH3-128.

Version history: v1 first. An incompatible change makes v2/ beside v1/.
"""

from __future__ import annotations

import os
from pathlib import Path

STORE_VERSION = "v1"
DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
TEMPORARY_PREFIX = ".tmp-"
CLEARING_PREFIX = ".clearing-"
DAMAGED_SUFFIX = ".damaged-"

Identity = tuple[int, int]

_ENTRIES = "e"
_HEXADECIMAL = frozenset("0123456789abcdef")


class Layout:
    """The paths of the store in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / STORE_VERSION
        self.index = self.root / "index.sqlite"
        self.blobs = self.root / "blobs"
        self.locks = self.root / "locks"
        self.damaged = self.root / "damaged"

    def lock(self, name: str) -> Path:
        """Return the path of the lock of a key or of a blob; refuses (ValueError) any other name."""
        return self.locks / f"{name if is_blob(name) else _checked(name)}.lock"

    def blob(self, digest_hex: str) -> Path:
        """Return the path of a blob; refuses (ValueError) what no blob is named by."""
        return self.blobs / digest_hex[:2] / _checked_blob(digest_hex)


class SharedLayout:
    """The paths of the shared store in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / STORE_VERSION
        self.entries = self.root / _ENTRIES
        self.blobs = self.root / "b"
        self.leases = self.root / "l"
        self.damaged = self.root / "damaged"

    def entry(self, key_hex: str) -> Path:
        """Return the path of an entry; refuses (ValueError) what is not 32 lower-case hexadecimal digits."""
        return self.directory / entry_place(key_hex)

    def lease(self, key_hex: str) -> Path:
        """Return what the leases of a key are named by; refuses (ValueError) what is not 32 lower-case hexadecimal digits."""
        return self.leases / key_hex[:2] / _checked(key_hex)

    def blob(self, digest_hex: str) -> Path:
        """Return the path of a blob; refuses (ValueError) what no blob is named by."""
        return self.blobs / digest_hex[:2] / _checked_blob(digest_hex)


def entry_place(key_hex: str) -> str:
    """Return where the entry of a key lies in a shared directory; refuses (ValueError) what is no key."""
    return f"{STORE_VERSION}/{_ENTRIES}/{key_hex[:2]}/{_checked(key_hex)}"


def _checked(key_hex: str) -> str:
    if not is_key(key_hex):
        raise ValueError(f"naming a file: a key has 32 hexadecimal digits, got {key_hex!r}")
    return key_hex


def _checked_blob(name: str) -> str:
    if not (is_blob(name) or is_older_blob(name)):
        raise ValueError(f"naming a blob: it has 80 hexadecimal digits, got {name!r}")
    return name


def is_key(name: str) -> bool:
    """Return whether `name` is the digest of a key in hexadecimal, as entry files are named."""
    return len(name) == 32 and _HEXADECIMAL.issuperset(name)


def is_blob(name: str) -> bool:
    """Return whether `name` is one that this release gives to a blob."""
    return len(name) == 80 and _HEXADECIMAL.issuperset(name)


def is_older_blob(name: str) -> bool:
    """Return whether `name` is one that a release before HASH_VERSION 2 gave to a blob."""
    return len(name) == 32 and _HEXADECIMAL.issuperset(name)


def unique_name(prefix: str) -> str:
    """Return a name nobody else makes, on any host, forked children included: host, process, 64 random bits per call."""
    host = "".join(c for c in _host()[:32] if c.isalnum() or c == "-")
    return f"{prefix}{host}-{os.getpid()}-{os.urandom(8).hex()}"


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


def make_directory(path: Path, mode: int = DIRECTORY_MODE) -> None:
    """Make `path` and its missing parents, each with that mode whatever the umask. Existing ones keep their modes."""
    if path.is_dir():
        return
    make_directory(path.parent, mode)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(mode)


def identity(path: Path) -> Identity | None:
    """Return what tells one file from another at the same path, None when there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def file_size(path: Path) -> int:
    """Return the size of the file in bytes, 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
