"""Large arrays: blobs named by their content, so that entries that share an array store it once.

Where an entry would contain the array, it has its digest (BLAKE2b-256, hex), and it lists the blob
under the name "array-" and the digest, so that the blob stays as long as the entry does.
"""

from __future__ import annotations

from collections.abc import Callable

from cachegraph.errors import MissingBlob
from cachegraph.fingerprint.primitives import content_name

LARGE = 64 * 1024
"""Arrays of more bytes are stored as blobs."""

ReadBlob = Callable[[str], bytes | None]
"""Returns the checked content of the blob of a digest (hex), or None if it cannot be read."""


def add_blob(blobs: dict[str, bytes], content: bytes) -> str:
    """Add `content` to the blobs (name -> bytes) of a new entry, and return its digest (hex)."""
    found = content_name(content)
    blobs[blob_name(found)] = content
    return found


def blob_name(digest_hex: str) -> str:
    """Return the name under which an entry lists the array of that digest among its blobs."""
    return f"array-{digest_hex}"


def blob_content(read: ReadBlob | None, digest_hex: str, holder: str) -> bytes:
    """Return the content of the array of that digest; raises MissingBlob, naming `holder`, if it cannot be
    read."""
    found = None if read is None else read(digest_hex)
    if found is None:
        raise MissingBlob(holder, digest_hex)
    return found
