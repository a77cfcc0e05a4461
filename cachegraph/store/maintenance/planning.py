"""How a plan of pruning comes about, from the books of a store, whatever kind of store it is.

Entries go that were asked for; then, where nothing can be known to need them, kernels and Ops that no entry refers to and
nobody has used for long; then those of the least worth until a size is kept, none before what refers to it. With them go
the blobs that only they refer to. Blobs that nothing refers to and leftovers of killed processes go after a grace period:
a writer may be about to refer to them.

The books are tables in SQLite, so that planning takes memory for what goes and not for what stays: `item`, which the store
fills with what planning needs to know of its entries, and beside it, as in the index, `reference` and `blob_reference`.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cachegraph.store.local.blobs import BlobFile
from cachegraph.store.maintenance.criteria import Criteria, Leftover, Plan, Victim
from cachegraph.store.paths import CLEARING_PREFIX
from cachegraph.store.sizes import COUNT_BLOB_BYTES
from cachegraph.units import format_duration

KEPT_ASIDE_SECONDS = 7 * 86400.0
UNREFERENCED_SECONDS = 30 * 86400.0
"""How long a kernel or an Op stays that nothing refers to and nobody uses."""

CREATE_ITEM = """
    CREATE TEMP TABLE item (
        id INTEGER PRIMARY KEY, digest BLOB UNIQUE, level TEXT, bytes INTEGER, taken INTEGER, created REAL,
        last_used REAL, summary TEXT, worth REAL, referrers INTEGER, is_stale INTEGER NOT NULL DEFAULT 0, why TEXT
    )
"""
"""`bytes` are those of its rows or its file, `taken` those of its blobs, too (sizes.py). `worth` is what eviction goes by; `why` it goes
is empty for what stays."""

_SELECT_UNNEEDED = """
    SELECT id FROM item WHERE why IS NULL AND referrers <= 0 AND level IN ('op', 'kernel') AND last_used < ?
    ORDER BY last_used, digest
"""
_ORDER = "worth, last_used, digest"
_SELECT_BY_WORTH = f"""
    SELECT {_ORDER}, id FROM item WHERE why IS NULL AND level = coalesce(?, level) AND (referrers > 0) = ?
    ORDER BY {_ORDER}
"""
_SELECT_RELEASED = f"""
    SELECT {_ORDER}, id FROM item
    WHERE digest = ? AND referrers <= 0 AND why IS NULL AND level = coalesce(?, level)
"""
_SELECT_VICTIMS = "SELECT digest, level, bytes, taken, last_used, summary, why FROM item WHERE why IS NOT NULL ORDER BY rowid"
_Place = tuple[float, float, bytes, int]
"""Worth, time of the last use, digest, and id: the least goes first."""


@dataclass(frozen=True)
class Contents:
    """What a store holds, as it was when somebody looked: its `books`, and its blob files.

    `knows_uses` is whether entries that are used are known to be.
    """

    books: sqlite3.Connection
    files: Iterable[BlobFile]
    leftovers: list[Leftover]
    grace_seconds: float
    knows_uses: bool


def make_plan(contents: Contents, now: float, criteria: Criteria) -> Plan:
    """Return what to remove of `contents`, looked at `now` (seconds since 1970)."""
    books = _Books(contents.books, criteria.level)
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
    return Plan(books.victims(), [*needless, *freed], contents.leftovers, before, books.held)


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
    """What refers to what, kept true while entries are chosen to be removed; `held` bytes stay."""

    def __init__(self, connection: sqlite3.Connection, level: str | None) -> None:
        self.freed: set[str] = set()
        self._connection = connection
        self._level = level
        self._waiting: list[_Place] = []
        self._references_left: dict[bytes, int] = {}
        self.held = self._number("SELECT coalesce(sum(bytes), 0) FROM item") + self._number(COUNT_BLOB_BYTES)

    def remove_asked(self, criteria: Criteria, now: float) -> None:
        """Choose what `criteria` name, whatever the size."""
        for condition, parameter, why in criteria.conditions(now):
            where = f"why IS NULL AND level = coalesce(?, level) AND {condition}"
            chosen = self._connection.execute(
                f"SELECT id FROM item WHERE {where} ORDER BY last_used, digest", (self._level, *parameter)
            ).fetchall()
            for (number,) in chosen:
                self._remove(number, why)

    def remove_unneeded(self, now: float) -> None:
        """Choose the kernels and Ops that nothing refers to, and so on with those that only these referred to."""
        why = f"pruned: nothing refers to it, not used for {format_duration(UNREFERENCED_SECONDS)}"
        while found := self._connection.execute(_SELECT_UNNEEDED, (now - UNREFERENCED_SECONDS,)).fetchall():
            for (number,) in found:
                self._remove(number, why)

    def remove_least_worth(self, size: int, why: str) -> None:
        """Choose the least worth until `size` bytes are held, none before what refers to it while there is another."""
        for are_referred_to in (False, True):
            self._waiting = []
            # Sorted before the first is given, so what is removed meanwhile changes nothing of it.
            places = self._connection.execute(_SELECT_BY_WORTH, (self._level, are_referred_to))
            for place in self._with_released(places, released_first=are_referred_to):
                if self.held <= size:
                    return
                self._remove(place[-1], why)

    def refers_to(self, digest_hex: str) -> bool:
        """Return whether any entry, to be removed or not, refers to the blob."""
        select = "SELECT EXISTS (SELECT 1 FROM blob_reference WHERE blob = ?)"
        return bool(self._number(select, bytes.fromhex(digest_hex)))

    def victims(self) -> list[Victim]:
        """Return what was chosen, in the order of the store."""
        return [Victim(*row) for row in self._connection.execute(_SELECT_VICTIMS)]

    def _with_released(self, places: Iterator[_Place], released_first: bool) -> Iterator[_Place]:
        """`places`, and in their order, or before them, those that nothing refers to any more as entries are removed."""
        chosen: set[int] = set()
        following = next(places, None)
        while following or self._waiting:
            if self._waiting and (not following or released_first or self._waiting[0] < following):
                place = heapq.heappop(self._waiting)
            else:
                assert following is not None
                place, following = following, next(places, None)
            if place[-1] not in chosen:
                chosen.add(place[-1])
                yield place

    def _remove(self, number: int, why: str) -> None:
        """Count an entry out, with the blobs that nothing else refers to."""
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
        """Count one referrer of an entry less; what nothing refers to any more waits for its turn."""
        self._connection.execute("UPDATE item SET referrers = referrers - 1 WHERE digest = ?", (digest,))
        for place in self._connection.execute(_SELECT_RELEASED, (digest, self._level)):
            heapq.heappush(self._waiting, place)

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
