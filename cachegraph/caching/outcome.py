"""What asking a cache for a loaded value gives, and what a comparison of it with a new build gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact

T = TypeVar("T")

MISMATCH = "mismatch"
"""The reason of a miss that was a hit until it was compared with a new build."""

UNVERIFIED = "unverified"
"""The reason of a miss that was a hit until it was to be compared, and building it, or comparing, failed."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What `get_or_build` returns: the loaded `value` and how it came about.

    `reason` is that of the miss, empty on a hit. `seconds` (step -> seconds) is the cost of the build: recorded on a
    hit, spent on a miss. `load_seconds` is what loading took. `blobs` (name -> digest, hex) is what the entry of a hit
    offers to `read_blob`.
    """

    value: T
    outcome: Literal["hit", "miss"]
    reason: str
    seconds: Mapping[str, float]
    load_seconds: float
    blobs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Correction(Generic[T]):
    """What building gave instead of what an entry held: the `difference`, for people, the artifact and the loaded value."""

    difference: str
    artifact: Artifact
    value: T


Verify = Callable[[CacheKey, Found[T]], Correction[T] | None]
"""Builds what an entry holds anew and compares; None if there is no difference."""


@dataclass
class CacheInfo:
    """How a function came about.

    `outcome` is "hit", "miss", "bypass", or "carried": it came in a pickle, and the cache of the process that loaded it
    had no such entry. `reason` says why it is not a hit. `key` is the function's, in hexadecimal. `found` has
    [hits, misses] for each level, the functions within it included, `seconds` what each step took, `seconds_saved` what the hits would have cost, less
    what loading them took. `rewrites` and `compilations` count what this process did.
    """

    outcome: str = "miss"
    reason: str = ""
    key: str | None = None
    found: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    seconds_saved: float = 0.0
    rewrites: int = 0
    compilations: int = 0
