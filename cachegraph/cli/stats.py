"""`cachegraph stats`: the contents of the cache, and the time it saved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import click
from msgspec.structs import asdict

from cachegraph.cli.list import SHOWN_DIGITS, describe
from cachegraph.cli.options import (
    command,
    directory_option,
    fail,
    json_option,
    levels_of,
    namespace_option,
    open_directory,
    opened_remote,
    problems_reported,
    remote_option,
)
from cachegraph.cli.output import print_json, print_line, print_problem, print_table
from cachegraph.store.entry import Entry
from cachegraph.store.local.statistics import (
    DayTotals,
    LevelTotals,
    Totals,
    forget_activity,
    hit_rate,
    logged_totals,
    totals,
)
from cachegraph.store.maintenance.remote_contents import remote_contents
from cachegraph.store.remote.store import use_reports
from cachegraph.store.use_log.reading import sum_up
from cachegraph.units import format_count, format_seconds, format_size

_SECONDS_PER_DAY = 86400.0

LevelCounts = Mapping[str, int | float | None]
"""The counts, bytes, seconds and hit rate of a level, by name; the rate of no look-ups is None."""


@command("stats")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=7,
    show_default=True,
    help="How many of the last days to show one by one.",
)
@namespace_option
@directory_option
@remote_option
@click.option("--reset", is_flag=True, help="Set the counts and times to zero; entries stay.")
@json_option
def stats_command(
    days: int, namespace: str | None, directory: Path | None, remote: str, reset: bool, as_json: bool
) -> None:
    """Show entries, bytes, hits and misses per level and day, miss reasons, and the time saved and spent.

    A shared directory or a server shows what all nodes have logged that may write there.
    """
    since = time.time() - (days - 1) * _SECONDS_PER_DAY
    wanted = levels_of(namespace)
    if reset:
        return _reset(directory, remote, wanted, as_json)
    if remote:
        return _stats_of_remote(remote, since, wanted, as_json)
    cache = open_directory(directory)
    with problems_reported(cache.local):
        logged = cache.logged().totals
        seen = totals(cache.local.database, since, logged, not cache.index_is_elsewhere, wanted)
        files = cache.files_held()
        held, size = cache.bytes_in_index() + files.bytes, cache.bytes_on_disk()
    levels = {name: _with_files(level, *files.only.get(name, (0, 0))) for name, level in seen.levels.items()}
    if as_json:
        document = _document(str(cache.path), held, size, seen, levels)
        print_json({**document, "entries_of_strangers": len(files.refused)})
    else:
        _print(str(cache.path), held, size, seen, levels)
    if files.refused:
        what = format_count(len(files.refused), "entry", "entries")
        print_problem(f"{what} of {cache.path} not counted; of the first: {files.refused[0]}")


def _reset(directory: Path | None, remote: str, wanted: str, as_json: bool) -> None:
    if remote:
        fail("--reset: the counts of a server are those of all its users, and stay", code=2)
    cache = open_directory(directory)
    if cache.shared is not None:
        fail(f"--reset: the counts of {cache.path} are those of all who share it, and stay", code=2)
    with problems_reported(cache.local):
        if cache.exists:
            forget_activity(cache.local.database, wanted)
    if as_json:
        print_json({"directory": str(cache.path), "reset": wanted})
    else:
        print_line(f"{cache.path}: counts and times are zero")


def _stats_of_remote(url: str, since: float, wanted: str, as_json: bool) -> None:
    with opened_remote(url) as files:
        held, logged = remote_contents(files), sum_up(use_reports(files), time.time())
    seen = logged_totals(logged.totals, since, wanted)
    levels = {
        name: {field: count for field, count in _of_level(level).items() if field not in ("entries", "bytes")}
        for name, level in seen.levels.items()
    }
    if as_json:
        print_json({"remote": files.location, **held._asdict(), "levels": levels, **_activity(seen)})
        return
    counts = format_count(held.entries, "entry", "entries"), format_count(held.blobs, "blob")
    print_line(f"{files.location}: it holds {' and '.join(counts)}, in {format_size(held.bytes)}")
    _print_activity(seen, levels, ())


def _of_level(totals: LevelTotals) -> LevelCounts:
    return {**asdict(totals), "hit_rate": hit_rate(totals.hits, totals.misses)}


def _with_files(totals: LevelTotals, entries: int, size: int) -> LevelCounts:
    """Return the counts of a level, including entries that only files of the directory hold."""
    return {**_of_level(totals), "entries": totals.entries + entries, "bytes": totals.bytes + size}


def _document(
    directory: str, held: int, size: int, seen: Totals, levels: Mapping[str, LevelCounts]
) -> dict[str, object]:
    return {
        "directory": directory,
        "bytes": held,
        "bytes_on_disk": size,
        "levels": levels,
        **_activity(seen),
        "unprofitable": [describe(entry) for entry in seen.unprofitable],
    }


def _activity(seen: Totals) -> dict[str, object]:
    return {
        "misses": dict(seen.misses),
        "bypasses": dict(seen.bypasses),
        "seconds_saved": seen.seconds_saved,
        "seconds_spent": seen.seconds_spent,
        "days": [
            {**asdict(day), "day": day.day.isoformat(), "hit_rate": hit_rate(day.hits, day.misses)}
            for day in seen.days
        ],
    }


def _print(directory: str, held: int, size: int, seen: Totals, levels: Mapping[str, LevelCounts]) -> None:
    print_line(f"{directory}: it holds {format_size(held)}, in {format_size(size)} on the disk")
    _print_activity(seen, levels, ("entries", "size"))


def _print_activity(seen: Totals, levels: Mapping[str, LevelCounts], held: tuple[str, ...]) -> None:
    """Print the tables; `held` are the columns of what is stored, in front of those of what happened."""
    print_line()
    columns = (*held, "hits", "misses", "rate", "saved", "spent")
    rows = ((name, *_level_cells(counts)[-len(columns) :]) for name, counts in levels.items())
    print_table({"level": "left", **dict.fromkeys(columns, "right")}, rows)
    if seen.days:
        print_line()
        happened = ("hits", "misses", "rate", "bypasses", "saved", "spent")
        print_table({"day": "left", **dict.fromkeys(happened, "right")}, map(_day_cells, seen.days))
    for title, reasons in (("misses", seen.misses), ("bypasses", seen.bypasses)):
        if reasons:
            print_line()
            print_table({title: "left", "count": "right"}, _by_count(reasons))
    if seen.unprofitable:
        print_line()
        print_table(
            {
                "slower to load than to build": "left",
                "uses": "right",
                "load": "right",
                "build": "right",
                "what": "fill",
            },
            map(_unprofitable_cells, seen.unprofitable),
        )
    print_line()
    print_line(f"saved {format_seconds(seen.seconds_saved)}, spent {format_seconds(seen.seconds_spent)}")


def _level_cells(held: LevelCounts) -> tuple[str, ...]:
    counts = str(held["hits"]), str(held["misses"]), _percent(held["hit_rate"])
    seconds = format_seconds(held["seconds_saved"] or 0), format_seconds(held["seconds_spent"] or 0)
    stored = (str(held["entries"]), format_size(held["bytes"] or 0)) if "entries" in held else ()
    return *stored, *counts, *seconds


def _day_cells(day: DayTotals) -> tuple[str, ...]:
    rate = _percent(hit_rate(day.hits, day.misses))
    counts = str(day.hits), str(day.misses), rate, str(day.bypasses)
    return day.day.isoformat(), *counts, format_seconds(day.seconds_saved), format_seconds(day.seconds_spent)


def _percent(rate: float | None) -> str:
    """Return a share in percent, without rounding to all or to nothing; empty if there is none."""
    if rate is None:
        return ""
    percent = 100 * rate
    nearest = min(max(percent, 0.1), 99.9) if 0 < percent < 100 else percent
    return f"{nearest:.1f} %"


def _unprofitable_cells(entry: Entry) -> tuple[str, ...]:
    costs = format_seconds(entry.load_seconds), format_seconds(entry.build_seconds)
    return entry.hex[:SHOWN_DIGITS], str(entry.uses), *costs, entry.summary


def _by_count(reasons: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(reason, str(count)) for reason, count in sorted(reasons.items(), key=lambda item: -item[1])]
