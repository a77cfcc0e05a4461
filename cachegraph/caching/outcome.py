"""The results of look-ups, of comparisons with a new build, and the record of how a function was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact

T = TypeVar("T")

MISMATCH = "mismatch"
"""The miss reason of an entry that differed from a new build."""

UNVERIFIED = "unverified"
"""The miss reason of an entry that could not be compared with a new build, because building or comparing
raised."""


class Found(NamedTuple, Generic[T]):
    """The result of a look-up: the loaded `value` and its origin.

    `reason` is that of the miss, empty on a hit. `seconds` (step -> seconds) is the build cost: recorded on a
    hit, spent on a miss. `load_seconds` is the time to load. `blobs` (name -> digest, hex) can be read with
    `read_blob` after a hit.
    """

    value: T
    outcome: Literal["hit", "miss"]
    reason: str
    seconds: Mapping[str, float]
    load_seconds: float
    blobs: Mapping[str, str]


class Correction(NamedTuple, Generic[T]):
    """A new build that replaces a wrong entry: the `difference`, for people, the artifact and the loaded
    value."""

    difference: str
    artifact: Artifact
    value: T


Verify = Callable[[CacheKey, Found[T]], Correction[T] | None]
"""Builds an entry again and compares; returns None if there is no difference."""


@dataclass
class CacheInfo:
    """The record of how a function was made.

    `outcome` is "hit", "miss", "bypass", or "carried": the function came in a pickle, and the cache of the
    loading process lacked the entry. `reason` says why it is not a hit. `key` is the function's, in
    hexadecimal. `found` has [hits, misses] for each level, inner functions included; `seconds` is the time of
    each step; `seconds_saved` is the build cost of the hits minus the time to load them. `rewrites` and
    `compilations` count the work of this process.
    """

    outcome: str = "miss"
    reason: str = ""
    key: str | None = None
    found: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    seconds_saved: float = 0.0
    rewrites: int = 0
    compilations: int = 0
