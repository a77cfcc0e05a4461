"""Explanations of misses, by the nearest stored key and the first difference of the two.

Explanations are computed on request, from the encodings of keys in the index. A part that is no
plain value is read by a function that an entry point of the group "cachegraph.readers" names:
`function.graph.mine = "package.module:function"`, with the level, the part, and the owner. It gets
the encodings of the wanted and of the stored part, and returns one line about their first
difference, or raises if they are not its own. A GraphReader also gets the names of variables, and
counts the nodes that differ; the nearest key is the one with the fewest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cachegraph.errors import InvalidEncoding
from cachegraph.graph_difference import GraphReader
from cachegraph.key import SUBJECTS, CacheKey, expanded, kept_names
from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple
from cachegraph.part_differences import part_difference
from cachegraph.store.entry import Miss
from cachegraph.store.protocol import Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from cachegraph.store.local.catalogue import KeptMiss
    from cachegraph.store.local.store import LocalStore

PartReader = Callable[[bytes, bytes], str]

ENTRY_POINTS = "cachegraph.readers"

_CANDIDATES = 50
_GRAPH = "graph"
_MOST_READ = 8 * 2**20
"""Most bytes of graphs whose differing nodes are counted; larger graphs are compared by bytes."""


class PartDifference(NamedTuple):
    """A named part that differs between two keys, and the first difference in it."""

    part: str
    what: str


class Explanation(NamedTuple):
    """The explanation of the miss of `key` (hex): its reason, and the differences from the nearest stored
    key, if any.

    `equal` of `parts` named parts are the same in both.
    """

    key: str
    level: str
    reason: str
    detail: str
    nearest: str | None = None
    equal: int = 0
    parts: int = 0
    differences: tuple[PartDifference, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the explanation line by line; each may hold text that somebody else wrote."""
        lines = [f"{self.level} {self.key}: {self.reason} ({self.detail})"]
        if self.nearest is None:
            lines.append("no other key of this level is stored")
        else:
            lines.append(f"nearest: {self.nearest}, {self.equal} of {self.parts} parts equal")
        return [*lines, *(f"{part}: {what}" for part, what in self.differences)]


def explain(store: Store, key: CacheKey, miss: Miss, before: float | None = None) -> Explanation:
    """Return why `key` missed with `miss`, compared with the nearest key stored up to the time `before`.

    Raises sqlite3.Error and OSError.
    """
    nearest = _nearest(store, key, before)
    if nearest is None:
        return Explanation(key.hex, key.level, miss.reason, miss.detail)
    wanted, stored = dict(key.parts), dict(nearest.parts)
    names = list(dict.fromkeys([*wanted, *stored]))
    changed = [name for name in names if wanted.get(name) != stored.get(name)]
    # A changed part says more than the change of the whole subject that it causes: the subject comes last.
    changed.sort(key=lambda name: name in SUBJECTS)
    differences = tuple(
        PartDifference(name, _difference(key, nearest, name, wanted.get(name), stored.get(name)))
        for name in changed
    )
    equal = len(names) - len(changed)
    return Explanation(
        key.hex, key.level, miss.reason, miss.detail, nearest.hex, equal, len(names), differences
    )


def explain_kept(store: LocalStore, kept: KeptMiss) -> Explanation:
    """Return why a miss that the index recorded happened; raises sqlite3.Error and OSError."""
    miss = Miss(kept.reason, kept.detail)
    compressed = kept.encoding or store.catalogue.encoding(kept.digest)
    key = None if compressed is None else parsed_key(compressed, kept.digest)
    if key is None:
        return Explanation(kept.digest.hex(), kept.level, miss.reason, miss.detail)
    return explain(store, key, miss, kept.missed)


def parsed_key(compressed: bytes, digest: bytes) -> CacheKey | None:
    """Return the key of a compressed encoding, or None if it is not the key of `digest`."""
    try:
        key = CacheKey.parse(expanded(compressed))
    except InvalidEncoding:
        return None
    return key._replace(names=kept_names(compressed)) if key.digest == digest else None


def _nearest(store: Store, key: CacheKey, before: float | None) -> CacheKey | None:
    """Return the stored key whose graph differs in the fewest nodes.

    Among equals, or if no reader counts nodes: the one with the most equal parts, then the one whose encoding
    has the longest common beginning and end.
    """
    found = store.nearest_keys(key, time.time() + 1.0 if before is None else before, _CANDIDATES)
    parsed = ((near, parsed_key(near.encoding, near.digest)) for near in found)
    known = [(near, candidate) for near, candidate in parsed if candidate is not None]
    distances = _distances(key, [candidate for _, candidate in known])
    # Candidates come latest first, and min() takes the first of equals.
    ranks = [
        (distance, -near.equal, -_likeness(key.encoding, candidate.encoding))
        for distance, (near, candidate) in zip(distances, known, strict=True)
    ]
    best = min(range(len(ranks)), key=ranks.__getitem__, default=None)
    return None if best is None else known[best][1]


def _distances(key: CacheKey, candidates: Sequence[CacheKey]) -> list[int]:
    """Return how many nodes of the graph differ from each candidate's; 0 for all if no reader can tell."""
    wanted = dict(key.parts).get(_GRAPH)
    others = [dict(candidate.parts).get(_GRAPH) for candidate in candidates]
    total = sum(len(other) for other in others if other is not None)
    if wanted is None or None in others or total > _MOST_READ:
        return [0] * len(candidates)
    for reader in _readers_of(key.level, _GRAPH):
        distance = getattr(reader, "distance", None)
        if distance is None:
            continue
        try:
            return [0 if other == wanted else distance(wanted, other) for other in others]
        except Exception as error:  # it reads other graphs
            logger("cachegraph").debug("counting nodes of a %s key failed: %s", key.level, error)
    return [0] * len(candidates)


def _likeness(encoding: bytes, other: bytes) -> float:
    common = _common_prefix(encoding, other) + _common_prefix(encoding[::-1], other[::-1])
    return common / max(len(encoding), len(other))


def _common_prefix(first: bytes, second: bytes) -> int:
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _difference(
    key: CacheKey, nearest: CacheKey, part: str, wanted: bytes | None, stored: bytes | None
) -> str:
    if wanted is None or stored is None:
        return "only in the stored key" if wanted is None else "not in the stored key"
    for reader in _readers_of(key.level, part):
        try:
            if isinstance(reader, GraphReader):
                return reader(wanted, stored, key.names, nearest.names)
            return reader(wanted, stored)
        except (
            Exception
        ) as error:  # foreign code, or bytes of another release: fall back to the plain difference
            logger("cachegraph").debug("reading the part %s of a %s key failed: %s", part, key.level, error)
    return part_difference(part, wanted, stored)


@lru_cache(maxsize=64)
def _readers_of(level: str, part: str) -> tuple[PartReader, ...]:
    name, readers = f"{level}.{part}.", []
    for found in _entry_points():
        if not found.name.startswith(name):
            continue
        try:
            readers.append(found.load())
        except Exception as error:  # the package is broken, or half installed
            logger("cachegraph").debug("loading the reader %s failed: %s", found.value, error)
    return tuple(readers)


@lru_cache(maxsize=1)
def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # reads a file of every installed distribution

    return entry_points(group=ENTRY_POINTS)
