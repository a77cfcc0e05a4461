"""How a plan of pruning comes about, from what a store contains, whatever kind of store it is.

Entries go that were asked for; then, where nothing can be known to need them, kernels and Ops that no entry refers to and
nobody has used for long; then those of the least worth until a size is kept, none before what refers to it. With them go
the blobs that only they refer to. Blobs that nothing refers to and leftovers of killed processes go after a grace period:
a writer may be about to refer to them.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cachegraph.store.blobs import BlobFile
from cachegraph.store.criteria import Criteria, Leftover, Plan
from cachegraph.store.entry import Entry, Reference
from cachegraph.store.paths import CLEARING_PREFIX
from cachegraph.units import format_duration

KEPT_ASIDE_SECONDS = 7 * 86400.0
UNREFERENCED_SECONDS = 30 * 86400.0
"""How long a kernel or an Op stays that nothing refers to and nobody uses."""

_REFERRED_LEVELS = ("op", "kernel")


@dataclass(frozen=True)
class Contents:
    """What a store holds, as it was when somebody looked.

    `blobs_of` and `refers_to` go from the key digest of an entry to its blobs and to the key digests of the entries that
    it refers to, `worths` from there to what eviction goes by. `knows_uses` is whether entries that are used are known
    to be. `overhead` are the bytes of what is neither entry nor file.
    """

    entries: Sequence[Entry]
    blobs_of: Mapping[bytes, Sequence[Reference]]
    refers_to: Mapping[bytes, Sequence[bytes]]
    worths: Mapping[bytes, float]
    is_stale: Callable[[Entry], bool]
    files: Sequence[BlobFile]
    leftovers: Sequence[Leftover]
    grace_seconds: float
    knows_uses: bool
    overhead: int


def make_plan(contents: Contents, now: float, criteria: Criteria) -> Plan:
    """Return what to remove of `contents`, looked at `now` (seconds since 1970)."""
    books = _Books(contents)
    old = now - contents.grace_seconds
    unreferenced = [
        file for file in contents.files if file.digest and not books.blobs[file.digest] and file.changed < old
    ]
    before = contents.overhead + sum(file.size for file in contents.files)
    after = before - sum(file.size for file in unreferenced) - sum(left.size for left in contents.leftovers)
    reasons: dict[bytes, str] = {}
    for entry in contents.entries:
        why = criteria.reason(entry, now, contents.is_stale) or books.unneeded(entry, now)
        if why:
            reasons[entry.digest] = why
            after -= books.remove(entry)
    for entry in books.least_worth(filter(criteria.applies_to, contents.entries)):
        if criteria.max_size is None or after <= criteria.max_size:
            break
        reasons[entry.digest] = criteria.size_reason
        after -= books.remove(entry)
    victims = [books.entries[digest] for digest in reasons]
    blobs = [*unreferenced, *(file for file in contents.files if file.digest in books.freed)]
    return Plan(victims, reasons, blobs, contents.leftovers, before, max(after, 0))


def leftover_files(files: Iterable[Path], before: float) -> Iterator[Leftover]:
    """Yield those of `files` that were last changed before a time, in seconds since 1970."""
    for path in files:
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if status.st_mtime < before:
            yield Leftover(path, status.st_size)


def half_cleared(directory: Path, before: float) -> Iterator[Leftover]:
    """Yield the stores in `directory` that somebody began to remove before a time, in seconds since 1970."""
    for path in directory.glob(f"{CLEARING_PREFIX}*"):
        if path.stat().st_mtime < before:
            yield Leftover(path, 0)


class _Books:
    """What refers to what, kept true while entries are chosen to be removed."""

    def __init__(self, contents: Contents) -> None:
        self.entries = {entry.digest: entry for entry in contents.entries}
        self.blobs = Counter(blob.digest for blobs in contents.blobs_of.values() for blob in blobs)
        self.freed: set[str] = set()
        self._contents = contents
        self._referrers = Counter(other for others in contents.refers_to.values() for other in others)
        self._removed: set[bytes] = set()

    def unneeded(self, entry: Entry, now: float) -> str:
        """Why `entry` goes though nobody asked for it; empty if it does not."""
        if not self._contents.knows_uses or entry.level not in _REFERRED_LEVELS:
            return ""
        if self._referrers[entry.digest] or entry.last_used >= now - UNREFERENCED_SECONDS:
            return ""
        return f"pruned: nothing refers to it, not used for {format_duration(UNREFERENCED_SECONDS)}"

    def remove(self, entry: Entry) -> int:
        """Count `entry` out, and return the bytes of its row or file and of the blobs that nothing else refers to."""
        self._removed.add(entry.digest)
        for other in self._contents.refers_to.get(entry.digest, ()):
            self._referrers[other] -= 1
        size = entry.stored_size
        for blob in self._contents.blobs_of.get(entry.digest, ()):
            self.blobs[blob.digest] -= 1
            if not self.blobs[blob.digest]:
                self.freed.add(blob.digest)
                size += blob.size
        return size

    def least_worth(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield `entries` that are left, the least worth first, none before what refers to it while there is another.

        Each is to be removed before the next is asked for.
        """
        chosen = {entry.digest: entry for entry in entries if entry.digest not in self._removed}

        def place(digest: bytes) -> tuple[bool, float, float, bytes]:
            worth = self._contents.worths.get(digest, 0.0)
            return self._referrers[digest] > 0, worth, chosen[digest].last_used, digest

        waiting = [place(digest) for digest in chosen]
        heapq.heapify(waiting)
        while waiting:
            digest = heapq.heappop(waiting)[-1]
            if digest in self._removed:
                continue
            yield chosen[digest]
            for other in self._contents.refers_to.get(digest, ()):
                if other in chosen and not self._referrers[other]:
                    heapq.heappush(waiting, place(other))
