"""Planning of pruning: which entries, blobs and leftovers of a store go.

A plan removes entries in this order: those that the criteria name; where uses are known, kernels
and Ops that no entry refers to and that were not used for long; and those of least worth until a
size is kept, none before the entries that refer to it. Blobs that only these entries refer to go
with them. Blobs without references and leftovers of killed processes go after a grace period,
because a writer may be about to refer to them.

Plans are made in SQLite tables, so that planning takes memory for what goes and not for what stays:
`item`, which the store fills with the facts about its entries, and beside it `reference` and
`blob_reference`, as in the index.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.blobs import BlobFile
from cachegraph.store.entry import ALL_LEVELS
from cachegraph.store.local.eviction import is_referred_to
from cachegraph.store.local.sizes import COUNT_BLOB_BYTES
from cachegraph.store.paths import CLEARING_PREFIX
from cachegraph.units import format_duration, format_size

Advance = Callable[[int], None]
"""A progress callback, called with the number of steps just done."""

QUARANTINE_SECONDS = 7 * 86400.0
UNREFERENCED_SECONDS = 30 * 86400.0
"""How long an unused kernel or Op stays that no entry refers to."""


class Criteria(Struct, frozen=True):
    """The entries to prune.

    Those are the least valuable beyond `max_size` bytes, and those made `older_than` seconds ago,
    not used for `unused_for` seconds, or `stale`. `levels`, a level or a pattern such as "toyc/*",
    restricts all of these to entries of these levels; with `levels` alone, all of these go.
    """

    max_size: int | None = None
    older_than: float | None = None
    unused_for: float | None = None
    levels: str = ALL_LEVELS
    stale: bool = False

    def conditions(self, now: float) -> Iterator[tuple[str, tuple[object, ...], str]]:
        """Yield the criteria but the size: an SQL condition on `item`, its parameters, the reason."""
        if self.older_than is not None:
            why = f"pruned: older than {format_duration(self.older_than)}"
            yield "created < ?", (now - self.older_than,), why
        if self.unused_for is not None:
            why = f"pruned: not used for {format_duration(self.unused_for)}"
            yield "last_used < ?", (now - self.unused_for,), why
        if self.stale:
            yield "is_stale", (), "pruned: made by other releases than those in use now"
        alone = self.max_size is None and self.older_than is None and self.unused_for is None
        if self.levels != ALL_LEVELS and alone and not self.stale:
            yield "TRUE", (), f"pruned: level {self.levels}"

    @property
    def size_reason(self) -> str:
        """Return the reason for pruning an entry because of the size."""
        return f"pruned: to keep {format_size(self.max_size or 0)}"


NEEDLESS_ONLY = Criteria()
"""Criteria that prune only what no entry needs."""


class Leftover(Struct, frozen=True):
    """A file or directory without a use: a temporary file, a quarantined index, a store removed halfway."""

    path: Path
    size: int


class PrunedEntry(NamedTuple):
    """An entry to prune: `bytes` of its rows or its file, `size` with its blobs, and `why` it goes."""

    digest: bytes
    level: str
    bytes: int
    size: int
    last_used: float
    summary: str
    why: str


class Plan(Struct, frozen=True):
    """The things that pruning removes, and the bytes that the store holds (sizes.py) before and after."""

    entries: Sequence[PrunedEntry]
    blobs: Sequence[BlobFile]
    leftovers: Sequence[Leftover]
    bytes_before: int
    bytes_after: int

    @property
    def steps(self) -> int:
        """Return the number of things to remove."""
        return len(self.entries) + len(self.blobs) + len(self.leftovers)

    def beside(self, other: Plan) -> Plan:
        """Return both plans as one, for showing them."""
        return Plan(
            [*self.entries, *other.entries],
            [*self.blobs, *other.blobs],
            list(dict.fromkeys((*self.leftovers, *other.leftovers))),
            self.bytes_before + other.bytes_before,
            self.bytes_after + other.bytes_after,
        )


CREATE_ITEM = """
    CREATE TEMP TABLE item (
        id INTEGER PRIMARY KEY, digest BLOB UNIQUE, level TEXT, bytes INTEGER, taken INTEGER, created REAL,
        last_used REAL, summary TEXT, worth REAL, referrers INTEGER,
        is_stale INTEGER NOT NULL DEFAULT 0, why TEXT
    )
"""
"""A table of entries: `bytes` of the rows or the file, `taken` with the blobs (sizes.py), `worth` as in
eviction, and the reason `why` the entry goes, NULL if it stays."""

_SELECT_UNNEEDED = """
    SELECT id FROM item WHERE why IS NULL AND referrers <= 0 AND level IN ('op', 'kernel') AND last_used < ?
    ORDER BY last_used, digest
"""
_ORDER = "worth, last_used, digest"
_SELECT_BY_WORTH = f"""
    SELECT {_ORDER}, id FROM item WHERE why IS NULL AND level GLOB ? AND (referrers > 0) = ?
    ORDER BY {_ORDER}
"""
_SELECT_RELEASED = f"""
    SELECT {_ORDER}, id FROM item
    WHERE digest = ? AND referrers <= 0 AND why IS NULL AND level GLOB ?
"""
_SELECT_PRUNED = """
    SELECT digest, level, bytes, taken, last_used, summary, why FROM item
    WHERE why IS NOT NULL ORDER BY rowid
