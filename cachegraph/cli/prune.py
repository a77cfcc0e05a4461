"""`cachegraph prune`: remove entries that are old, too many, or not needed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial, reduce
from itertools import islice
from pathlib import Path

import click
from msgspec.structs import replace

from cachegraph.cli.list import SHOWN_DIGITS, limit_option
from cachegraph.cli.options import (
    command,
    directory_option,
    fail,
    json_option,
    level_option,
    levels_of,
    namespace_option,
    open_directory,
    opened_remote,
    parsed,
    problems_reported,
    read_settings,
    remote_option,
)
from cachegraph.cli.output import print_json, print_line, print_table, progress
from cachegraph.cli.what_if import show_what_if
from cachegraph.store.maintenance import pruning
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.planning import NEEDLESS_ONLY, Criteria, Plan, PrunedEntry
from cachegraph.units import format_age, format_count, format_size, parse_duration, parse_size


@command("prune")
@click.option(
    "--max-size",
    "sizes",
    type=parsed(parse_size),
    metavar="SIZE",
    multiple=True,
    help="Remove the entries that save the fewest seconds a byte until this much is left, e.g. 5GB. "
    "With --what-if, give it as often as you like.",
)
@click.option(
    "--older-than",
    type=parsed(parse_duration),
    metavar="AGE",
    help="Remove entries made this long ago, e.g. 90d.",
)
@click.option(
    "--unused-for",
    type=parsed(parse_duration),
    metavar="TIME",
    help="Remove entries not used for this long, e.g. 30d.",
)
@namespace_option
@level_option
@click.option(
    "--stale", is_flag=True, help="Remove entries made by other releases than those in use here and now."
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed; remove nothing.")
@click.option(
    "--what-if",
    "as_what_if",
    is_flag=True,
    help="Show what each --max-size would have cost until now; remove nothing.",
)
@limit_option
@directory_option
@remote_option
@json_option
def prune_command(
    sizes: Sequence[int],
    older_than: float | None,
    unused_for: float | None,
    namespace: str | None,
    level: str | None,
    stale: bool,
    dry_run: bool,
    as_what_if: bool,
    limit: int | None,
    directory: Path | None,
    remote: str,
    as_json: bool,
) -> None:
    """Remove what nothing needs and the leftovers of killed processes; with options, entries, too.

    A namespace or a level restricts the other options; alone, all its entries go. Safe while jobs use the
    cache. On a server, entries of signers who are not trusted here stay.
    """
    criteria = Criteria(
        sizes[0] if sizes else None, older_than, unused_for, levels_of(namespace, level), stale
    )
    if as_what_if:
        _refuse_criteria(criteria, remote)
        return show_what_if(open_directory(directory), sizes, as_json)
    if len(sizes) > 1:
        fail("several sizes make sense with --what-if only", code=2)
    prune = partial(_pruned_remote, remote) if remote else partial(_pruned_directory, directory)
    chosen = prune(criteria, dry_run)
    if as_json:
        print_json(_document(chosen, dry_run))
    else:
        _print(chosen, dry_run, limit)


def _pruned_directory(directory: Path | None, criteria: Criteria, dry_run: bool) -> Plan:
    """Prune a cache directory, unless it is a `dry_run`; return what goes."""
    cache = open_directory(directory)
    _refuse_readers(cache)
    with problems_reported(cache.local):
        plans = [pruning.plan(store, time.time(), criteria) for store in cache.stores]
        chosen = reduce(Plan.beside, plans)
        if not dry_run:
            with progress("removing", chosen.steps) as advance:
                for store, its_own in zip(cache.stores, plans, strict=True):
                    pruning.carry_out(store, its_own, advance)
    return chosen


def _pruned_remote(url: str, criteria: Criteria, dry_run: bool) -> Plan:
    """Prune a server, unless it is a `dry_run`; return what goes."""
    from cachegraph.store.maintenance.remote_pruning import carry_out_remote, plan_remote
    from cachegraph.store.remote.store import RemoteStore
    from cachegraph.store.trust import Trust

    with opened_remote(url) as files:
        store = RemoteStore(files, Trust.on_servers(read_settings(None).trust))
        if not store.may_write:
            advice = "give a URL of a server that this user may write to, and have a trusted key"
            fail(f"pruning {files.location}: this user only reads there; {advice}")
        chosen = plan_remote(store, time.time(), criteria)
        if not dry_run:
            with progress("removing", chosen.steps) as advance:
                carry_out_remote(store, chosen, advance)
    return chosen


def _refuse_readers(cache: CacheDirectory) -> None:
    if cache.shared is None:
        return
    entries = cache.shared.layout.entries
    if not os.access(entries, os.W_OK):
        owner = entries.stat().st_uid
        found = f"user {os.geteuid()} may not remove files there; prune as user {owner}"
        fail(f"pruning {cache.path}: {found}")


def _refuse_criteria(criteria: Criteria, remote: str) -> None:
    if remote:
        fail("--what-if judges the uses of a directory: --remote cannot be given", code=2)
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
