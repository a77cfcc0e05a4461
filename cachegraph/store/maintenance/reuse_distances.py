"""The cost that a size limit would have had, by the recorded uses of a store.

The reuse distance of a use is the size of all entries used since the last use of the same entry, its
own included. A cache that evicts the least recently used entry has it if and only if it holds that
many bytes. So one walk over the uses answers for every limit: the stack algorithm of R. L. Mattson,
J. Gecsei, D. R. Slutz and I. L. Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
Journal 9(2), 1970, with sizes for counts. The sums are kept in a tree, as in B. T. Bennett and
V. J. Kruskal, "LRU stack processing", IBM Journal of Research and Development 19(4), 1975 (here P. M.
Fenwick's), so n uses take O(n log n).

Eviction weighs size, cost and uses, too (local/eviction.py), and so loses fewer seconds: this is what
the limit costs at most, as far as uses were recorded, and counts blobs once for each entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.use_log.reading import references

_SHARES = (16, 8, 4, 2, 1)
"""Parts of the size of all entries: the limits that are shown if none is given."""


class Reuse(NamedTuple):
    """A use of an entry that was used before: its distance in bytes, and the seconds that a hit saves."""

    distance: int
    seconds: float


class LimitCost(NamedTuple):
    """The uses that would have been misses within `max_size` bytes, and the seconds of building again."""

    max_size: int
    misses: int
    seconds: float


class WhatIf(NamedTuple):
    """The recorded uses of a store: `first` ones, which miss at any limit, and `reuses`.

    The entries of some are `gone`, so their sizes are unknown. `held` is the size of all entries.
    """

    first: int
    gone: int
    held: int
    reuses: Sequence[Reuse]

    @property
    def uses(self) -> int:
        """Return how many uses are recorded."""
        return self.first + len(self.reuses) + self.gone

    def costs(self, sizes: Sequence[int]) -> list[LimitCost]:
        """Return the cost of each of `sizes` bytes, or of parts of what is held if there are none."""
        return [self.cost(size) for size in sorted(sizes or {self.held // share for share in _SHARES})]

    def cost(self, max_size: int) -> LimitCost:
        """Return what a limit of `max_size` bytes would have cost."""
        missed = [reuse.seconds for reuse in self.reuses if reuse.distance > max_size]
        return LimitCost(max_size, len(missed), sum(missed))


def recorded_uses(cache: CacheDirectory) -> WhatIf:
    """Return the recorded uses of the files of `cache`, or else of its index.

    Raises sqlite3.Error and OSError.
    """
    of_files = None if cache.shared is None else what_if(cache.shared)
    return of_files if of_files is not None and of_files.uses else what_if(cache.local)


def what_if(store: LocalStore | SharedStore) -> WhatIf:
    """Return the recorded uses of `store`. Raises sqlite3.Error and OSError."""
    used = references(store.use_logs())
    wanted, held = set(used), 0
    sizes: dict[bytes, int] = {}
    seconds: dict[bytes, float] = {}
    for digest, size, saved in _costs(store):
        held += size
        if digest in wanted:
            sizes[digest], seconds[digest] = size, max(saved, 0.0)
    known = [digest for digest in used if digest in sizes]
    reuses = [
        Reuse(distance, seconds[digest])
        for digest, distance in zip(known, reuse_distances(known, sizes), strict=True)
        if distance is not None
    ]
    return WhatIf(len(known) - len(reuses), len(used) - len(known), held, reuses)


def _costs(store: LocalStore | SharedStore) -> Iterator[tuple[bytes, int, float]]:
    """Yield the key digest of every entry, its size, and the seconds that a hit saves."""
    if isinstance(store, LocalStore):
        return store.catalogue.costs()
    return ((each.digest, each.size, each.build_seconds - each.load_seconds) for each in store.scan())


def reuse_distances(used: Sequence[bytes], sizes: Mapping[bytes, int]) -> Iterable[int | None]:
    """Yield the distance of each of `used` in bytes; None for a first use.

    Raises KeyError for an unknown size.
    """
    since = _Sums(len(used))
    last: dict[bytes, int] = {}
    for now, digest in enumerate(used):
        before = last.get(digest)
        if before is None:
            yield None
        else:
            yield since.total - since.below(before)
            since.add(before, -sizes[digest])
        since.add(now, sizes[digest])
        last[digest] = now


class _Sums:
    """A Fenwick tree: numbers at the places 0 to `length` - 1, and sums of those below a place."""

    def __init__(self, length: int) -> None:
        self.total = 0
        self._tree = [0] * (length + 1)

    def add(self, place: int, number: int) -> None:
        self.total += number
        node = place + 1
        while node < len(self._tree):
            self._tree[node] += number
            node += node & -node

    def below(self, place: int) -> int:
        """Return the sum of the numbers at places less than `place`."""
        found = 0
        while place > 0:
            found += self._tree[place]
            place -= place & -place
        return found