"""
_Rank = tuple[float, float, bytes, int]
"""Worth, time of the last use, digest, and id of an entry: the least goes first."""


class Contents(Struct, frozen=True):
    """A snapshot of a store: tables of its entries in `books`, its blob files and leftovers.

    `knows_uses` is False if entries may be used without a record of it.
    """

    books: sqlite3.Connection
    files: Iterable[BlobFile]
    leftovers: list[Leftover]
    grace_seconds: float
    knows_uses: bool


def make_plan(contents: Contents, now: float, criteria: Criteria) -> Plan:
    """Return what to remove of `contents`, a snapshot taken at `now` (seconds since 1970)."""
    books = _Books(contents.books, criteria.levels)
    before = books.held
    books.remove_asked(criteria, now)
    if contents.knows_uses:
        books.remove_unneeded(now)
    if criteria.max_size is not None:
        books.remove_least_worth(criteria.max_size, criteria.size_reason)
    freed, needless = [], []
    for file in contents.files:
        if file.digest in books.freed:
            freed.append(file)
        elif file.digest and file.changed < now - contents.grace_seconds and not books.refers_to(file.digest):
            needless.append(file)
    return Plan(books.pruned(), [*needless, *freed], contents.leftovers, before, books.held)


def leftover_files(files: Iterable[Path], before: float) -> Iterator[Leftover]:
    """Yield the files last changed before that time, in seconds since 1970."""
    for path in files:
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if status.st_mtime < before:
            yield Leftover(path, status.st_size)


def half_cleared(directory: Path, before: float) -> Iterator[Leftover]:
    """Yield the stores in `directory` whose removal began before that time, in seconds since 1970."""
    for path in directory.glob(f"{CLEARING_PREFIX}*"):
        if path.stat().st_mtime < before:
            yield Leftover(path, 0)


class _Books:
    """The references among entries and blobs, updated as entries are chosen; `held` bytes stay."""

    def __init__(self, connection: sqlite3.Connection, levels: str) -> None:
        self.freed: set[str] = set()
        self._connection = connection
        self._levels = levels
        self._waiting: list[_Rank] = []
        self._references_left: dict[bytes, int] = {}
        self.held = self._number("SELECT coalesce(sum(bytes), 0) FROM item") + self._number(COUNT_BLOB_BYTES)

    def remove_asked(self, criteria: Criteria, now: float) -> None:
        """Choose the entries that `criteria` name, except by size."""
        for condition, parameter, why in criteria.conditions(now):
            where = f"why IS NULL AND level GLOB ? AND {condition}"
            chosen = self._connection.execute(
                f"SELECT id FROM item WHERE {where} ORDER BY last_used, digest", (self._levels, *parameter)
            ).fetchall()
            for (number,) in chosen:
                self._remove(number, why)

    def remove_unneeded(self, now: float) -> None:
        """Choose unused kernels and Ops without references, again until there are none."""
        why = f"pruned: nothing refers to it, not used for {format_duration(UNREFERENCED_SECONDS)}"
        while found := self._connection.execute(_SELECT_UNNEEDED, (now - UNREFERENCED_SECONDS,)).fetchall():
            for (number,) in found:
                self._remove(number, why)

    def remove_least_worth(self, size: int, why: str) -> None:
        """Choose entries of least worth until `size` bytes are held, those with references last."""
        for are_referred_to in (False, True):
            self._waiting = []
            # SQLite sorts before it returns the first row, so removals meanwhile do not change the order.
            ranks = self._connection.execute(_SELECT_BY_WORTH, (self._levels, are_referred_to))
            for rank in self._with_released(ranks, released_first=are_referred_to):
                if self.held <= size:
                    return
                self._remove(rank[-1], why)

    def refers_to(self, digest_hex: str) -> bool:
        """Return True if any entry, chosen or not, refers to the blob."""
        return is_referred_to(self._connection, bytes.fromhex(digest_hex))

    def pruned(self) -> list[PrunedEntry]:
        """Return the chosen entries, in the order of the store."""
        return [PrunedEntry(*row) for row in self._connection.execute(_SELECT_PRUNED)]

    def _with_released(self, ranks: Iterator[_Rank], released_first: bool) -> Iterator[_Rank]:
        """Yield `ranks`, merged with the ranks of entries that lose their last reference meanwhile."""
        chosen: set[int] = set()
        following = next(ranks, None)
        while following or self._waiting:
            if self._waiting and (not following or released_first or self._waiting[0] < following):
                rank = heapq.heappop(self._waiting)
            else:
                assert following is not None
                rank, following = following, next(ranks, None)
            if rank[-1] not in chosen:
                chosen.add(rank[-1])
                yield rank

    def _remove(self, number: int, why: str) -> None:
        """Choose an entry, with the blobs that no other entry refers to."""
        execute = self._connection.execute
        execute("UPDATE item SET why = ? WHERE id = ?", (why, number))
        self.held -= self._number("SELECT bytes FROM item WHERE id = ?", number)
        for (other,) in execute("SELECT digest FROM reference WHERE entry_id = ?", (number,)).fetchall():
            self._release(other)
        for blob, size in execute(
            "SELECT blob, size FROM blob_reference WHERE entry_id = ?", (number,)
        ).fetchall():
            self._release_blob(blob, size)

    def _release(self, digest: bytes) -> None:
        """Count one referrer of an entry less; an entry without referrers waits for its turn."""
        self._connection.execute("UPDATE item SET referrers = referrers - 1 WHERE digest = ?", (digest,))
        for rank in self._connection.execute(_SELECT_RELEASED, (digest, self._levels)):
            heapq.heappush(self._waiting, rank)

    def _release_blob(self, blob: bytes, size: int) -> None:
        if blob not in self._references_left:
            select = "SELECT count(*) FROM blob_reference WHERE blob = ?"
            self._references_left[blob] = self._number(select, blob)
        self._references_left[blob] -= 1
        if not self._references_left[blob]:
            self.freed.add(blob.hex())
            self.held -= size

    def _number(self, statement: str, *parameters: object) -> int:
        return int(self._connection.execute(statement, parameters).fetchone()[0])
