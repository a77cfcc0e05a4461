"""The results of look-ups, of comparisons with a new build, and the record of how a function was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Generic, Literal, TypeVar

from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import Artifact

T = TypeVar("T")

MISMATCH = "mismatch"
"""The miss reason of an entry that differed from a new build."""

UNVERIFIED = "unverified"
"""The miss reason of an entry that could not be compared with a new build, because building or comparing
raised."""


class Found(NamedTuple, Generic[T]):
    """The result of a look-up: the loaded `value` and its origin.

    `reason` is that of the miss or of the bypass, empty on a hit. `seconds` (step -> seconds) is the build
    cost: recorded on a hit, spent on a miss. `load_seconds` is the time to load. `blobs` (name -> digest,
    hex) can be read with `read_blob` after a hit.
    """

    value: T
    outcome: Literal["hit", "miss", "bypass"]
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


class CacheInfo(SimpleNamespace):
    """The record of how a function was made.

    `outcome` is "hit", "miss", "bypass", or "carried": the function came in a pickle, and the cache of the
    loading process lacked the entry. `reason` says why it is not a hit. `key` is the function's, in
    hexadecimal. `found` has [hits, misses] for each level, inner functions included; `seconds` is the time of
    each step, and of all; `seconds_saved` is the build cost of the hits minus the time to load them.
    `rewrites` and `compilations` count the work of this process.
    """

    def __init__(
        self,
        outcome: str = "miss",
        reason: str = "",
        key: str | None = None,
        found: dict[str, list[int]] | None = None,
        seconds: dict[str, float] | None = None,
        seconds_saved: float = 0.0,
        rewrites: int = 0,
        compilations: int = 0,
    ) -> None:
        self.outcome = outcome
        self.reason = reason
        self.key = key
        self.found = {} if found is None else found
        self.seconds = {} if seconds is None else seconds
        self.seconds_saved = seconds_saved
        self.rewrites = rewrites
        self.compilations = compilations

    def replace(self, **changes: Any) -> CacheInfo:
        """Return a copy with other values in the named fields."""
        return CacheInfo(**{**vars(self), **changes})

    def __str__(self) -> str:
        from cachegraph.caching.shown_outcome import as_text  # few look at it

        return as_text(self)

    def _repr_html_(self) -> str:
        from cachegraph.caching.shown_outcome import as_html

        return as_html(self)
