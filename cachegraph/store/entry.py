"""Artifacts, the entries made from them, and the answers of a look-up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from cachegraph.named_tuples import NamedTuple

PAYLOAD = ""
"""The name that stands for the payload among an entry's blobs."""

INLINE_LIMIT = 64 * 1024
"""Bytes; a longer payload is stored as a blob."""

LARGEST_ENTRY = 64 * 2**20
"""Bytes of an entry without its blobs. A larger one is damaged, so no memory is allocated for it."""

ALL_LEVELS = "*"
"""The pattern of every level. A level is a pattern of itself, "toyc/*" one of all levels of a namespace."""

NOTHING: Mapping[str, Any] = {}
"""The blobs of an artifact without blobs, and costs that nobody measured. Nothing is added to it."""

_TEXTS, _LONGEST_TEXT = ("level", "version"), 100
_LONGEST_SUMMARY = 100_000
_COUNTS, _LARGEST_COUNT = ("format", "payload_size", "blob_size", "stored_size", "uses"), 1 << 62
_TIMES, _LATEST_TIME = ("build_seconds", "load_seconds", "created", "last_used"), 1e12


class Artifact(NamedTuple):
    """The result of a build.

    A hit returns `payload` at once; `blobs` (nonempty name -> bytes) are read only on request.
    `seconds` (step -> seconds) is the cost of this build without nested builds, which record their
    own. `summary` is one short line for people. `references` are digests of keys of other entries
    that this one needs or was made from: they are not evicted before it.
    """

    payload: bytes
    blobs: Mapping[str, bytes] = NOTHING
    seconds: Mapping[str, float] = NOTHING
    summary: str = ""
    references: Collection[bytes] = ()


class Hit(NamedTuple):
    """An entry found and checked: its payload, its blobs (name -> digest in hexadecimal), its build cost, and
    the tier that had it, empty for the local one. A hit on a server has the `file` that it was read from."""

    payload: bytes
    blobs: Mapping[str, str]
    seconds: Mapping[str, float]
    tier: str = ""
    file: bytes | None = None


class Miss(NamedTuple):
    """The reason why no entry can be used; `detail` is for people.

    `reason` is one of:

        never-seen                  no entry of this key is known
        evicted                     there was one, and it was removed
        key-part-changed: NAMES     the same computation is stored under a key that differs in these parts
        foreign-target              it is stored for another machine
        damaged                     the entry is not what was written
        unreadable                  the entry could not be read or loaded
        untrusted                   another user could have written it, or it names something it may not load
        mismatch                    mode verify: a fresh build gave something else
        unverified                  mode verify: the fresh build failed
        foreign-format              another release wrote it
        collision                   another key has the same digest
        disabled, no-directory, bad-setting     there is no cache
    """

    reason: str
    detail: str


class Origin(NamedTuple):
    """The publisher of an entry, as its signed file says: `description` is that part of the file.

    `writer` is the user and the host, `release` that of cachegraph. Signer and signature are zeros if
    nobody signed.
    """

    signer: bytes
    signature: bytes
    writer: str
    release: str
    description: bytes
    encoding: bytes


class NearKey(NamedTuple):
    """A stored key like another: how many parts are equal, and its encoding, compressed with zlib."""

    digest: bytes
    equal: int
    encoding: bytes


class BlobReference(NamedTuple):
    """A blob of an entry: its name (PAYLOAD for the payload), digest (hexadecimal) and bytes."""

    name: str
    digest: str
    size: int


class Entry(NamedTuple):
    """The description of one entry; sizes in bytes, times in seconds since 1970."""

    digest: bytes
    level: str
    format: int
    payload_size: int
    blob_size: int
    stored_size: int
    seconds: Mapping[str, float]
    build_seconds: float
    load_seconds: float
    created: float
    last_used: float
    uses: int
    summary: str
    version: str

    @property
    def hex(self) -> str:
        """Return the digest of the key in hexadecimal."""
        return self.digest.hex()

    @property
    def size(self) -> int:
        """Return the bytes of its rows or its file, and of all its blobs."""
        payload = self.payload_size if self.payload_size > INLINE_LIMIT else 0
        return self.stored_size + payload + self.blob_size


def check_entry(entry: Entry) -> None:
    """Raise ValueError unless every field of an entry that others could have written is sane."""
    for name in _TEXTS:
        _check(name, entry, lambda value: _is_text(value) and len(value) <= _LONGEST_TEXT)
    for name in _COUNTS:
        _check(name, entry, lambda value: type(value) is int and 0 <= value <= _LARGEST_COUNT)
    for name in _TIMES:
        _check(name, entry, _is_time)
    _check("summary", entry, lambda value: _is_text(value) and len(value) <= _LONGEST_SUMMARY)
    _check("seconds", entry, lambda value: isinstance(value, Mapping) and all(map(_is_time, value.values())))


def _check(name: str, entry: Entry, is_right: Callable[[Any], bool]) -> None:
    value = getattr(entry, name)
    if not is_right(value):
        raise ValueError(f"{name} is {str(value)[:_LONGEST_TEXT]!r}")


def _is_text(value: object) -> bool:
    """Return True for text without lone surrogates, which JSON can express and UTF-8 cannot."""
    return type(value) is str and value.encode("utf-8", "replace").decode() == value


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and -_LATEST_TIME < value < _LATEST_TIME  # type: ignore[operator]
