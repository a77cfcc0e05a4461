"""Paths in a cache directory, and the creation of directories and unique names there.

    <directory>/v1/index.sqlite            the index, with -wal and -shm beside it while in use
    <directory>/v1/index.sqlite.damaged-*  a quarantined index
    <directory>/v1/blobs/hh/<digest>       a blob, hh being the first two digits of its digest
    <directory>/v1/blobs/hh/.tmp-*         a blob being written
    <directory>/v1/locks/<name>.lock       the lock for building that key or reading that blob (node_lock.py)
    <directory>/v1/locks/<key>.unkept      a mark: the last build could not be stored (unkept.py)
    <directory>/v1/damaged/*               the quarantine of damaged payloads, entries and blobs
    <directory>/v1/revocations             what was done about revocation lists (revocation/node.py)
    <directory>/v1/uses*                   the use log (use_log/writing.py)
    <directory>/v1/sources/<path>          the digest of source, <path> being that of its directory's path
                                           (fingerprint/source_records.py)
    <directory>/v1/modules/<name>          the bytecode of the modules of a hit (hit_modules.py)
    <directory>/.clearing-*                a store being removed

and in a directory that is shared, or lies on a network file system:

    <directory>/v1/e/kk/<key>              an entry (entry_file.py), kk being the first two digits of its key
    <directory>/v1/b/hh/<digest>           a blob
    <directory>/v1/?/??/.tmp-*             an entry or a blob being written
    <directory>/v1/r/<signer>              what that signer has revoked (revocation/list_file.py)
    <directory>/v1/l/kk/<key>.<number>     the lease for building that key (lease.py)
    <directory>/v1/l/kk/<key>.unkept       a mark: the last build could not be stored (lease.py)
    <directory>/v1/u/<node>-<uid>*         the use log of a user on a node (use_log/writing.py)
    <directory>/v1/damaged/*               the quarantine

A key has 32 hexadecimal digits, a blob 80; a blob with 32 digits was written by an older release,
which named blobs by their XXH3-128.

Version history: v1 is the first. An incompatible change makes v2/ beside v1/.
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
_BLOBS = "b"
ENTRIES = f"{STORE_VERSION}/{_ENTRIES}"
BLOBS = f"{STORE_VERSION}/{_BLOBS}"
"""The folder of all entries, relative to the shared directory."""
REVOCATIONS = f"{STORE_VERSION}/r"
"""The folder of all revocation lists, relative to the shared directory."""
LEASES = f"{STORE_VERSION}/l"
"""The folder of all leases, relative to the shared directory."""
_HEXADECIMAL = frozenset("0123456789abcdef")


class Layout:
    """The paths of the store in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / STORE_VERSION
        self.index = self.root / "index.sqlite"
        self.blobs = self.root / "blobs"
        self.locks = self.root / "locks"
        self.uses = self.root / "uses"
        self.sources = self.root / "sources"
        self.modules = self.root / "modules"
        self.revocations = self.root / "revocations"
        self.damaged = self.root / "damaged"

    def lock(self, name: str) -> Path:
        """Return the path of the lock of a key or of a blob. Raises ValueError for any other name."""
        return self.locks / f"{name if is_blob(name) else _checked(name)}.lock"

    def blob(self, digest_hex: str) -> Path:
        """Return the path of a blob. Raises ValueError for any other name."""
        return self.blobs / digest_hex[:2] / _checked_blob(digest_hex)


class SharedLayout:
    """The paths of the shared store in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / STORE_VERSION
        self.entries = self.root / _ENTRIES
        self.blobs = self.root / _BLOBS
        self.leases = directory / LEASES
        self.revocations = directory / REVOCATIONS
        self.uses = self.root / "u"
        self.damaged = self.root / "damaged"

    def entry(self, key_hex: str) -> Path:
        """Return the path of an entry.

        Raises ValueError unless the key has 32 lower-case hexadecimal digits.
        """
        return self.directory / entry_place(key_hex)

    def lease(self, key_hex: str) -> Path:
        """Return the path, without generation, of the leases of a key. Raises ValueError as `entry` does."""
        return self.directory / lease_place(key_hex)

    def blob(self, digest_hex: str) -> Path:
        """Return the path of a blob. Raises ValueError for any other name."""
        return self.blobs / digest_hex[:2] / _checked_blob(digest_hex)


def entry_place(key_hex: str) -> str:
    """Return the path of an entry relative to the shared directory. Raises ValueError."""
    return f"{ENTRIES}/{key_hex[:2]}/{_checked(key_hex)}"


def blob_place(digest_hex: str) -> str:
    """Return the path of a blob relative to the shared directory. Raises ValueError."""
    return f"{BLOBS}/{digest_hex[:2]}/{_checked_blob(digest_hex)}"


def lease_place(key_hex: str) -> str:
    """Return the path, without generation, of the leases of a key. Raises ValueError."""
    return f"{LEASES}/{key_hex[:2]}/{_checked(key_hex)}"


def revocation_place(signer: bytes) -> str:
    """Return the path of the revocation list of a public key, relative to the shared directory."""
    return f"{REVOCATIONS}/{signer.hex()}"


def _checked(key_hex: str) -> str:
    if not is_key(key_hex):
        raise ValueError(f"naming a file: a key has 32 hexadecimal digits, got {key_hex!r}")
    return key_hex


def _checked_blob(name: str) -> str:
    if not (is_blob(name) or is_older_blob(name)):
        raise ValueError(f"naming a blob: it has 80 hexadecimal digits, got {name!r}")
    return name


def is_key(name: str) -> bool:
    """Return True if `name` is the digest of a key in hexadecimal, the name of an entry file."""
    return len(name) == 32 and _HEXADECIMAL.issuperset(name)


def is_blob(name: str) -> bool:
    """Return True if `name` is a blob's name of this release."""
    return len(name) == 80 and _HEXADECIMAL.issuperset(name)


def is_older_blob(name: str) -> bool:
    """Return True if `name` is a blob's name of a release before HASH_VERSION 2."""
    return len(name) == 32 and _HEXADECIMAL.issuperset(name)


def is_signer(name: str) -> bool:
    """Return True if `name` is a public key in hexadecimal, the name of a revocation list."""
    return len(name) == 64 and _HEXADECIMAL.issuperset(name)


def unique_name(prefix: str) -> str:
    """Return a name unique across hosts and forks: host, process, and 64 random bits per call."""
    host = "".join(c for c in os.uname().nodename[:32] if c.isalnum() or c == "-")
    return f"{prefix}{host}-{os.getpid()}-{os.urandom(8).hex()}"


def make_directory(path: Path, mode: int = DIRECTORY_MODE) -> None:
    """Create `path` and its missing parents with that mode, whatever the umask is."""
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
    """Return the device and inode of the file, which differ after it was replaced; None if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def file_size(path: Path) -> int:
    """Return the size of the file in bytes, 0 if it is missing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
