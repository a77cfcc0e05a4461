"""`cachegraph list`: the entries, the last used first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from cachegraph.cli.options import (
    DirectoryOption,
    JsonOption,
    LevelOption,
    NamespaceOption,
    fail,
    levels_of,
    open_directory,
    problems_reported,
)
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.store.entry import Entry
from cachegraph.store.maintenance.directory import ORDERS
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


def _order(text: str) -> str:
    if text not in ORDERS:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(ORDERS)}")
    return text


LimitOption = Annotated[
    int | None,
    typer.Option("--limit", min=0, help="How many to list at most.", show_default="all"),
]
SortOption = Annotated[
    str,
    typer.Option(
        "--sort",
        parser=_order,
        metavar="|".join(ORDERS),
        help="The order: last used, last made, largest, costliest, most used, or by key.",
    ),
]


def list_command(
    limit: LimitOption = None,
    sort: SortOption = "used",
    namespace: NamespaceOption = None,
    level: LevelOption = None,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the entries, the last used first; `used` is the time since then."""
    cache = open_directory(directory)
    levels, unreadable = levels_of(namespace, level), list[str]()
    with problems_reported(cache.local):
        entries = cache.listed(sort, limit, unreadable.append, levels)
        if as_json:
            print_json(map(describe, entries))
        else:
            _print(entries, cache.path)
    if unreadable:
        count = format_count(len(unreadable), "row")
        fail(f"{count} passed over: {unreadable[0]}; cachegraph verify repairs the index")


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
