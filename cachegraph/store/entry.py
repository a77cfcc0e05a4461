"""What goes into a store, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Artifact:
    """The result of a build.

    `payload` is what a hit returns at once; `blobs` (name, not empty -> bytes) is what is read only when asked for.
    `seconds` (step -> seconds) is what this build cost by itself, without what nested builds record for themselves.
    `summary` is one short line for people.
    """

    payload: bytes
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    summary: str = ""


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
    written), unreadable (it could not be read or loaded), foreign-format (written by another release), collision (same
    digest, other key), disabled; `detail` is for people.
    """

    reason: str
    detail: str
