"""The revocation list of one signer: what nobody should believe any more.

    v1/r/<signer>      beside the entries of a shared directory or on a server; 64 hexadecimal digits

    file      := magic(3: "CGV") version(1) signature(64) document
    signature := the signer's, of "cachegraph revocations" NUL signer(32) magic version document
    document  := JSON in UTF-8: an object of "number", which grows from list to list, and of sorted lists:
                 "signers" (public keys in hexadecimal), "writers" and "releases" (texts, as entries have
                 them), "entries" (pairs: the digest of a key, and the name of the content of its record,
                 both in hexadecimal)

A list holds all that the lists before it held. There is no time in it: clocks differ. The name of a
record is its BLAKE2b-256 and length, so another build of the same key is believed.

Version history
    1  the first
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.paths import is_blob, is_key, is_signer
from cachegraph.store.signing import SIGNATURE_SIZE, Signature, is_signed, sign

LIST_FORMAT = 1
LARGEST_LIST = 4 << 20
"""Bytes; a longer list is damaged."""

_MAGIC = b"CGV" + bytes((LIST_FORMAT,))
_SIGNED_FROM = len(_MAGIC) + SIGNATURE_SIZE
_LARGEST_NUMBER = 1 << 53
_LONGEST_TEXT = 100


class RevocationFault(ValueError):
    """An error for a revocation list that its signer did not write."""


class Revoked(NamedTuple):
    """The revoked public keys, writers, releases, and entries: pairs of a key and the name of a record.

    Keys and names are hexadecimal.
    """

    signers: frozenset[str] = frozenset()
    writers: frozenset[str] = frozenset()
    releases: frozenset[str] = frozenset()
    entries: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def union(cls, several: Iterable[Revoked]) -> Revoked:
        """Return all that one of `several` revokes."""
        columns = tuple(zip(*several, strict=True)) or ((),) * len(cls._fields)
        return cls(*(frozenset().union(*column) for column in columns))

    def is_within(self, other: Revoked) -> bool:
        """Return True if `other` revokes all that this does."""
        return all(some <= all_ for some, all_ in zip(self, other, strict=True))


class RevocationList(NamedTuple):
    """The list of a signer (32 bytes): its number, and what is revoked."""

    signer: bytes
    number: int
    revoked: Revoked


def write_list(number: int, revoked: Revoked) -> bytes:
    """Return the file of a list, signed by this user. Raises ValueError and what `sign` raises."""
    import json

    fields = {name: sorted(getattr(revoked, name)) for name in Revoked._fields}
    document = json.dumps({"number": number, **fields}, sort_keys=True).encode()
    signer = sign(b"").signer
    signature = sign(_message(signer, document))
    content = b"".join((_MAGIC, signature.signature, document))
    if len(content) > LARGEST_LIST:
        raise ValueError(f"revoking: the list has {len(content)} bytes; the limit is {LARGEST_LIST}")
    read_list(content, signer)
    return content


def read_list(content: bytes, signer: bytes) -> RevocationList:
    """Return the list of `signer` in a file. Raises RevocationFault for anything that he did not sign."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise RevocationFault(f"it starts with {content[:4].hex() or 'nothing'}, not with {_MAGIC.hex()}")
    document = content[_SIGNED_FROM:]
    signature = content[len(_MAGIC) : _SIGNED_FROM]
    if len(signature) < SIGNATURE_SIZE or not is_signed(
        Signature(signer, signature), _message(signer, document)
    ):
        raise RevocationFault("it is damaged, or its signer did not write it")
    return _parsed(document, signer)


def _message(signer: bytes, document: bytes) -> bytes:
    return b"".join((b"cachegraph revocations\0", signer, _MAGIC, document))


def _parsed(document: bytes, signer: bytes) -> RevocationList:
    import json

    try:
        fields = json.loads(document)
        number, kinds = fields.pop("number"), [fields.pop(name) for name in Revoked._fields]
        checks: tuple[Callable[[object], bool], ...] = (_is_signer, _is_text, _is_text, _is_entry)
        sound = not fields and type(number) is int and 0 < number < _LARGEST_NUMBER
        sound = sound and all(
            isinstance(kind, list) and all(map(check, kind))
            for check, kind in zip(checks, kinds, strict=True)
        )
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise RevocationFault(f"it is no list of this release ({error})") from error
    if not sound:
        raise RevocationFault("it has something else than a list of this release")
    signers, writers, releases, entries = map(frozenset, (*kinds[:3], map(tuple, kinds[3])))
    return RevocationList(signer, number, Revoked(signers, writers, releases, entries))


def _is_signer(value: object) -> bool:
    return isinstance(value, str) and is_signer(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT and value.isprintable()


def _is_entry(value: object) -> bool:
    if not (isinstance(value, list) and len(value) == 2):
        return False
    key, record = value
    return isinstance(key, str) and isinstance(record, str) and is_key(key) and is_blob(record)
