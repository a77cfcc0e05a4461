"""`cachegraph prune --what-if`: what a size limit would have cost, by the recorded uses."""

from __future__ import annotations

from collections.abc import Sequence

from cachegraph.cli.options import problems_reported
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.reuse_distances import LimitCost, WhatIf, recorded_uses
from cachegraph.units import format_count, format_seconds, format_size


def show_what_if(cache: CacheDirectory, sizes: Sequence[int], as_json: bool) -> None:
    """Print what each of `sizes` bytes would have cost in the files of `cache`, or else in its index.

    Ends the command with code 1 if the index is damaged or the disk refuses.
    """
    with problems_reported(cache.local):
        found = recorded_uses(cache)
    costs = found.costs(sizes)
    if as_json:
        print_json(_document(found, costs))
    else:
        _print(found, costs)


def _document(found: WhatIf, costs: Sequence[LimitCost]) -> dict[str, object]:
    counts = {"first_uses": found.first, "reuses": len(found.reuses), "uses_of_entries_gone": found.gone}
    return {**counts, "bytes": found.held, "limits": [cost._asdict() for cost in costs]}


def _print(found: WhatIf, costs: Sequence[LimitCost]) -> None:
    if not found.uses:
        print_line("no uses are recorded yet: they are when a process ends")
        return
    print_line(
        f"{format_count(len(found.reuses), 'use')} of entries used before, {found.first} first uses, and "
        f"{format_count(found.gone, 'use')} of entries that are gone; "
        f"all entries have {format_size(found.held)}"
    )
    print_line()
    columns = {"limit": "right", "would have missed": "right", "of them": "right", "to build again": "right"}
    print_table(columns, (_cells(cost, max(len(found.reuses), 1)) for cost in costs))


def _cells(cost: LimitCost, uses: int) -> tuple[str, ...]:
    share = f"{100 * cost.misses / uses:.1f} %"
    return format_size(cost.max_size), str(cost.misses), share, format_seconds(cost.seconds)
