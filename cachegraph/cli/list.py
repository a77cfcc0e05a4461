"""`cachegraph list`: the entries, the last used first."""

from __future__ import annotations

import time

from cachegraph.cli.options import DirectoryOption, JsonOption, open_directory, problems_reported
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.store.entry import Entry
from cachegraph.units import format_age, format_seconds, format_size

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


def list_command(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """List the entries, the last used first; `used` is how long ago."""
    cache = open_directory(directory)
    with problems_reported(cache.local):
        entries = cache.scan()[::-1]
    if as_json:
        print_json([describe(entry) for entry in entries])
    elif entries:
        print_table(_COLUMNS, (_cells(entry, time.time()) for entry in entries))
    else:
        print_line(f"no entries in {cache.path}")


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
