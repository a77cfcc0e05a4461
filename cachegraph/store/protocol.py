"""The interface of every store, claims on keys, and the store that stands in where there is no cache."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.activity import Batch
from cachegraph.store.entry import Artifact, Entry, Hit, Miss, NearKey, Origin

LARGEST_HOLDER = 4096
"""Bytes of the file in which a holder describes itself. A larger file was written by somebody else."""

_LONGEST_NAME = 64
_LATEST = 253_402_300_799.0  # the last second of the year 9999


class Store(Protocol):
    """A place that keeps entries.

    It has no `contains`: the answer could be outdated by the time it is used. Methods raise
    sqlite3.Error and OSError unless they say otherwise.
    """

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key`, or the reason for the miss. Never raises."""

    def get_many(self, keys: Sequence[CacheKey]) -> Sequence[Hit | Miss]:
        """Return what `get` returns for each of `keys`, in their order, found together. Never raises."""

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        """Publish `artifact` under `key` in one step, replacing the old entry.

        `load_seconds` is how long loading it took; a copy has its `origin`, whose signature it keeps. Raises
        sqlite3.Error and OSError when writing fails, and ValueError if the artifact cannot be stored.
        """

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the checked content of a blob that a hit named, or None. Never raises."""

    def scan(self) -> Iterable[Entry]:
        """Return every entry, the least recently used first."""

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove the entries of these keys and return how many there were.

        A later miss gives `why` as its reason. Blobs stay until they are pruned.
        """

    def claims(self, key: CacheKey) -> Sequence[Claim]:
        """Return the claims to acquire, in this order, before building the entry of `key`."""

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Estimate the seconds that building `key` takes; None if nothing is recorded. Never raises."""

    def summary(self, key: CacheKey) -> str:
        """Return what the entry of `key` says of itself for people; empty if it is unknown. Never raises."""

    def nearest_keys(self, key: CacheKey, before: float, most: int) -> Sequence[NearKey]:
        """Return up to `most` keys of the same level that share the most parts with `key`.

        Returns only keys stored up to `before`.
        """

    def add_counts(self, batch: Batch) -> bool:
        """Record the activity of this process and return True; return False if the store keeps no counts."""

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        """Keep `payload`, which differs from a fresh build, for inspection; return its path, or None."""

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""


class Holder(NamedTuple):
    """The process that holds a claim, and since when (seconds since 1970). Empty fields are unknown."""

    host: str = ""
    pid: int = 0
    since: float = 0.0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Holder:
        """Return the holder that wrote `document`. Raises KeyError, TypeError and ValueError."""
        host = "".join(c for c in str(document["host"])[:_LONGEST_NAME] if c.isprintable())
        pid, since = float(document["pid"]), float(document["since"])
        if not isfinite(pid) or not isfinite(since):
            raise ValueError(f"reading the holder of a claim: process {pid}, since {since}")
        return cls(host, int(pid), min(max(since, 0.0), _LATEST))

    def __str__(self) -> str:
        if not self.pid:
            return "an unidentified process"
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.since))
        return f"process {self.pid} on {self.host or 'this machine'}, since {when} UTC"


class Pauses(NamedTuple):
    """Seconds between two tries: the `first` pause, and the `longest` that it grows to."""

    first: float = 0.005
    longest: float = 0.25


class Claim(Protocol):
    """The right to build the entry of one key, so that only one process builds it.

    Claims only save work: correctness never depends on them. Where a claim cannot be taken (full
    disk, read-only or missing directory), every process builds. Waiting processes call `acquire`
    repeatedly, after `pauses`, which detects dead holders.
    """

    @property
    def pauses(self) -> Pauses:
        """Return how long to wait between two tries."""

    @property
    def may_be_elsewhere(self) -> bool:
        """Return True if the holder may be on another node, so that its result comes by a shared tier."""

    def acquire(self) -> Holder | None:
        """Try to take the claim without waiting: return None if it was taken, else its holder.

        Raises OSError if claims do not work here, and its subclass Unkept if waiting for the holder
        is useless.
        """

    def wait(self, seconds: float) -> None:
        """Return when the holder gives the claim back, if that can be told, or else after `seconds`.

        Raises OSError if claims do not work here any more.
        """

    def mark(self, unkept: bool) -> None:
        """Tell waiting processes whether the last build could not be stored. Never raises OSError."""

    def release(self) -> None:
        """Give the claim back if this process holds it. Never raises OSError."""


class Unkept(OSError):
    """A refused claim: the last result built under it could not be stored, says the file `mark`."""

    def __init__(self, mark: str | os.PathLike[str]) -> None:
        super().__init__(
            errno.EBUSY, "the last result could not be stored, so waiting for it is useless", os.fspath(mark)
        )
        self.mark = mark


class NoStore:
    """The store of a cache that is off or has no directory: every look-up is the miss `why`."""

    def __init__(self, why: Miss) -> None:
        self.why = why

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the reason why there is no cache."""
        return self.why

    def get_many(self, keys: Sequence[CacheKey]) -> Sequence[Hit | Miss]:
        """Return the reason why there is no cache, for each key."""
        return [self.why] * len(keys)

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        """Raise OSError: there is no directory to write to."""
        raise OSError(f"storing {key.hex}: {self.why.detail}")

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return None."""
        return None

    def scan(self) -> Sequence[Entry]:
        """Return no entries."""
        return ()

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Return 0."""
        return 0

    def claims(self, key: CacheKey) -> Sequence[Claim]:
        """Return no claims."""
        return ()

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Return None."""
        return None

    def summary(self, key: CacheKey) -> str:
        """Return an empty text."""
        return ""

    def nearest_keys(self, key: CacheKey, before: float, most: int) -> Sequence[NearKey]:
        """Return no keys."""
        return ()

    def add_counts(self, batch: Batch) -> bool:
        """Return False: the counts are lost."""
        return False

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        """Return None."""
        return None

    def close(self) -> None:
        """Do nothing."""
