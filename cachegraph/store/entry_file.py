"""One entry as a file of a shared directory.

    file        := magic(3: "CGE") version(1) checksum(16) length(4) length(4) record description encoding
    checksum    := XXH3-128 of everything after the checksum
    record      := what a hit returns: record.py; its length is the first
    description := JSON in UTF-8, an object of the fields of Entry but digest; its length is the second
    encoding    := the canonical encoding of the key, compressed with zlib: the rest

Numbers are big-endian. Version history: 1 first.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from cachegraph.fingerprint.hasher import digest
from cachegraph.key import CacheKey
from cachegraph.store.entry import Entry, Miss
from cachegraph.store.record import Record, decode, encode

ENTRY_FILE_FORMAT = 1

_MAGIC = b"CGE" + bytes((ENTRY_FILE_FORMAT,))
_HEADER = Struct(">4s16sII")
_CHECKED_FROM = 4 + 16


class Pieces(NamedTuple):
    """An entry file taken apart and checked."""

    record: bytes
    description: bytes
    encoding: bytes


def write_entry(key: CacheKey, record: Record, entry: Entry) -> bytes:
    """Return the file of an entry; raises ValueError on what its record cannot hold."""
    import json
    from dataclasses import asdict

    described = {name: value for name, value in asdict(entry).items() if name != "digest"}
    pieces = encode(key, record), json.dumps(described, sort_keys=True).encode()
    lengths = _HEADER.pack(b"", b"", *map(len, pieces))[_CHECKED_FROM:]
    checked = b"".join((lengths, *pieces, zlib.compress(key.encoding)))
    return b"".join((_MAGIC, digest(checked), checked))


def take_apart(content: bytes) -> Pieces | Miss:
    """Return the pieces of an entry file, or why it is none. Nothing is believed before the checksum."""
    if len(content) < _HEADER.size:
        return Miss("damaged", "the entry is cut short")
    magic, checksum, record, description = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        return Miss("foreign-format", f"the entry starts with {magic.hex()}, not with {_MAGIC.hex()}")
    if digest(content[_CHECKED_FROM:]) != checksum:
        return Miss("damaged", "the entry does not match its checksum")
    middle = _HEADER.size + record
    end = middle + description
    return Pieces(content[_HEADER.size : middle], content[middle:end], content[end:])


def read_record(content: bytes, key: CacheKey) -> Record | Miss:
    """Return the record that the file `content` holds for `key`, or why it holds none."""
    pieces = take_apart(content)
    return pieces if isinstance(pieces, Miss) else decode(pieces.record, key)


def read_description(content: bytes, key_digest: bytes) -> Entry | None:
    """Return what the file says of its entry, None where it is damaged or of another release."""
    import json

    pieces = take_apart(content)
    if isinstance(pieces, Miss):
        return None
    try:
        return Entry(digest=key_digest, **json.loads(pieces.description))
    except (TypeError, ValueError):
        return None
