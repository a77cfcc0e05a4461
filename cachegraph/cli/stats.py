"""`cachegraph stats`: the contents of the cache, and the time it saved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated

import typer
from msgspec.structs import asdict

from cachegraph.cli.list import SHOWN_DIGITS, describe
from cachegraph.cli.options import (
    DirectoryOption,
    JsonOption,
    NamespaceOption,
    fail,
    levels_of,
    open_directory,
    problems_reported,
)
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.remote_url import RemoteURL
from cachegraph.store.entry import Entry
from cachegraph.store.local.statistics import DayTotals, LevelTotals, Totals, logged_totals, totals
from cachegraph.store.maintenance.remote_contents import remote_contents
from cachegraph.store.remote.opening import open_files
from cachegraph.store.remote.store import use_reports
from cachegraph.store.use_log.reading import sum_up
from cachegraph.units import format_count, format_seconds, format_size

_SECONDS_PER_DAY = 86400.0

DaysOption = Annotated[
    int, typer.Option("--days", min=1, help="How many of the last days to show one by one.")
]


RemoteOption = Annotated[
    str, typer.Option("--remote", metavar="URL", help="A server, as in CACHEGRAPH_REMOTE, not a directory.")
]


def stats_command(
    days: DaysOption = 7,
    namespace: NamespaceOption = None,
    directory: DirectoryOption = None,
    remote: RemoteOption = "",
    as_json: JsonOption = False,
) -> None:
    """Show entries, bytes, hits and misses per level and day, miss reasons, and the time saved and spent.

    A shared directory or a server shows what all nodes have logged that may write there.
    """
    since = time.time() - (days - 1) * _SECONDS_PER_DAY
    wanted = levels_of(namespace)
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
        print_json(_document(str(cache.path), held, size, seen, levels))
    else:
        _print(str(cache.path), held, size, seen, levels)


def _stats_of_remote(url: str, since: float, wanted: str, as_json: bool) -> None:
    try:
        files = open_files(RemoteURL.of(url))
    except ValueError as error:
        fail(f"reading the URL of a server: {error}", code=2)
    try:
        held, logged = remote_contents(files), sum_up(use_reports(files), time.time())
    except OSError as error:
        fail(str(error))
    finally:
        files.close()
    seen = logged_totals(logged.totals, since, wanted)
    levels = {
        name: {field: count for field, count in asdict(level).items() if field not in ("entries", "bytes")}
        for name, level in seen.levels.items()
    }
    if as_json:
        print_json({"remote": files.location, **held._asdict(), "levels": levels, **_activity(seen)})
        return
    counts = format_count(held.entries, "entry", "entries"), format_count(held.blobs, "blob")
    print_line(f"{files.location}: it holds {' and '.join(counts)}, in {format_size(held.bytes)}")
    _print_activity(seen, levels, ())


def _with_files(totals: LevelTotals, entries: int, size: int) -> dict[str, int | float]:
    """Return the counts of a level, including entries that only files of the directory hold."""
    held: dict[str, int | float] = asdict(totals)
    return {**held, "entries": totals.entries + entries, "bytes": totals.bytes + size}


def _document(
    directory: str, held: int, size: int, seen: Totals, levels: Mapping[str, Mapping[str, int | float]]
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
        "days": [{**asdict(day), "day": day.day.isoformat()} for day in seen.days],
    }


def _print(
    directory: str, held: int, size: int, seen: Totals, levels: Mapping[str, Mapping[str, int | float]]
) -> None:
    print_line(f"{directory}: it holds {format_size(held)}, in {format_size(size)} on the disk")
    _print_activity(seen, levels, ("entries", "size"))


def _print_activity(
    seen: Totals, levels: Mapping[str, Mapping[str, int | float]], held: tuple[str, ...]
) -> None:
    """Print the tables; `held` are the columns of what is stored, in front of those of what happened."""
    print_line()
    columns = (*held, "hits", "misses", "saved", "spent")
    rows = ((name, *_level_cells(counts)[-len(columns) :]) for name, counts in levels.items())
    print_table({"level": "left", **dict.fromkeys(columns, "right")}, rows)
    if seen.days:
        print_line()
        happened = ("hits", "misses", "bypasses", "saved", "spent")
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


def _level_cells(held: Mapping[str, int | float]) -> tuple[str, ...]:
    counts = str(held["hits"]), str(held["misses"])
    seconds = format_seconds(held["seconds_saved"]), format_seconds(held["seconds_spent"])
    stored = (str(held["entries"]), format_size(held["bytes"])) if "entries" in held else ()
    return *stored, *counts, *seconds


def _day_cells(day: DayTotals) -> tuple[str, ...]:
    counts = map(str, (day.hits, day.misses, day.bypasses))
    return day.day.isoformat(), *counts, format_seconds(day.seconds_saved), format_seconds(day.seconds_spent)


def _unprofitable_cells(entry: Entry) -> tuple[str, ...]:
    costs = format_seconds(entry.load_seconds), format_seconds(entry.build_seconds)
    return entry.hex[:SHOWN_DIGITS], str(entry.uses), *costs, entry.summary


def _by_count(reasons: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(reason, str(count)) for reason, count in sorted(reasons.items(), key=lambda item: -item[1])]
