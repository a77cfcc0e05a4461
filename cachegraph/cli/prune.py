"""`cachegraph prune`: remove entries that are old, too many, or not needed."""

from __future__ import annotations

import time
from functools import reduce
from itertools import islice
from typing import Annotated

import typer
from msgspec.structs import replace

from cachegraph.cli.list import SHOWN_DIGITS, LimitOption
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
from cachegraph.cli.output import print_json, print_line, print_table, progress
from cachegraph.cli.what_if import show_what_if
from cachegraph.store.maintenance import pruning
from cachegraph.store.maintenance.planning import NEEDLESS_ONLY, Criteria, Plan, PrunedEntry
from cachegraph.units import format_age, format_count, format_size, parse_duration, parse_size


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
    list[int] | None,
    typer.Option(
        "--max-size",
        parser=_size,
        metavar="SIZE",
        help="Remove the entries that save the fewest seconds a byte until this much is left, e.g. 5GB. "
        "With --what-if, give it as often as you like.",
    ),
]
WhatIfOption = Annotated[
    bool,
    typer.Option("--what-if", help="Show what each --max-size would have cost until now; remove nothing."),
]
OlderThanOption = Annotated[
    float | None,
    typer.Option(
        "--older-than", parser=_duration, metavar="AGE", help="Remove entries made this long ago, e.g. 90d."
    ),
]
UnusedForOption = Annotated[
    float | None,
    typer.Option(
        "--unused-for",
        parser=_duration,
        metavar="TIME",
        help="Remove entries not used for this long, e.g. 30d.",
    ),
]
StaleOption = Annotated[
    bool,
    typer.Option("--stale", help="Remove entries made by other releases than those in use here and now."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")]


def prune_command(
    max_size: MaxSizeOption = None,
    older_than: OlderThanOption = None,
    unused_for: UnusedForOption = None,
    namespace: NamespaceOption = None,
    level: LevelOption = None,
    stale: StaleOption = False,
    dry_run: DryRunOption = False,
    as_what_if: WhatIfOption = False,
    limit: LimitOption = None,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove what nothing needs and the leftovers of killed processes; with options, entries, too.

    A namespace or a level restricts the other options; alone, all its entries go. Safe while jobs use the
    cache.
    """
    sizes = max_size or []
    criteria = Criteria(
        sizes[0] if sizes else None, older_than, unused_for, levels_of(namespace, level), stale
    )
    if as_what_if:
        _refuse_criteria(criteria)
        return show_what_if(open_directory(directory), sizes, as_json)
    if len(sizes) > 1:
        fail("several sizes make sense with --what-if only", code=2)
    cache = open_directory(directory)
    with problems_reported(cache.local):
        plans = [pruning.plan(store, time.time(), criteria) for store in cache.stores]
        chosen = reduce(Plan.beside, plans)
        if not dry_run:
            with progress("removing", chosen.steps) as advance:
                for store, its_own in zip(cache.stores, plans, strict=True):
                    pruning.carry_out(store, its_own, advance)
    if as_json:
        print_json(_document(chosen, dry_run))
    else:
        _print(chosen, dry_run, limit)


def _refuse_criteria(criteria: Criteria) -> None:
    if replace(criteria, max_size=None) != NEEDLESS_ONLY:
        fail("--what-if judges sizes: no other criterion can be given", code=2)


def _document(plan: Plan, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "entries": map(_describe, plan.entries),
        "blobs": ({"digest": blob.digest, "bytes": blob.size} for blob in plan.blobs),
        "leftovers": [{"path": str(left.path), "bytes": left.size} for left in plan.leftovers],
        "bytes_before": plan.bytes_before,
        "bytes_after": plan.bytes_after,
    }


def _describe(entry: PrunedEntry) -> dict[str, object]:
    return {
        "key": entry.digest.hex(),
        "level": entry.level,
        "bytes": entry.size,
        "last_used": entry.last_used,
        "summary": entry.summary,
        "why": entry.why,
    }


def _print(plan: Plan, dry_run: bool, limit: int | None) -> None:
    now = time.time()
    if plan.entries:
        columns = {"key": "left", "level": "left", "size": "right", "used": "right", "what": "fill"}
        rows = (
            (
                entry.digest.hex()[:SHOWN_DIGITS],
                entry.level,
                format_size(entry.size),
                format_age(now - entry.last_used),
                entry.summary,
            )
            for entry in islice(plan.entries, limit)
        )
        print_table(columns, rows)
        if limit is not None and limit < len(plan.entries):
            print_line(f"... and {len(plan.entries) - limit} more")
        print_line()
    verb = "would remove" if dry_run else "removed"
    counts = ", ".join(
        (
            format_count(len(plan.entries), "entry", "entries"),
            format_count(len(plan.blobs), "blob"),
            format_count(len(plan.leftovers), "leftover"),
        )
    )
    sizes = f"{format_size(plan.bytes_before)} -> {format_size(plan.bytes_after)}"
    print_line(f"{verb} {counts}: the cache holds {sizes}")
