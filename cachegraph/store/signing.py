"""Signatures: proof of who published an entry in a directory that a group writes to.

Owner and mode prove nothing there. Each user has one Ed25519 key. `cachegraph key` creates it in
the user's configuration directory, with mode 0600:

    key file := "ed25519-private:" text LF "ed25519:" text LF       (the second, public, key is for others)
    text     := 32 bytes as URL-safe base64 without padding: 43 characters

Version history: none yet. The package cryptography (40 ms) is imported only to sign or verify, not
to read the copy of an entry on this node.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from cachegraph.named_tuples import NamedTuple
from cachegraph.settings import user_config_directory
from cachegraph.store.paths import TEMPORARY_PREFIX, make_directory, unique_name

_PUBLIC = "ed25519:"
_PRIVATE = "ed25519-private:"
_KEY_FILE = re.compile(rf"{_PRIVATE}([\w-]{{43}})\n{_PUBLIC}([\w-]{{43}})\n", re.ASCII)
_LONGEST = 1024

SIGNER_SIZE = 32
SIGNATURE_SIZE = 64

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class UnusableKey(OSError):
    """An error for a key file at `path` that cannot be used: what was `found`."""

    def __init__(self, path: Path, found: str) -> None:
        super().__init__(errno.EPERM, found, os.fspath(path))
        self.path = path
        self.found = found

    def __str__(self) -> str:
        return f"not using the key {self.path}: found {self.found}; remove it and run `cachegraph key`"


class Signature(NamedTuple):
    """The public key of the signer (32 bytes), and the signature (64 bytes)."""

    signer: bytes
    signature: bytes


def key_path() -> Path:
    """Return the path of this user's key, present or not. Raises NoDirectoryError."""
    return Path(user_config_directory(), "key")


def own_public_key() -> bytes | None:
    """Return this user's public key, or None. Raises UnusableKey, NoDirectoryError, OSError."""
    try:
        return _own_key()[1]
    except FileNotFoundError:
        return None


def make_own_key() -> bytes:
    """Return this user's public key; create it first if there is none.

    If several processes create it, one wins. Raises UnusableKey for a file that others can read or that
    is no key, NoDirectoryError, OSError.
    """
    found = own_public_key()
    if found is not None:
        return found
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    made = Ed25519PrivateKey.generate()
    private, public = made.private_bytes_raw(), made.public_key().public_bytes_raw()
    _publish(key_path(), f"{_PRIVATE}{_text(private)}\n{public_key_text(public)}\n".encode())
    return _own_key()[1]


def sign(message: bytes) -> Signature:
    """Return this user's signature of `message`.

    Raises FileNotFoundError without a key, else what make_own_key raises.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(_own_key()[0])
    return Signature(private.public_key().public_bytes_raw(), private.sign(message))


def is_signed(signature: Signature, message: bytes) -> bool:
    """Return True if the holder of the key in `signature` signed `message`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(signature.signer).verify(signature.signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key_text(public: bytes) -> str:
    """Return a public key as it is listed in CACHEGRAPH_TRUST."""
    return _PUBLIC + _text(public)


def public_key(text: str) -> bytes:
    """Return the public key in `text`, as `public_key_text` writes it. Raises ValueError."""
    found = _bytes(text.removeprefix(_PUBLIC))
    if len(found) != SIGNER_SIZE or public_key_text(found) != text:
        raise ValueError(f"reading a public key: found {text!r}; `cachegraph key` prints one")
    return found


def _own_key() -> tuple[bytes, bytes]:
    """Return the private and the public key of this user, from the key file."""
    path = key_path()
    descriptor = os.open(path, _READ)
    try:
        _check_file(path, os.fstat(descriptor))
        content = os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)
    matched = _KEY_FILE.fullmatch(content.decode("ascii", "replace"))
    if matched is None:
        raise UnusableKey(path, "something else than a key")
    return _bytes(matched[1]), _bytes(matched[2])


def _check_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnusableKey(path, "no regular file")
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid() or mode & 0o077:
        raise UnusableKey(path, f"mode {mode:04o} and uid {status.st_uid} as its owner: others can have it")


def _publish(path: Path, content: bytes) -> None:
    """Create the file at `path`, whole and for this user alone, unless it exists by then."""
    make_directory(path.parent)
    temporary = path.parent / unique_name(TEMPORARY_PREFIX)
    descriptor = os.open(temporary, _MAKE, 0o600)
    try:
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _text(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
