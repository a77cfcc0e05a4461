"""`cachegraph stats`: what the cache holds, and what it was good for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from cachegraph.cli.options import DirectoryOption, JsonOption, open_store, problems_reported
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.store.catalogue import Totals
from cachegraph.store.usage import bytes_on_disk
from cachegraph.units import format_seconds, format_size


def stats_command(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """Show entries, bytes, hits and misses per level, misses by reason, and the seconds saved and spent."""
    store = open_store(directory)
    with problems_reported(store):
        totals = store.catalogue.totals()
        size = bytes_on_disk(store.layout)
    if as_json:
        print_json(_document(str(store.layout.directory), size, totals))
    else:
        _print(str(store.layout.directory), size, totals)


def _document(directory: str, size: int, totals: Totals) -> dict[str, object]:
    return {
        "directory": directory,
        "bytes": size,
        "levels": {level: asdict(of_level) for level, of_level in totals.levels.items()},
        "misses": dict(totals.misses),
        "seconds_saved": totals.seconds_saved,
        "seconds_spent": totals.seconds_spent,
    }


def _print(directory: str, size: int, totals: Totals) -> None:
    print_line(f"{directory}: {format_size(size)} on disk")
    print_line()
    columns = {"level": "left", "entries": "right", "size": "right", "hits": "right", "misses": "right"}
    rows = [
        (level, str(held.entries), format_size(held.bytes), str(held.hits), str(held.misses))
        for level, held in totals.levels.items()
    ]
    print_table(columns, rows)
    for title, reasons in (("misses", totals.misses), ("bypasses", totals.bypasses)):
        if reasons:
            print_line()
            print_table({title: "left", "count": "right"}, _by_count(reasons))
    print_line()
    print_line(f"saved {format_seconds(totals.seconds_saved)}, spent {format_seconds(totals.seconds_spent)}")


def _by_count(reasons: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(reason, str(count)) for reason, count in sorted(reasons.items(), key=lambda item: -item[1])]
