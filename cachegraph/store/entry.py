"""What goes into a store, and what comes out of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cachegraph.store.sizes import bytes_taken

PAYLOAD = ""
"""The name that stands for an entry's payload among its blobs."""

LARGEST_ENTRY = 64 * 2**20
"""Bytes of an entry, its blobs not counted. What claims to be larger was not written as one, and no memory is taken for it."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """The result of a build.

    `payload` is what a hit returns at once; `blobs` (name, not empty -> bytes) is what is read only when asked for.
    `seconds` (step -> seconds) is what this build cost by itself, without what nested builds record for themselves.
    `summary` is one short line for people. `references` are the digests of the keys of other entries that this one
    needs, or was made from: they are not evicted before it.
    """

    payload: bytes
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    summary: str = ""
    references: Collection[bytes] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found, checked and confirmed: its payload, its blobs (name -> digest, hex), its build cost."""

    payload: bytes
    blobs: Mapping[str, str]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Miss:
    """Why there is no entry to use.

    `reason` is one of never-seen, evicted, "key-part-changed: NAMES" (the same computation is there under a key that
    differs in these parts), foreign-target (it is there for other machines), damaged (it is there, but not what was
    written), unreadable (it could not be read or loaded), untrusted (somebody else could have written it, or it
    names what it may not load), mismatch (in the mode verify, building it gave something else), unverified (building it failed there), foreign-format (written by another release), collision (same
    digest, other key); and where there is no cache: disabled, no-directory, bad-setting. `detail` is for people.
    """

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index says about one entry; sizes in bytes, times in seconds since 1970."""

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
        """The digest of the key in hexadecimal."""
        return self.digest.hex()

    @property
    def size(self) -> int:
        """What it takes: its rows or its file, its payload where that is a blob, and its named blobs."""
        return bytes_taken(self)


@dataclass(frozen=True, slots=True)
class Reference:
    """A blob an entry refers to: under which name (PAYLOAD for the payload), its digest (hex), its size in bytes."""

    name: str
    digest: str
    size: int
