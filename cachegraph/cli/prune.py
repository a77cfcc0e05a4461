"""`cachegraph prune`: remove what is old, too much, or needed by nothing."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cachegraph.cli.list import SHOWN_DIGITS, describe
from cachegraph.cli.options import DirectoryOption, JsonOption, open_store, problems_reported
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.cli.units import format_age, format_size, parse_duration, parse_size
from cachegraph.store.eviction import Plan, carry_out, plan


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


MaxSizeOption = Annotated[
    int | None,
    typer.Option(
        "--max-size",
        parser=_size,
        metavar="SIZE",
        help="Remove the least recently used entries until this much is left, e.g. 5GB.",
    ),
]
OlderThanOption = Annotated[
    float | None,
    typer.Option(
        "--older-than",
        parser=_duration,
        metavar="AGE",
        help="Remove entries not used for this long, e.g. 90d.",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")]


def prune_command(
    max_size: MaxSizeOption = None,
    older_than: OlderThanOption = None,
    dry_run: DryRunOption = False,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove blobs nothing refers to and leftovers of killed processes; with options, old entries too.

    Safe while jobs use the cache.
    """
    store = open_store(directory)
    with problems_reported(store):
        chosen = plan(store, time.time(), max_size, older_than)
        if not dry_run:
            carry_out(store, chosen)
    if as_json:
        print_json(_document(chosen, dry_run))
    else:
        _print(chosen, dry_run)


def _document(plan: Plan, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "entries": [describe(entry) for entry in plan.entries],
        "blobs": [{"digest": blob.digest, "bytes": blob.size} for blob in plan.blobs],
        "leftovers": [{"path": str(left.path), "bytes": left.size} for left in plan.leftovers],
        "bytes_before": plan.bytes_before,
        "bytes_after": plan.bytes_after,
    }


def _print(plan: Plan, dry_run: bool) -> None:
    now = time.time()
    if plan.entries:
        columns = {"key": "left", "level": "left", "size": "right", "used": "right", "what": "fill"}
        rows = (
            (
                entry.hex[:SHOWN_DIGITS],
                entry.level,
                format_size(entry.size),
                format_age(now - entry.last_used),
                entry.summary,
            )
            for entry in plan.entries
        )
        print_table(columns, rows)
        print_line()
    verb = "would remove" if dry_run else "removed"
    counts = f"{len(plan.entries)} entries, {len(plan.blobs)} blobs, {len(plan.leftovers)} leftovers"
    sizes = f"{format_size(plan.bytes_before)} -> {format_size(plan.bytes_after)}"
    print_line(f"{verb} {counts}: {sizes}")
