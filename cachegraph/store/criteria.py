"""What pruning is asked to remove, and the plan that comes of it, whatever kind of store it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.hasher import encode
from cachegraph.key import CacheKey, expanded
from cachegraph.store.blobs import BlobFile
from cachegraph.store.entry import Entry
from cachegraph.store.record import RECORD_FORMAT
from cachegraph.toolchain import toolchain
from cachegraph.units import format_duration, format_size

Advance = Callable[[int], None]
"""Called with how many more things are done."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which entries go: beyond `max_size` bytes, made `older_than` seconds ago, `unused_for` seconds, `stale` ones.

    `level` restricts all of these to entries of one level; without any of them, all entries of that level go.
    """

    max_size: int | None = None
    older_than: float | None = None
    unused_for: float | None = None
    level: str | None = None
    stale: bool = False

    def applies_to(self, entry: Entry) -> bool:
        """Return whether `entry` may be chosen at all."""
        return self.level is None or entry.level == self.level

    def reason(self, entry: Entry, now: float, is_stale: Callable[[Entry], bool]) -> str:
        """Return why `entry` goes whatever the size, empty if it does not; `is_stale` is asked if that matters."""
        if not self.applies_to(entry):
            return ""
        if self.older_than is not None and entry.created < now - self.older_than:
            return f"pruned: older than {format_duration(self.older_than)}"
        if self.unused_for is not None and entry.last_used < now - self.unused_for:
            return f"pruned: not used for {format_duration(self.unused_for)}"
        if self.stale and is_stale(entry):
            return "pruned: made by other releases than those in use now"
        alone = self.max_size is None and self.older_than is None and self.unused_for is None
        return f"pruned: level {self.level}" if self.level and alone and not self.stale else ""

    @property
    def size_reason(self) -> str:
        """Why an entry goes that is too much."""
        return f"pruned: to keep {format_size(self.max_size or 0)}"


NEEDLESS_ONLY = Criteria()
"""By these nothing goes but what nothing needs."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or directory that belongs to nothing: a temporary file, an index set aside, a store half removed."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What pruning removes, and the bytes the directory holds before and, by estimate, after."""

    entries: Sequence[Entry]
    reasons: Mapping[bytes, str]  # key digest -> why its entry goes
    blobs: Sequence[BlobFile]
    leftovers: Sequence[Leftover]
    bytes_before: int
    bytes_after: int

    @property
    def steps(self) -> int:
        """How many things are to be removed."""
        return len(self.entries) + len(self.blobs) + len(self.leftovers)

    def beside(self, other: Plan) -> Plan:
        """Return both plans as one, to be shown."""
        return Plan(
            [*self.entries, *other.entries],
            {**self.reasons, **other.reasons},
            [*self.blobs, *other.blobs],
            list(dict.fromkeys((*self.leftovers, *other.leftovers))),
            self.bytes_before + other.bytes_before,
            self.bytes_after + other.bytes_after,
        )


def is_stale(compressed_encoding: bytes, record_format: int) -> bool:
    """Return whether an entry is of another release than this one: of cachegraph, or of what compiles.

    So it is for the releases that look for it; to them, what this one makes is.
    """
    if record_format != RECORD_FORMAT:
        return True
    try:
        key = CacheKey.parse(expanded(compressed_encoding))
    except InvalidEncoding:  # of another HASH_VERSION, or damaged: nothing finds it
        return True
    return dict(key.parts).get("toolchain", encode(toolchain())) != encode(toolchain())
