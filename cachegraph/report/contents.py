"""The contents of a report, as a document for JSON. A section that cannot be read is empty, and a problem.

document    := {version, directory, made, problems, totals, days, reasons, levels, costliest, removals,
                limits, timeline}; times in seconds since 1970, sizes in bytes
day         := {day, hits, bypasses, saved, spent, misses: {reason: count}}; UTC, the first day first, and
                those on which nothing happened
reason      := {outcome, reason, count, seconds}
level       := {level, entries, bytes, hits, misses, seconds_saved, seconds_spent}
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from math import isfinite
from pathlib import Path
from typing import TypeVar

from msgspec.structs import asdict

from cachegraph.errors import StoreError
from cachegraph.key import namespace_of
from cachegraph.report.decision_lines import timeline_of_log
from cachegraph.report.graphs import drawn_functions
from cachegraph.report.timeline import SHOWN_DIGITS, Timeline, timeline_of_index
from cachegraph.store.entry import Entry
from cachegraph.store.local.statistics import activity_by_day, removals, totals
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.reuse_distances import recorded_uses
from cachegraph.store.use_log.reading import ActivityTotals
from cachegraph.units import format_count
from cachegraph.version import __version__
from cachegraph.visible_text import one_line

T = TypeVar("T")

ByDate = Mapping[tuple[date, str, str, str], tuple[int, float]]
"""(UTC day, level, outcome, reason) -> events, seconds."""

MOST_LISTED = 300
"""Entries of the table of the costliest."""
MOST_DAYS = 90
MOST_REASONS = 40
_LONGEST_TEXT = 300
_EPOCH = date(1970, 1, 1)
_DAMAGE = (sqlite3.Error, OSError, StoreError, ValueError, TypeError, OverflowError)


class Gathering:
    """The reading of one cache; `problems` are the sections that could not be read, and why."""

    def __init__(self, cache: CacheDirectory, log: Path | None = None) -> None:
        self.problems: list[str] = []
        self._cache = cache
        self._log = log

    def document(self) -> dict[str, object]:
        """Return the document. Raises nothing for a damaged cache or log: see `problems`."""
        cache = self._cache
        none: ByDate = {}
        activity = self._try("hits and misses", self._activity, none)
        sections = {
            "totals": self._section("the sizes", self._sizes, {}),
            "days": _days(activity),
            "reasons": _reasons(activity),
            "levels": self._section("the levels", self._levels, []),
            "costliest": self._section("the entries", self._costliest, []),
            "removals": self._section("the evictions", self._removals, []),
            "limits": self._section("the recorded uses", self._limits, {}),
            "timeline": self._section("the last run", self._timeline, _document(Timeline("", (), 0))),
        }
        head = {"version": __version__, "directory": str(cache.path), "made": time.time()}
        return {**head, "problems": self.problems, **sections}

    def graphs(self) -> str:
        """Return the drawings of the costliest functions as HTML; raises nothing, as `document`."""
        return self._try("the graphs", lambda: drawn_functions(self._cache), "")

    def _section(self, what: str, read: Callable[[], object], otherwise: object) -> object:
        """Return what `read` does if JSON has a form of it: others may have written a NaN."""

        def checked() -> object:
            found = read()
            json.dumps(found, allow_nan=False)
            return found

        return self._try(what, checked, otherwise)

    def _try(self, what: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except _DAMAGE as error:
            self.problems.append(f"reading {what}: {_short(str(error) or type(error).__name__)}")
            return otherwise

    def _activity(self) -> ByDate:
        cache = self._cache
        found = activity_by_day(cache.local.database, cache.logged().totals, not cache.index_is_elsewhere)
        return _checked(found)

    def _timeline(self) -> dict[str, object]:
        log = self._log
        return _document(timeline_of_index(self._cache) if log is None else timeline_of_log(log))

    def _sizes(self) -> dict[str, object]:
        cache = self._cache
        return {"held": cache.bytes_in_index() + cache.files_held().bytes, "disk": cache.bytes_on_disk()}

    def _levels(self) -> list[dict[str, object]]:
        cache = self._cache
        seen = totals(cache.local.database, 0.0, cache.logged().totals, not cache.index_is_elsewhere)
        only = cache.files_held().only
        rows = []
        for name in {**seen.levels, **only}:
            counts = asdict(seen.levels[name]) if name in seen.levels else {"entries": 0, "bytes": 0}
            entries, size = only.get(name, (0, 0))
            counts = {**counts, "entries": counts["entries"] + entries, "bytes": counts["bytes"] + size}
            rows.append({"level": name, "namespace": namespace_of(name), **counts})
        return rows

    def _costliest(self) -> list[dict[str, object]]:
        damaged: list[str] = []
        rows = [_row(entry) for entry in self._cache.listed("build", MOST_LISTED, damaged.append)]
        if damaged:
            count = format_count(len(damaged), "row")
            self.problems.append(f"{count} of the index passed over: {_short(damaged[0])}")
        return rows

    def _removals(self) -> list[dict[str, object]]:
        rows = removals(self._cache.local.database)
        return [{"why": _short(why), "count": count, "last": last} for why, count, last in rows]

    def _limits(self) -> dict[str, object]:
        found = recorded_uses(self._cache)
        rows = [cost._asdict() for cost in found.costs(())] if found.uses else []
        return {"uses": len(found.reuses), "first": found.first, "gone": found.gone, "rows": rows}


def _checked(activity: ActivityTotals) -> ByDate:
    """Return `activity` by date. Raises ValueError and TypeError for counts that nobody counted."""
    found = {}
    for (day, level, outcome, reason), (events, seconds) in activity.items():
        if not isfinite(seconds):
            raise ValueError(f"{seconds} seconds are counted for {level} {outcome}")
        found[_EPOCH + timedelta(days=day), str(level), str(outcome), str(reason)] = events, float(seconds)
    return found


def _days(activity: ByDate) -> list[dict[str, object]]:
    days: dict[date, dict[str, float]] = {}
    misses: defaultdict[date, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (day, _, outcome, reason), (events, seconds) in activity.items():
        counts = days.setdefault(day, _counts())
        if outcome == "hit":
            counts["hits"] += events
            counts["saved"] += seconds
        elif outcome == "bypass":
            counts["bypasses"] += events
        else:
            counts["spent"] += seconds
            misses[day][kind_of(reason)] += events
    return [
        {"day": day.isoformat(), **(days.get(day) or _counts()), "misses": dict(misses[day])}
        for day in _without_gaps(sorted(days)[-MOST_DAYS:])
    ]


def _counts() -> dict[str, float]:
    return {"hits": 0, "bypasses": 0, "saved": 0.0, "spent": 0.0}


def _without_gaps(days: Sequence[date]) -> Sequence[date]:
    """Return `days` with those between them on which nothing happened, unless these are too many to show."""
    length = (days[-1] - days[0]).days + 1 if days else 0
    return [days[0] + timedelta(days=n) for n in range(length)] if length <= MOST_DAYS else days


def _reasons(activity: ByDate) -> list[dict[str, object]]:
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    for (_, _, outcome, reason), (events, seconds) in activity.items():
        if outcome != "hit":
            counts = found[outcome, reason]
            counts[0] += events
            counts[1] += seconds
    ranked = sorted(found.items(), key=lambda item: -item[1][0])[:MOST_REASONS]
    return [
        {"outcome": outcome, "reason": _short(reason), "count": count, "seconds": seconds}
        for (outcome, reason), (count, seconds) in ranked
    ]


def kind_of(reason: str) -> str:
    """Return the reason without its particulars: `key-part-changed` of `key-part-changed: graph`."""
    return _short(reason.partition(":")[0])


def _row(entry: Entry) -> dict[str, object]:
    return {
        "key": entry.hex[:SHOWN_DIGITS],
        "level": entry.level,
        "what": _short(entry.summary),
        "bytes": entry.size,
        "build": entry.build_seconds,
        "steps": {_short(step): seconds for step, seconds in entry.seconds.items()},
        "load": entry.load_seconds,
        "uses": entry.uses,
        "last_used": entry.last_used,
    }


def _document(timeline: Timeline) -> dict[str, object]:
    rows = [
        {name: _short(value) if isinstance(value, str) else value for name, value in each._asdict().items()}
        for each in timeline.decisions
    ]
    return {**timeline._asdict(), "decisions": rows}


def _short(text: str) -> str:
    shown = one_line(text[: _LONGEST_TEXT + 1])
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}…"
