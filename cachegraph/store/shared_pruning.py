"""Pruning a shared directory of files, which any number of hosts go on using.

No host knows when others used an entry: what is known is when its file was written, or renewed by whoever read it first
on a node (tiers.py). An entry is worth the seconds it saves per byte, halved for each HALF_LIFE_SECONDS since then. There is
no lock: a blob that somebody comes to refer to just when it is removed costs a miss, and is written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cachegraph.store.criteria import NEEDLESS_ONLY, Advance, Criteria, Leftover, Plan, is_stale
from cachegraph.store.entry import Entry
from cachegraph.store.files import remove_file
from cachegraph.store.paths import TEMPORARY_PREFIX
from cachegraph.store.planning import KEPT_ASIDE_SECONDS, Contents, half_cleared, leftover_files, make_plan
from cachegraph.store.pruning import remove_leftovers
from cachegraph.store.shared import SharedStore, StoredFile

GRACE_SECONDS = 86400.0
"""More than clocks differ, and than a writer takes from its blobs to its entry."""

HALF_LIFE_SECONDS = 30 * 86400.0


def plan(store: SharedStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove by `criteria`, and what nothing needs; reads every entry. Raises OSError."""
    return make_plan(_contents(store, now), now, criteria)


def carry_out(store: SharedStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names, entries before their blobs; return how many bytes went. Raises OSError."""
    freed = 0
    for entry in plan.entries:
        freed += entry.stored_size * store.delete([entry.digest])
        advance(1)
    for file in plan.blobs:
        if file.is_unchanged() and remove_file(file.path):
            freed += file.size
        advance(1)
    return freed + remove_leftovers(plan.leftovers, advance)


def worth(entry: Entry, now: float) -> float:
    """Return the seconds that a use of `entry` saves per byte, less with every day since it was last used or renewed."""
    saved = max(entry.build_seconds - entry.load_seconds, 0.0)
    age = max(now - entry.last_used, 0.0)
    return float(saved / (entry.size + 1) * 0.5 ** (age / HALF_LIFE_SECONDS))


def _contents(store: SharedStore, now: float) -> Contents:
    found = list(store.stored())
    by_digest = {file.entry.digest: file for file in found}
    return Contents(
        entries=sorted((file.entry for file in found), key=lambda entry: entry.last_used),
        blobs_of={digest: file.blobs for digest, file in by_digest.items()},
        refers_to={digest: file.references for digest, file in by_digest.items()},
        worths={digest: worth(file.entry, now) for digest, file in by_digest.items()},
        is_stale=lambda entry: is_stale(by_digest[entry.digest].encoding, entry.format),
        files=list(store.blobs.files()),
        leftovers=list(_leftovers(store, now)),
        grace_seconds=GRACE_SECONDS,
        knows_uses=False,
        overhead=_bytes(found),
    )


def _bytes(found: Iterable[StoredFile]) -> int:
    return sum(file.entry.stored_size for file in found)


def _leftovers(store: SharedStore, now: float) -> Iterator[Leftover]:
    old = now - GRACE_SECONDS
    layout = store.layout
    yield from leftover_files((file.path for file in store.blobs.files() if not file.digest), old)
    yield from leftover_files(layout.entries.glob(f"*/{TEMPORARY_PREFIX}*"), old)
    yield from leftover_files(layout.leases.glob("*/*"), old)  # the holder of a lease writes to it
    yield from leftover_files(layout.damaged.glob("*"), now - KEPT_ASIDE_SECONDS)
    yield from half_cleared(layout.directory, old)
