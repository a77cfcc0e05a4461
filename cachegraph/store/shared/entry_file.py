"""One entry as a file of a shared directory.

    file        := magic(3: "CGE") version(1) checksum(16) signer(32) signature(64) length(4) length(4) record description
                   encoding
    checksum    := XXH3-128 of everything after the checksum
    signer      := Ed25519 public key of who published the entry; zeros, as the signature, for one that nobody signed
    signature   := of "cachegraph entry" NUL "v1/e/kk/<key>" NUL, where the file lies, magic, version and everything after the
                   signature: an entry that was moved, or that was published as something else, is not the one that was signed
    record      := what a hit returns: record.py; its length is the first
    description := JSON in UTF-8, an object of the fields of Entry but digest, and of "references", the digests (hex) of
                   the keys of the entries that this one refers to; its length is the second; what is not known is ignored
    encoding    := the canonical encoding of the key, compressed with zlib, as key.py has it: the rest

Numbers are big-endian.

Version history
    1  first: without signer and signature; no hit, but what it refers to is known, so that it can be pruned
    2  signed in directories that a group writes in
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from struct import Struct
from typing import NamedTuple

from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey, compressed
from cachegraph.store.description import refuse_nonsense
from cachegraph.store.entry import PAYLOAD, Entry, Miss
from cachegraph.store.paths import entry_place
from cachegraph.store.record import Record, decode, decode_unasked, encode
from cachegraph.store.signing import SIGNATURE_SIZE, SIGNER_SIZE, Signature, is_signed, public_key_text

ENTRY_FILE_FORMAT = 2

_MAGIC = b"CGE" + bytes((ENTRY_FILE_FORMAT,))
_OLDER_MAGIC = b"CGE\1"
_SIGNED_BY = Struct(">32s64s")
_LENGTHS = Struct(">II")
_CHECKED_FROM = 4 + 16
_SIGNED_FROM = _CHECKED_FROM + _SIGNED_BY.size
_UNSIGNED = Signature(bytes(SIGNER_SIZE), bytes(SIGNATURE_SIZE))

_DESCRIBED = [name for name in Entry.__slots__ if name != "digest"]


class Pieces(NamedTuple):
    """An entry file taken apart and checked."""

    record: bytes
    description: bytes
    encoding: bytes


def write_entry(
    key: CacheKey,
    record: Record,
    entry: Entry,
    references: Collection[bytes],
    sign: Callable[[bytes], Signature] | None = None,
) -> bytes:
    """Return the file of an entry, signed by `sign` if that is given.

    Raises ValueError on what its record cannot hold, and what `sign` raises.
    """
    import json
    from dataclasses import asdict

    described = {name: value for name, value in asdict(entry).items() if name != "digest"}
    described["references"] = sorted(other.hex() for other in references)
    pieces = encode(key, record), json.dumps(described, sort_keys=True).encode()
    signed = b"".join((_LENGTHS.pack(*map(len, pieces)), *pieces, compressed(key)))
    signature = _UNSIGNED if sign is None else sign(_message(key.hex, _MAGIC, signed))
    checked = b"".join((*signature, signed))
    return b"".join((_MAGIC, digest(checked), checked))


def signature_fault(content: bytes, key_hex: str, signers: Collection[bytes]) -> str:
    """Return why none of `signers` published `content` as the entry of that key; empty if one did, or it is damaged."""
    if content.startswith(_OLDER_MAGIC):
        return "an entry of an older release, which signed none"
    if isinstance(take_apart(content), Miss):
        return ""
    signature = Signature(*_SIGNED_BY.unpack_from(content, _CHECKED_FROM))
    if signature == _UNSIGNED:
        return "an entry that nobody signed"
    if signature.signer not in signers:
        return f"an entry signed by {public_key_text(signature.signer)}, who is not listed"
    if not is_signed(signature, _message(key_hex, content[: len(_MAGIC)], content[_SIGNED_FROM:])):
        return f"an entry that {public_key_text(signature.signer)} did not publish here"
    return ""


def _message(key_hex: str, magic: bytes, signed: bytes) -> bytes:
    """What is signed: that these bytes are the entry that lies there."""
    return b"".join((b"cachegraph entry\0", entry_place(key_hex).encode(), b"\0", magic, signed))


def take_apart(content: bytes) -> Pieces | Miss:
    """Return the pieces of an entry file, or why it is none. Nothing is believed before the checksum."""
    magic = content[: len(_MAGIC)]
    start = _CHECKED_FROM if magic == _OLDER_MAGIC else _SIGNED_FROM
    if magic != _OLDER_MAGIC and not _MAGIC.startswith(magic):
        return Miss("foreign-format", f"the entry starts with {magic.hex()}, not with {_MAGIC.hex()}")
    if len(content) < start + _LENGTHS.size:
        return Miss("damaged", "the entry is cut short")
    if digest(content[_CHECKED_FROM:]) != content[len(_MAGIC) : _CHECKED_FROM]:
        return Miss("damaged", "the entry does not match its checksum")
    record, description = _LENGTHS.unpack_from(content, start)
    middle = start + _LENGTHS.size + record
    end = middle + description
    return Pieces(content[middle - record : middle], content[middle:end], content[end:])


def read_record(content: bytes, key: CacheKey) -> Record | Miss:
    """Return the record that the file `content` holds for `key`, or why it holds none."""
    pieces = take_apart(content)
    if content.startswith(_OLDER_MAGIC):
        return Miss("foreign-format", "the entry was written by an older release")
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
        refuse_nonsense(entry)
        references = tuple(bytes.fromhex(other) for other in said.get("references", ()))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Miss("damaged", f"the description is not what was written ({error})")
    payload = {} if record.payload_blob is None else {PAYLOAD: record.payload_blob}
    return Description(entry, {**payload, **record.blobs}, references, pieces.encoding)
