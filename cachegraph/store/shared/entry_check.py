"""The check of signed entries: who published them, and whether that was taken back since."""

from __future__ import annotations

import os
from collections.abc import Collection

from cachegraph.fingerprint.primitives import content_name
from cachegraph.store.entry import Miss
from cachegraph.store.revocation.list_file import Revoked
from cachegraph.store.revocation.reading import Read, Revocations
from cachegraph.store.shared.entry_file import read_origin, signature_fault, signer_of, split_file
from cachegraph.store.signing import public_key_text
from cachegraph.store.trust import Untrusted

_WHOM = "list in CACHEGRAPH_TRUST whose entries may run code here, and nobody else"
_PUBLISH = "ask its signer to publish the list again, with `cachegraph key revoke`"
_BUILD = "it is built again"


class EntryCheck:
    """The check of the entries at `location`, whose files `read` reads, against `signers`."""

    def __init__(
        self, location: str, read: Read, signers: Collection[bytes], revocations: Revocations | None = None
    ) -> None:
        self._location = location
        self._read = read
        self._signers = signers
        self._revocations = revocations or Revocations(signers)

    def refuse_strange(self, content: bytes, key_hex: str, path: str | os.PathLike[str]) -> None:
        """Raise Untrusted for the file `content` of a key at `path`, unless it is believed, or damaged.

        May read revocation lists.
        """
        fault = signature_fault(content, key_hex, self._signers)
        if fault:
            raise Untrusted(path, fault, _WHOM)
        if isinstance(split_file(content), Miss):
            return
        fault = self._revocations.fault(signer_of(content), self._location, self._read)
        if fault:
            raise Untrusted(path, fault, _PUBLISH)
        fault = revocation_fault(content, key_hex, self._revocations.revoked)
        if fault:
            raise Untrusted(path, fault, _BUILD)

    def refresh(self) -> None:
        """Read the revocation lists that are due, and those that other processes have read. Never raises."""
        self._revocations.refresh(self._location, self._read)

    def settle(self) -> None:
        """Read the lists that are due when a process ends, and sweep copies for new ones. Never raises."""
        self._revocations.settle(self._location, self._read)


def revocation_fault(content: bytes, key_hex: str, revoked: Revoked) -> str:
    """Return why the sound entry file `content` of a key is revoked; empty if it is not."""
    signer = signer_of(content)
    if signer.hex() in revoked.signers:
        return f"an entry signed by {public_key_text(signer)}, a key that was revoked"
    pieces = split_file(content)
    assert not isinstance(pieces, Miss)
    if revoked.entries and (key_hex, content_name(pieces.record)) in revoked.entries:
        return "an entry that was revoked"
    if not (revoked.writers or revoked.releases):
        return ""
    origin = read_origin(content)
    if isinstance(origin, Miss):
        return f"an entry whose writer and release are not known ({origin.detail})"
    if origin.writer in revoked.writers:
        return f"an entry written by {origin.writer}, a writer that was revoked"
    if origin.release in revoked.releases:
        return f"an entry written by cachegraph {origin.release}, a release that was revoked"
    return ""
