"""The record: the content of a hit, as one checksummed byte string.

    record   := magic(3: "CGR") version(1) checksum(16) digest(16) confirmation(32) head blob* cost* payload
    checksum := XXH3-128 of everything after the checksum
    digest, confirmation := those of the key
    head     := elsewhere(1) payload name(40) number of blobs(2) number of costs(2)
    blob     := text name(40)
    cost     := text seconds(8: IEEE 754)
    text     := length(2) UTF-8
    payload  := the rest; when `elsewhere` is 1 it is empty, and the payload is the blob of that name

Numbers are big-endian.

Version history
    1  names of blobs have 16 bytes, their XXH3-128; never a hit, but its blobs can be listed for pruning
    2  names of blobs have 40 bytes, their BLAKE2b-256 and length
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from struct import Struct
from struct import error as StructError
from typing import Any

from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import PAYLOAD, Hit, Miss

RECORD_FORMAT = 2

_CHECKED_FROM = 4 + 16
_LENGTH = Struct(">H")
_SECONDS = Struct(">d")


class _Format(NamedTuple):
    """A version of the format: its magic, its header, and a blob's name."""

    magic: bytes
    header: Struct
    name: Struct


_OURS = _Format(b"CGR" + bytes((RECORD_FORMAT,)), Struct(">4s16s16s32sB40sHH"), Struct(">40s"))
_OLDER = _Format(b"CGR\1", Struct(">4s16s16s32sB16sHH"), Struct(">16s"))


class Record(NamedTuple):
    """A decoded record; `payload_blob` is the digest (hexadecimal) of the payload if that is a blob."""

    payload: bytes
    payload_blob: str | None
    blobs: Mapping[str, str]
    seconds: Mapping[str, float]

    @property
    def all_blobs(self) -> dict[str, str]:
        """Return the digests of all blobs by name, with the payload under PAYLOAD if it is a blob."""
        return {**({} if self.payload_blob is None else {PAYLOAD: self.payload_blob}), **self.blobs}

    def hit(self, read_blob: Callable[[str], bytes | None]) -> Hit | Miss:
        """Return the hit; `read_blob` reads the payload if it is a blob.

        Return a miss if that blob is missing or damaged. Raises what `read_blob` raises, except
        FileNotFoundError.
        """
        if self.payload_blob is None:
            return Hit(self.payload, self.blobs, self.seconds)
        try:
            payload = read_blob(self.payload_blob)
        except FileNotFoundError:
            return Miss("damaged", f"the blob {self.payload_blob} of the payload is missing")
        if payload is None:
            return Miss("damaged", f"the blob {self.payload_blob} of the payload does not match its name")
        return Hit(payload, self.blobs, self.seconds)


def encode(key: CacheKey, record: Record) -> bytes:
    """Return `record` under `key` as bytes.

    Raises ValueError for a name that is too long or a cost that is not finite.
    """
    elsewhere = record.payload_blob is not None
    payload_name = bytes.fromhex(record.payload_blob or "00" * _OURS.name.size)
    counts = len(record.blobs), len(record.seconds)
    pieces = [_OURS.header.pack(b"", b"", key.digest, key.confirmation, elsewhere, payload_name, *counts)]
    for name, digest_hex in record.blobs.items():
        pieces += _text(name), bytes.fromhex(digest_hex)
    for step, seconds in record.seconds.items():
        pieces += _text(step), _finite(step, seconds)
    checked = b"".join((*pieces, record.payload))[_CHECKED_FROM:]
    return b"".join((_OURS.magic, digest(checked), checked))


def decode(content: object, key: CacheKey) -> Record | Miss:
    """Return the record of `key` in `content`, or why there is none; verify the checksum first."""
    header = _checked_header(content, _OURS)
    if isinstance(header, Miss):
        return header
    assert isinstance(content, bytes)
    if header.digest != key.digest:
        return Miss("damaged", f"the index leads to the record of {header.digest.hex()}")
    if header.confirmation != key.confirmation:
        return Miss("collision", "another key has the same digest")
    return _body(content, header, _OURS)


def decode_by_digest(content: object, key_digest: bytes) -> Record | Miss:
    """Return the record in `content`, given only the digest of its key.

    Reads older formats too, so they can be pruned.
    """
    is_older = isinstance(content, bytes) and content.startswith(_OLDER.magic)
    form = _OLDER if is_older else _OURS
    header = _checked_header(content, form)
    if isinstance(header, Miss):
        return header
    assert isinstance(content, bytes)
    if header.digest != key_digest:
        return Miss("damaged", f"it is the record of {header.digest.hex()}")
    return _body(content, header, form)


class _Header(NamedTuple):
    magic: bytes
    checksum: bytes
    digest: bytes
    confirmation: bytes
    elsewhere: int
    payload_name: bytes
    blobs: int
    costs: int


def _checked_header(content: object, form: _Format) -> _Header | Miss:
    size = len(form.magic)
    if not isinstance(content, bytes) or len(content) < size:
        return Miss("damaged", "the record is cut short")
    if content[:size] != form.magic:
        found = f"the record starts with {content[:size].hex()}, not with {form.magic.hex()}"
        return Miss("foreign-format", found)
    if len(content) < form.header.size:
        return Miss("damaged", "the record is cut short")
    header = _Header._make(form.header.unpack_from(content))
    if digest(content[_CHECKED_FROM:]) != header.checksum:
        return Miss("damaged", "the record does not match its checksum")
    return header


def _body(content: bytes, header: _Header, form: _Format) -> Record | Miss:
    try:
        names, offset = _read_pairs(content, form.header.size, header.blobs, form.name)
        seconds, offset = _read_pairs(content, offset, header.costs, _SECONDS)
    except (StructError, UnicodeDecodeError) as error:
        return Miss("damaged", f"the record is not what was written ({error})")
    if not all(map(isfinite, seconds.values())):
        return Miss("damaged", "the record has a cost that is no number of seconds")
    named = {name: blob.hex() for name, blob in names.items()}
    payload_blob = header.payload_name.hex() if header.elsewhere else None
    return Record(content[offset:], payload_blob, named, seconds)


def _read_pairs(content: bytes, offset: int, count: int, value: Struct) -> tuple[dict[str, Any], int]:
    pairs = {}
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(content, offset)
        offset += _LENGTH.size
        text = content[offset : offset + length].decode()
        offset += length
        (pairs[text],) = value.unpack_from(content, offset)
        offset += value.size
    return pairs, offset


def _text(text: str) -> bytes:
    content = text.encode()
    if len(content) > 0xFFFF:
        raise ValueError(f"storing an artifact: a name is {len(content)} bytes long; the limit is 65535")
    return _LENGTH.pack(len(content)) + content


def _finite(step: str, seconds: float) -> bytes:
    if not isfinite(seconds):
        raise ValueError(
            f"storing an artifact: {step!r} took {seconds} seconds; that must be a finite number"
        )
    return _SECONDS.pack(seconds)
