"""What pruning is asked to remove, and the plan that comes of it, whatever kind of store it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey, expanded
from cachegraph.store.local.blobs import BlobFile
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

    def conditions(self, now: float) -> Iterator[tuple[str, tuple[object, ...], str]]:
        """Yield what goes whatever the size: a condition on `item` (planning.py), its parameters, and why it goes."""
        if self.older_than is not None:
            why = f"pruned: older than {format_duration(self.older_than)}"
            yield "created < ?", (now - self.older_than,), why
        if self.unused_for is not None:
            why = f"pruned: not used for {format_duration(self.unused_for)}"
            yield "last_used < ?", (now - self.unused_for,), why
        if self.stale:
            yield "is_stale", (), "pruned: made by other releases than those in use now"
        alone = self.max_size is None and self.older_than is None and self.unused_for is None
        if self.level and alone and not self.stale:
            yield "TRUE", (), f"pruned: level {self.level}"

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


class Victim(NamedTuple):
    """An entry that is to go: its key, its level, the bytes of its rows or its file, and with its blobs, `why` it goes."""

    digest: bytes
    level: str
    bytes: int
    size: int
    last_used: float
    summary: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What pruning removes, and the bytes that the store holds (sizes.py) before and after."""

    entries: Sequence[Victim]
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
