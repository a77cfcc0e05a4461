"""The description of what code outside of numba has registered with it, for who lays out a key (registrations.py)."""

from __future__ import annotations

from collections.abc import Collection

from cachegraph.fingerprint.hasher import Encoder
from cachegraph.fingerprint.registrations import write_extensions


def encode_extensions(described: Collection[str] = ()) -> bytes:
    """Return the canonical encoding of what is registered now; raises Unfingerprintable if some of it has none.

    `described` names the packages whose source another part of the key describes.
    """
    encoder = Encoder(described)
    write_extensions(encoder)
    return encoder.encoding
