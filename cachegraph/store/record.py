"""The record: everything a hit returns, in one checksummed piece of bytes.

    record   := magic(3: "CGR") version(1) checksum(16) digest(16) confirmation(32) length(4) metadata payload
    checksum := XXH3-128 of everything after the checksum
    digest, confirmation := those of the key
    metadata := `length` bytes of JSON: {"blobs": {name: digest, hex}, "payload": digest, hex, or null, "seconds": {step: seconds}}
    payload  := the rest; empty when the metadata names a blob that holds it

Integers are big-endian. Version history: 1 first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct

from cachegraph.fingerprint.hasher import digest
from cachegraph.key import CacheKey
from cachegraph.store.entry import Miss

RECORD_FORMAT = 1

_MAGIC = b"CGR" + bytes((RECORD_FORMAT,))
_HEADER = Struct(">4s16s16s32sI")
_CHECKED_FROM = 4 + 16


@dataclass(frozen=True, slots=True)
class Record:
    """A record taken apart; `payload_blob` is the digest (hex) of the blob that holds the payload, else None."""

    payload: bytes
    payload_blob: str | None
    blobs: Mapping[str, str]
    seconds: Mapping[str, float]


def encode(key: CacheKey, record: Record) -> bytes:
    """Return the bytes of `record` under `key`; raises ValueError on seconds that are not finite."""
    described = {
        "blobs": dict(record.blobs),
        "payload": record.payload_blob,
        "seconds": dict(record.seconds),
    }
    metadata = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    header = _HEADER.pack(_MAGIC, bytes(16), key.digest, key.confirmation, len(metadata))
    checked = header[_CHECKED_FROM:] + metadata + record.payload
    return _MAGIC + digest(checked) + checked


def decode(content: object, key: CacheKey) -> Record | Miss:
    """Return the record `content` holds for `key`, or why it holds none. Nothing is believed before the checksum."""
    if not isinstance(content, bytes) or len(content) < _HEADER.size:
        return Miss("damaged", "the record is cut short")
    magic, checksum, stored_digest, confirmation, length = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        return Miss("foreign-format", f"the record starts with {magic.hex()}, this release writes {_MAGIC.hex()}")
    if digest(memoryview(content)[_CHECKED_FROM:]) != checksum:
        return Miss("damaged", "the record does not match its checksum")
    if stored_digest != key.digest:
        return Miss("damaged", f"the index leads to the record of {stored_digest.hex()}")
    if confirmation != key.confirmation:
        return Miss("collision", "another key has the same digest")
    end = _HEADER.size + length
    described = json.loads(content[_HEADER.size : end])
    return Record(content[end:], described["payload"], described["blobs"], described["seconds"])
