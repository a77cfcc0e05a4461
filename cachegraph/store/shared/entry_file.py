"""The file of one entry in a shared directory.

    file        := magic(3: "CGE") version(1) checksum(16) signer(32) signature(64) length(4) length(4)
                   record description encoding
    checksum    := XXH3-128 of everything after the checksum
    signer      := Ed25519 public key of the publisher; zeros, like the signature, if the entry is not signed
    signature   := of "cachegraph entry" NUL "v1/e/kk/<key>" NUL (the place of the file), magic, version and
                   everything after the signature; so it is invalid for a moved or renamed file
    record      := the content of a hit (record.py); the first length is its length
    description := JSON in UTF-8: an object of the fields of Entry except digest, of "references", the
                   digests (hex) of the keys of other entries, and of "writer", the number of the user and
                   the host; the second length is its length; a reader ignores unknown fields
    encoding    := the rest: the canonical encoding of the key, compressed with zlib as in key.py

Numbers are big-endian.

Version history
    1  without signer and signature; never a hit, but its references can be listed for pruning
    2  signed in directories that a group writes to
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from struct import Struct

from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey, compressed
from cachegraph.named_tuples import NamedTuple
from cachegraph.processes import host_name
from cachegraph.store.entry import Entry, Miss, Origin, check_entry
from cachegraph.store.paths import entry_place
from cachegraph.store.record import Record, decode, decode_by_digest, encode
from cachegraph.store.signing import SIGNATURE_SIZE, SIGNER_SIZE, Signature, is_signed, public_key_text

ENTRY_FILE_FORMAT = 2

_MAGIC = b"CGE" + bytes((ENTRY_FILE_FORMAT,))
_OLDER_MAGIC = b"CGE\1"
_SIGNED_BY = Struct(">32s64s")
_LENGTHS = Struct(">II")
_CHECKED_FROM = 4 + 16
_SIGNED_FROM = _CHECKED_FROM + _SIGNED_BY.size
_UNSIGNED = Signature(bytes(SIGNER_SIZE), bytes(SIGNATURE_SIZE))

_LONGEST_WRITER = 100
_DESCRIBED = [name for name in Entry._fields if name != "digest"]


class Pieces(NamedTuple):
    """The parts of an entry file, after its checksum was verified."""

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

    Raises ValueError as record.py does, and whatever `sign` raises.
    """
    import json

    described = {name: value for name, value in entry._asdict().items() if name != "digest"}
    described["references"] = sorted(other.hex() for other in references)
    described["writer"] = this_writer()
    description = json.dumps(described, sort_keys=True).encode()
    signed = _signed_part(encode(key, record), description, compressed(key))
    signature = _UNSIGNED if sign is None else sign(_message(key.hex, _MAGIC, signed))
    return _whole(signature, signed)


def write_again(key: CacheKey, record: Record, origin: Origin) -> bytes:
    """Return the file that `origin` signed, from the record of a copy.

    Raises ValueError if it signed another one.
    """
    signed = _signed_part(encode(key, record), origin.description, origin.encoding)
    signature = Signature(origin.signer, origin.signature)
    if not is_signed(signature, _message(key.hex, _MAGIC, signed)):
        whose = public_key_text(origin.signer)
        raise ValueError(f"copying {key.hex}: it is not what {whose} signed; build it again")
    return _whole(signature, signed)


def this_writer() -> str:
    """Return the name under which this process writes: the number of its user, and its host."""
    return f"{os.geteuid()}@{''.join(c for c in host_name()[:64] if c.isprintable())}"


def signer_of(content: bytes) -> bytes:
    """Return the public key in a sound file of this format; zeros if nobody signed it."""
    return content[_CHECKED_FROM : _CHECKED_FROM + SIGNER_SIZE]


def _signed_part(record: bytes, description: bytes, encoding: bytes) -> bytes:
    return b"".join((_LENGTHS.pack(len(record), len(description)), record, description, encoding))


def _whole(signature: Signature, signed: bytes) -> bytes:
    checked = b"".join((*signature, signed))
    return b"".join((_MAGIC, digest(checked), checked))


def signature_fault(content: bytes, key_hex: str, signers: Collection[bytes]) -> str:
    """Return why none of `signers` published `content` under that key; empty if one did, or if damaged."""
    if content.startswith(_OLDER_MAGIC):
        return "an entry of an older release, which did not sign"
    if isinstance(split_file(content), Miss):
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
    """Return the signed message, which ties these bytes to the place of the entry."""
    return b"".join((b"cachegraph entry\0", entry_place(key_hex).encode(), b"\0", magic, signed))


def split_file(content: bytes) -> Pieces | Miss:
    """Return the pieces of an entry file, or why it is none; verify the checksum first."""
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
    """Return the record of `key` in the file `content`, or why there is none."""
    pieces = split_file(content)
    if content.startswith(_OLDER_MAGIC):
        return Miss("foreign-format", "the entry was written by an older release")
    return pieces if isinstance(pieces, Miss) else decode(pieces.record, key)


class EntryDescription(NamedTuple):
    """The descriptive part of an entry file.

    `record` is what is described, `references` are the key digests of other entries, `encoding` is the
    compressed encoding of the key, and `origin` is who published it; None if nobody signed.
    """

    entry: Entry
    record: Record
    references: tuple[bytes, ...]
    encoding: bytes
    origin: Origin | None


def read_origin(content: bytes) -> Origin | Miss:
    """Return who published an entry, by its file of this format, or why that is not known.

    Files of releases that named no writer have an empty one.
    """
    import json

    pieces = split_file(content)
    if isinstance(pieces, Miss):
        return pieces
    try:
        fields = json.loads(pieces.description)
        writer, release = fields.get("writer", ""), fields["version"]
    except (KeyError, ValueError, AttributeError, RecursionError) as error:
        return Miss("damaged", f"the description is not what was written ({error})")
    if not (isinstance(writer, str) and isinstance(release, str) and len(writer) <= _LONGEST_WRITER):
        return Miss("damaged", "the description has a writer or a release that is no text")
    signer, signature = _SIGNED_BY.unpack_from(content, _CHECKED_FROM)
    return Origin(signer, signature, writer, release, pieces.description, pieces.encoding)


def read_description(content: bytes, key_digest: bytes) -> EntryDescription | Miss:
    """Return the description in an entry file, or why there is none; verify the checksum first."""
    import json

    pieces = split_file(content)
    if isinstance(pieces, Miss):
        return pieces
    record = decode_by_digest(pieces.record, key_digest)
    if isinstance(record, Miss):
        return record
    try:
        fields = json.loads(pieces.description)
        entry = Entry(key_digest, **{name: fields[name] for name in _DESCRIBED})
        check_entry(entry)
        references = tuple(bytes.fromhex(other) for other in fields.get("references", ()))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return Miss("damaged", f"the description is not what was written ({error})")
    is_signed_file = content.startswith(_MAGIC) and signer_of(content) != _UNSIGNED.signer
    origin = read_origin(content) if is_signed_file else None
    if isinstance(origin, Miss):
        return origin
    return EntryDescription(entry, record, references, pieces.encoding, origin)
