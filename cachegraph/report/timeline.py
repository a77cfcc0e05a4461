"""The last run as a list of decisions, from the index or from a log of CACHEGRAPH_LOG.

The index has the latest use of each entry, the latest misses with their reasons, and the time of each build.
A log has every decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import Entry
from cachegraph.store.local.catalogue import KeptMiss
from cachegraph.store.local.runs import last_run_began
from cachegraph.store.maintenance.directory import CacheDirectory

MOST_DECISIONS = 2000
"""Decisions of one timeline; of more, those that took longest are shown. A browser draws these at once."""
_MOST_READ = 20_000
SHOWN_DIGITS = 12


class Decision(NamedTuple):
    """A hit, miss or bypass that ended at `at` (seconds since 1970) and took `seconds`.

    `key` are its first digits, `what` is the summary of the entry, `saved` the seconds that a hit saved, and
    `process` the process number, 0 if it is unknown.
    """

    at: float
    seconds: float
    outcome: str
    level: str
    key: str
    what: str
    reason: str
    saved: float = 0.0
    process: int = 0


class Timeline(NamedTuple):
    """The decisions of one run in their order, where they come from, and how many are `left_out`."""

    source: str
    decisions: Sequence[Decision]
    left_out: int


def timeline_of_index(cache: CacheDirectory) -> Timeline:
    """Return the decisions of the last run that the index of `cache` remembers.

    Raises sqlite3.Error and OSError.
    """
    began = last_run_began(cache.local.database.select_all)
    if began is None:
        return Timeline("index", (), 0)
    catalogue = cache.local.catalogue
    made, built = catalogue.made_since(began, MOST_DECISIONS)
    count, used = catalogue.used_since(began, MOST_DECISIONS)
    missed = {miss.digest: miss for miss in catalogue.misses(_MOST_READ) if miss.missed >= began}
    builds = [_build_of(entry, missed.get(entry.digest)) for entry in built]
    others = [_decision_of_miss(miss) for digest, miss in missed.items() if digest not in made]
    unread = len(made) - len(built) + count - len(used)
    return longest("index", [*builds, *others, *map(_hit_of, used)], unread)


def longest(source: str, decisions: Iterable[Decision], unread: int = 0) -> Timeline:
    """Return the timeline of the MOST_DECISIONS that took longest, in order of time.

    `unread` others took less.
    """
    ranked = sorted(decisions, key=lambda decision: -decision.seconds)
    shown = sorted(ranked[:MOST_DECISIONS], key=lambda decision: decision.at - decision.seconds)
    return Timeline(source, shown, len(ranked) - len(shown) + unread)


def _build_of(entry: Entry, miss: KeptMiss | None) -> Decision:
    reason = "built in this run" if miss is None else miss.reason
    digits = entry.hex[:SHOWN_DIGITS]
    return Decision(entry.created, entry.build_seconds, "miss", entry.level, digits, entry.summary, reason)


def _hit_of(entry: Entry) -> Decision:
    saved = entry.build_seconds - entry.load_seconds
    digits = entry.hex[:SHOWN_DIGITS]
    return Decision(entry.last_used, entry.load_seconds, "hit", entry.level, digits, entry.summary, "", saved)


def _decision_of_miss(miss: KeptMiss) -> Decision:
    digits = miss.digest.hex()[:SHOWN_DIGITS]
    return Decision(miss.missed, 0.0, "miss", miss.level, digits, miss.detail, miss.reason)
