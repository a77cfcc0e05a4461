"""Packing an artifact: its large parts become blobs, and the rest becomes a record and a description."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import INLINE_LIMIT, LARGEST_ENTRY, PAYLOAD, Artifact, BlobReference, Entry
from cachegraph.store.record import RECORD_FORMAT, Record
from cachegraph.version import __version__


class BlobWriter(Protocol):
    """A place for blobs."""

    def write(self, content: bytes) -> str:
        """Write a blob of `content`; return its digest (hexadecimal). Raises OSError."""


class PackedArtifact(NamedTuple):
    """An artifact whose blobs are written: the record of a hit, and references to all blobs."""

    record: Record
    blobs: Sequence[BlobReference]


def pack(artifact: Artifact, blobs: BlobWriter) -> PackedArtifact:
    """Write the blobs of `artifact`, its payload among them if it is long, and return the rest.

    Raises OSError, and ValueError for a blob without a name.
    """
    if PAYLOAD in artifact.blobs:
        raise ValueError("storing an artifact: a blob has the empty name, which is the payload's; name it")
    named = [_write_blob(blobs, name, content) for name, content in artifact.blobs.items()]
    digests = {reference.name: reference.digest for reference in named}
    if len(artifact.payload) <= INLINE_LIMIT:
        return PackedArtifact(Record(artifact.payload, None, digests, artifact.seconds), named)
    payload = _write_blob(blobs, PAYLOAD, artifact.payload)
    return PackedArtifact(Record(b"", payload.digest, digests, artifact.seconds), [payload, *named])


def refuse_oversized(key: CacheKey, size: int) -> None:
    """Raise ValueError if an entry of `size` bytes, without its blobs, is larger than readers accept."""
    if size > LARGEST_ENTRY:
        raise ValueError(f"storing {key.hex}: its entry has {size} bytes; the limit is {LARGEST_ENTRY}")


def describe(key: CacheKey, artifact: Artifact, load_seconds: float, stored_size: int = 0) -> Entry:
    """Return the description of an artifact that is being stored now, in rows of `stored_size` bytes."""
    now = time.time()
    return Entry(
        digest=key.digest,
        level=key.level,
        format=RECORD_FORMAT,
        payload_size=len(artifact.payload),
        blob_size=sum(map(len, artifact.blobs.values())),
        stored_size=stored_size,
        seconds=artifact.seconds,
        build_seconds=sum(artifact.seconds.values()),
        load_seconds=load_seconds,
        created=now,
        last_used=now,
        uses=0,
        summary=artifact.summary.encode("utf-8", "backslashreplace").decode(),  # names of files, say
        version=__version__,
    )


def _write_blob(blobs: BlobWriter, name: str, content: bytes) -> BlobReference:
    return BlobReference(name, blobs.write(content), len(content))
