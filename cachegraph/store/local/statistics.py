"""Statistics of a cache for the commands: entries, hits and misses by level, by reason and by day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from cachegraph.key import LEVELS
from cachegraph.store.activity import SECONDS_PER_DAY
from cachegraph.store.entry import ALL_LEVELS, Entry
from cachegraph.store.local import queries
from cachegraph.store.local.catalogue import entry_of
from cachegraph.store.local.database import Database
from cachegraph.store.use_log.reading import ActivityTotals

MOST_UNPROFITABLE = 10

_EPOCH = date(1970, 1, 1)


class LevelTotals(Struct, frozen=True):
    """The entries and the activity of one level; seconds are saved by hits and spent on misses."""

    entries: int
    bytes: int
    hits: int
    misses: int
    seconds_saved: float
    seconds_spent: float


class DayTotals(Struct, frozen=True):
    """The activity of one UTC day at all levels."""

    day: date
    hits: int
    misses: int
    bypasses: int
    seconds_saved: float
    seconds_spent: float


class Totals(Struct, frozen=True):
    """Totals by level, misses and bypasses by reason, and the requested days, the last first.

    `unprofitable` are entries whose hits take longer than building, the most used first.
    """

    levels: Mapping[str, LevelTotals]
    misses: Mapping[str, int]
    bypasses: Mapping[str, int]
    seconds_saved: float
    seconds_spent: float
    days: Sequence[DayTotals]
    unprofitable: Sequence[Entry]


def totals(
    database: Database,
    since: float = 0.0,
    logged: ActivityTotals | None = None,
    also: bool = True,
    levels: str = ALL_LEVELS,
) -> Totals:
    """Return the totals of `levels`, a level or a pattern such as "toyc/*", from one view of the index, with
    each day from that of `since` (seconds since 1970).

    Adds what was `logged` elsewhere; not `also`, if the log has all of the index, and more. Without an
    index all of its totals are zero. Raises sqlite3.Error and OSError.
    """
    try:
        with database.reading() as connection:
            of_levels = {"levels": levels}
            held = connection.execute(queries.SELECT_LEVELS, of_levels).fetchall()
            activity = connection.execute(queries.SELECT_ACTIVITY, of_levels).fetchall()
            first_day = {**of_levels, "day": int(since // SECONDS_PER_DAY)}
            days = connection.execute(queries.SELECT_DAYS, first_day).fetchall()
            most = {**of_levels, "most": MOST_UNPROFITABLE}
            unprofitable = connection.execute(queries.SELECT_UNPROFITABLE, most).fetchall()
    except FileNotFoundError:
        held, activity, days, unprofitable = [], [], [], []
    if logged and not also:
        activity, days = [], []
    more, more_days = _rows(logged or {}, since, levels)
    entries = [entry_of(row) for row in unprofitable]
    return _totals(_own(levels), held, [*activity, *more], [*days, *more_days], entries)


def forget_activity(database: Database, levels: str = ALL_LEVELS) -> None:
    """Remove the counts and the seconds of hits, misses and bypasses of `levels` from the index.

    Entries keep their uses, which eviction needs. Raises sqlite3.Error and OSError.
    """
    with database.writing() as connection:
        connection.execute(queries.FORGET_ACTIVITY, {"levels": levels})


def hit_rate(hits: float, misses: float) -> float | None:
    """Return the share of hits in all look-ups, or None if there were none."""
    return hits / (hits + misses) if hits + misses else None


def activity_by_day(database: Database, logged: ActivityTotals, also: bool) -> ActivityTotals:
    """Return the events of each day, level, outcome and reason: those `logged` elsewhere, and `also` the
    index's, unless the log has all of them.

    Raises sqlite3.Error and OSError; without an index there are none.
    """
    found = dict(logged)
    try:
        with database.reading() as connection:
            rows = connection.execute(queries.SELECT_EVERY_ACTIVITY).fetchall() if also else []
    except FileNotFoundError:
        rows = []
    for day, level, outcome, reason, events, seconds in rows:
        before = found.get((day, level, outcome, reason), (0, 0.0))
        found[day, level, outcome, reason] = before[0] + events, before[1] + seconds
    return found


def removals(database: Database) -> list[tuple[str, int, float]]:
    """Return for each reason how many removed entries the index remembers, and the time of the last.

    Raises sqlite3.Error and OSError.
    """
    try:
        with database.reading() as connection:
            return [(why, count, last) for why, count, last in connection.execute(queries.SELECT_REMOVALS)]
    except FileNotFoundError:
        return []


def logged_totals(logged: ActivityTotals, since: float = 0.0, levels: str = ALL_LEVELS) -> Totals:
    """Return the totals of use logs alone, with each day from that of `since`; they know no entries."""
    return _totals(_own(levels), [], *_rows(logged, since, levels), [])


def _own(levels: str) -> list[str]:
    """Return those of cachegraph's own levels that the pattern names."""
    return [level for level in LEVELS if fnmatchcase(level, levels)]


def _rows(logged: ActivityTotals, since: float, levels: str) -> tuple[list[Any], list[Any]]:
    """Return the rows of SELECT_ACTIVITY and of SELECT_DAYS, not yet summed."""
    counted = [(*event, *total) for event, total in logged.items() if fnmatchcase(event[1], levels)]
    first = int(since // SECONDS_PER_DAY)
    days = [(day, outcome, *total) for day, _, outcome, _, *total in counted if day >= first]
    return [tuple(event) for _, *event in counted], days


def _totals(
    own: Sequence[str],
    held: Sequence[Any],
    activity: Sequence[Any],
    days: Sequence[Any],
    unprofitable: Sequence[Entry],
) -> Totals:
    """Return the totals; the levels `own` are among them, used or not."""
    sizes = {level: (entries, size) for level, entries, size in held}
    events: Counter[tuple[str, str]] = Counter()
    seconds: Counter[tuple[str, str]] = Counter()
    reasons: dict[str, Counter[str]] = {"hit": Counter(), "miss": Counter(), "bypass": Counter()}
    for level, outcome, reason, count, cost in activity:
        events[level, outcome] += count
        seconds[level, outcome] += cost
        reasons.setdefault(outcome, Counter())[reason] += count
    levels = {
        level: LevelTotals(
            *sizes.get(level, (0, 0)),
            events[level, "hit"],
            events[level, "miss"],
            float(seconds[level, "hit"]),
            float(seconds[level, "miss"]),
        )
        for level in (*own, *sorted({*sizes, *(level for level, _ in events)}.difference(own)))
    }
    saved, spent = (
        float(sum(cost for (_, what), cost in seconds.items() if what == outcome))
        for outcome in ("hit", "miss")
    )
    return Totals(levels, reasons["miss"], reasons["bypass"], saved, spent, _by_day(days), unprofitable)


def _by_day(rows: Sequence[Any]) -> list[DayTotals]:
    events: Counter[tuple[int, str]] = Counter()
    seconds: defaultdict[tuple[int, str], float] = defaultdict(float)
    for day, outcome, count, cost in rows:
        events[day, outcome] += count
        seconds[day, outcome] += cost
    return [
        DayTotals(
            _EPOCH + timedelta(days=day),
            *(events[day, outcome] for outcome in ("hit", "miss", "bypass")),
            *(seconds[day, outcome] for outcome in ("hit", "miss")),
        )
        for day in sorted({row[0] for row in rows}, reverse=True)
    ]
