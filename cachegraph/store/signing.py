"""Signatures: proof of who published an entry where others can write.

Owner and mode prove nothing there. Each user has one Ed25519 key. `cachegraph key new` creates it in
the user's configuration directory, with mode 0600:

    key file := "ed25519-private:" text LF "ed25519:" text LF       (the second, public, key is for others)
    text     := 32 bytes as URL-safe base64 without padding: 43 characters

Version history: none yet. The package cryptography (40 ms) is imported only to sign or verify, not
to read the copy of an entry on this node.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.configuration import (
    UnusableFile,
    configuration_path,
    create_configuration,
    read_configuration,
)

_PUBLIC = "ed25519:"
_PRIVATE = "ed25519-private:"
_KEY_FILE = re.compile(rf"{_PRIVATE}([\w-]{{43}})\n{_PUBLIC}([\w-]{{43}})\n", re.ASCII)
_LONGEST = 1024
_ADVICE = "remove it and run `cachegraph key new`"

SIGNER_SIZE = 32
SIGNATURE_SIZE = 64


class Signature(NamedTuple):
    """The public key of the signer (32 bytes), and the signature (64 bytes)."""

    signer: bytes
    signature: bytes


def key_path() -> Path:
    """Return the path of this user's key, present or not. Raises NoDirectoryError."""
    return configuration_path("key")


def own_public_key() -> bytes | None:
    """Return this user's public key, or None. Raises UnusableFile, NoDirectoryError, OSError."""
    try:
        return _own_key()[1]
    except FileNotFoundError:
        return None


def make_own_key() -> bytes:
    """Create this user's key and return the public half; of several processes, one creates it.

    Raises FileExistsError if there is a key, usable or not, NoDirectoryError, OSError.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    made = Ed25519PrivateKey.generate()
    private, public = made.private_bytes_raw(), made.public_key().public_bytes_raw()
    content = f"{_PRIVATE}{_text(private)}\n{public_key_text(public)}\n".encode()
    if not create_configuration(key_path(), content):
        raise FileExistsError(f"making a key: there is one in {key_path()}; `cachegraph key show` prints it")
    return public


def sign(message: bytes) -> Signature:
    """Return this user's signature of `message`.

    Raises FileNotFoundError without a key, else what own_public_key raises.
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
    try:
        found = _bytes(text.removeprefix(_PUBLIC))
    except ValueError:  # no base64
        found = b""
    if len(found) != SIGNER_SIZE or public_key_text(found) != text:
        raise ValueError(f"reading a public key: found {text!r}; `cachegraph key show` prints one")
    return found


def _own_key() -> tuple[bytes, bytes]:
    """Return the private and the public key of this user, from the key file."""
    path = key_path()
    content = read_configuration(path, _LONGEST, is_secret=True)
    matched = _KEY_FILE.fullmatch(content.decode("ascii", "replace"))
    if matched is None:
        raise UnusableFile(path, "something else than a key", _ADVICE)
    return _bytes(matched[1]), _bytes(matched[2])


def _text(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
