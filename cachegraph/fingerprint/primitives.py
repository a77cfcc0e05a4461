"""The two digests: one that finds, and one that confirms.

XXH3-128 is fast, and its secret is public: whoever wants two contents of one digest makes them. It finds an entry, and finds
accidental damage. BLAKE2b-256 says that a content is the one that was meant: it confirms keys, names blobs, and stands for
arrays, files and source in what is described.
"""

from __future__ import annotations

import xxhash

try:
    # The same function as hashlib.blake2b, without the 4 ms that hashlib takes to load OpenSSL.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def digest(content: bytes) -> bytes:
    """Return the XXH3-128 of `content`: 16 bytes, which find but never confirm."""
    return xxhash.xxh3_128_digest(content)


def strong_digest(content: bytes) -> bytes:
    """Return the BLAKE2b-256 of `content`: 32 bytes, which no other content has."""
    return blake2b(content, digest_size=32).digest()


def content_name(content: bytes) -> str:
    """Return the BLAKE2b-256 of `content` and its length, in 80 hexadecimal digits: what a blob is named and checked by.

    The length says how much is to be read, before anything is.
    """
    return f"{strong_digest(content).hex()}{len(content):016x}"


def named_length(name: str) -> int:
    """Return how many bytes the content of that name has."""
    return int(name[64:], 16)
