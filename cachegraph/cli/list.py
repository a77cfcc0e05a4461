"""`cachegraph list`: the entries, the last used first."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import click

from cachegraph.cli.options import (
    command,
    directory_option,
    fail,
    json_option,
    level_option,
    levels_of,
    namespace_option,
    open_directory,
    problems_reported,
)
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.store.entry import Entry
from cachegraph.store.maintenance.directory import ORDERS, CacheDirectory
from cachegraph.units import format_age, format_count, format_seconds, format_size

SHOWN_DIGITS = 12

_COLUMNS = {
    "key": "left",
    "level": "left",
    "size": "right",
    "build": "right",
    "uses": "right",
    "used": "right",
    "what": "fill",
}


limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    callback=lambda _, __, limit: limit and min(limit, sys.maxsize),  # the index counts in 64 bits
    help="How many to list at most.",
    show_default="all",
)


@command("list")
@limit_option
@click.option(
    "--sort",
    type=click.Choice(list(ORDERS)),
    default="used",
    show_default=True,
    help="The order: last used, last made, largest, costliest, most used, or by key.",
)
@click.option("--filter", "wanted", metavar="TEXT", help="Only entries with this text in the column `what`.")
@namespace_option
@level_option
@directory_option
@json_option
def list_command(
    limit: int | None,
    sort: str,
    wanted: str | None,
    namespace: str | None,
    level: str | None,
    directory: Path | None,
    as_json: bool,
) -> None:
    """List the entries, the last used first; `used` is the time since then.

    `--filter` does not distinguish small and capital letters.
    """
    cache = open_directory(directory)
    levels, unreadable = levels_of(namespace, level), list[str]()
    with problems_reported(cache.local):
        entries = _chosen(cache, sort, limit, unreadable, levels, (wanted or "").lower())
        if as_json:
            print_json(map(describe, entries))
        else:
            _print(entries, cache.path)
    if unreadable:
        count = format_count(len(unreadable), "row")
        fail(f"{count} passed over: {unreadable[0]}; cachegraph verify repairs the index")


def _chosen(
    cache: CacheDirectory, sort: str, limit: int | None, unreadable: list[str], levels: str, wanted: str
) -> Iterator[Entry]:
    if not wanted:
        return cache.listed(sort, limit, unreadable.append, levels)
    every = cache.listed(sort, None, unreadable.append, levels)
    return islice((entry for entry in every if wanted in entry.summary.lower()), limit)


def _print(entries: Iterator[Entry], path: Path) -> None:
    first = next(entries, None)
    if first is None:
        print_line(f"no entries in {path}")
    else:
        print_table(_COLUMNS, (_cells(entry, time.time()) for entry in chain((first,), entries)))


def describe(entry: Entry) -> dict[str, object]:
    """Return an entry for JSON: sizes in bytes, times in seconds since 1970."""
    return {
        "key": entry.hex,
        "level": entry.level,
        "bytes": entry.size,
        "seconds": dict(entry.seconds),
        "build_seconds": entry.build_seconds,
        "load_seconds": entry.load_seconds,
        "created": entry.created,
        "last_used": entry.last_used,
        "uses": entry.uses,
        "summary": entry.summary,
        "version": entry.version,
    }


def _cells(entry: Entry, now: float) -> tuple[str, ...]:
    return (
        entry.hex[:SHOWN_DIGITS],
        entry.level,
        format_size(entry.size),
        format_seconds(entry.build_seconds),
        str(entry.uses),
        format_age(now - entry.last_used),
        entry.summary,
    )
