"""The trust list: whose entries `CACHEGRAPH_TRUST=signed` believes, besides this user's own.

`cachegraph key trust` adds to it; it is a file in the user's configuration directory:

    trusted := line*
    line    := (public key [space name] | "#" comment | nothing) LF         (a public key as in signing.py)

Version history: none yet. To stop trusting a key, remove its line.
"""

from __future__ import annotations

from pathlib import Path

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.configuration import (
    UnusableFile,
    append_to_configuration,
    configuration_path,
    read_configuration,
)
from cachegraph.store.paths import is_signer
from cachegraph.store.signing import public_key, public_key_text

_LARGEST = 1 << 20


class TrustedSigner(NamedTuple):
    """A public key (32 bytes), and the name that this user gave it, or an empty text."""

    key: bytes
    name: str


def trust_list_path() -> Path:
    """Return the path of this user's trust list, present or not. Raises NoDirectoryError."""
    return configuration_path("trusted")


def trusted_signers() -> list[TrustedSigner]:
    """Return the signers of the trust list, in its order; none if there is no list.

    Raises UnusableFile for a list that others can have written or that has a line of something else,
    NoDirectoryError, OSError.
    """
    path = trust_list_path()
    try:
        text = read_configuration(path, _LARGEST).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    found = (_signer(path, number, line) for number, line in enumerate(text.splitlines(), 1))
    return [signer for signer in found if signer is not None]


def trust_signer(signer: TrustedSigner) -> bool:
    """Add a signer to the trust list; return False if the key is there. Raises as `trusted_signers` does,
    and ValueError for a name of several lines."""
    if not signer.name.isprintable():
        raise ValueError(f"naming a key: {signer.name!r} is not one line of visible characters")
    if any(listed.key == signer.key for listed in trusted_signers()):
        return False
    line = f"{public_key_text(signer.key)} {signer.name}".rstrip()
    append_to_configuration(trust_list_path(), line.encode())
    return True


def public_key_given(text: str) -> bytes:
    """Return the public key that a user gives: its text, its 64 hexadecimal digits, or a file with one key.

    Raises ValueError, and OSError if the file cannot be read.
    """
    if is_signer(text.lower()):
        return bytes.fromhex(text)
    if text.startswith("ed25519:"):
        return public_key(text)
    with open(text, "rb") as file:
        lines = file.read(_LARGEST).decode("utf-8", "replace").splitlines()
    found = [line.split()[0] for line in lines if line.startswith("ed25519:")]
    if len(found) != 1:
        raise ValueError(f"reading the key in {text}: found {len(found)} public keys; give a file with one")
    return public_key(found[0])


def _signer(path: Path, number: int, line: str) -> TrustedSigner | None:
    key, _, name = line.strip().partition(" ")
    if not key or key.startswith("#"):
        return None
    try:
        return TrustedSigner(public_key(key), name.strip())
    except ValueError:
        advice = "`cachegraph key trust` adds keys; correct or remove the line"
        raise UnusableFile(path, f"no public key in line {number}", advice) from None
