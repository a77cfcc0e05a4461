"""One entry as a file of a shared directory.

    file        := magic(3: "CGE") version(1) checksum(16) length(4) length(4) record description encoding
    checksum    := XXH3-128 of everything after the checksum
    record      := what a hit returns: record.py; its length is the first
    description := JSON in UTF-8, an object of the fields of Entry but digest, and of "references", the digests (hex) of
                   the keys of the entries that this one refers to; its length is the second; what is not known is ignored
    encoding    := the canonical encoding of the key, compressed with zlib: the rest

Numbers are big-endian. Version history: 1 first.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from struct import Struct
from typing import NamedTuple

from cachegraph.digests import digest
from cachegraph.key import CacheKey
from cachegraph.store.entry import PAYLOAD, Entry, Miss
from cachegraph.store.record import Record, decode, decode_unasked, encode

ENTRY_FILE_FORMAT = 1

_MAGIC = b"CGE" + bytes((ENTRY_FILE_FORMAT,))
_HEADER = Struct(">4s16sII")
_CHECKED_FROM = 4 + 16


_DESCRIBED = [name for name in Entry.__slots__ if name != "digest"]


class Pieces(NamedTuple):
    """An entry file taken apart and checked."""

    record: bytes
    description: bytes
    encoding: bytes


def write_entry(key: CacheKey, record: Record, entry: Entry, references: Collection[bytes]) -> bytes:
    """Return the file of an entry; raises ValueError on what its record cannot hold."""
    import json
    from dataclasses import asdict

    described = {name: value for name, value in asdict(entry).items() if name != "digest"}
    described["references"] = sorted(other.hex() for other in references)
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


class Description(NamedTuple):
    """What a file says of its entry: the entry, its blobs (name, PAYLOAD for the payload -> digest), the key digests of
    the entries it refers to, and the compressed encoding of its key."""

    entry: Entry
    blobs: dict[str, str]
    references: tuple[bytes, ...]
    encoding: bytes


def read_description(content: bytes, key_digest: bytes) -> Description | Miss:
    """Return what the file says of its entry, or why it says nothing. Nothing is believed before the checksum."""
    import json

    pieces = take_apart(content)
    if isinstance(pieces, Miss):
        return pieces
    record = decode_unasked(pieces.record, key_digest)
    if isinstance(record, Miss):
        return record
    try:
        said = json.loads(pieces.description)
        entry = Entry(key_digest, **{name: said[name] for name in _DESCRIBED})
        references = tuple(bytes.fromhex(other) for other in said.get("references", ()))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Miss("damaged", f"the description is not what was written ({error})")
    payload = {} if record.payload_blob is None else {PAYLOAD: record.payload_blob}
    return Description(entry, {**payload, **record.blobs}, references, pieces.encoding)
