"""Pruning of a server while nodes use it. The rules are those of a shared directory (pruning.py).

Every entry is read, since it alone says what it refers to. The entries of signers who are not trusted here
stay, with their blobs: several sites may share a server. Reports of uses and leases go when they are old.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from cachegraph.store.blobs import BlobFile
from cachegraph.store.maintenance.planning import (
    NEEDLESS_ONLY,
    Advance,
    Contents,
    Criteria,
    Leftover,
    Plan,
    make_plan,
)
from cachegraph.store.maintenance.pruning import SHARED_GRACE_SECONDS, USE_LOG_SECONDS, books_of
from cachegraph.store.paths import BLOBS, LEASES, STORE_VERSION, TEMPORARY_PREFIX, is_blob
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.shared.without_index import StoredFile
from cachegraph.store.use_log.reading import sum_up
from cachegraph.store.use_log.writing import REPORTS


def plan_remote(store: RemoteStore, now: float, criteria: Criteria = NEEDLESS_ONLY) -> Plan:
    """Return what to remove from a server by `criteria`, and what no entry needs; reads every entry.

    The paths in it are names on the server. Raises RemoteError: then it is unknown what is needed.
    """
    strange: set[str] = set()
    books = books_of(_own(store, now, strange), now, criteria.stale)
    with closing(books):
        blobs = (blob for blob in _blobs(store) if blob.digest not in strange)
        leftovers = list(_leftovers(store, now))
        contents = Contents(books, blobs, leftovers, SHARED_GRACE_SECONDS, knows_uses=False)
        return make_plan(contents, now, criteria)


def carry_out_remote(store: RemoteStore, plan: Plan, advance: Advance = lambda _: None) -> int:
    """Remove what `plan` names, entries before their blobs; return the freed bytes. Raises RemoteError."""
    freed = 0
    for entry in plan.entries:
        freed += entry.bytes * store.delete([entry.digest])
        advance(1)
    files = [(blob.path, blob.size) for blob in plan.blobs]
    files += [(leftover.path, leftover.size) for leftover in plan.leftovers]
    for path, size in files:
        freed += size * store.files.remove(path.as_posix())
        advance(1)
    return freed


def _own(store: RemoteStore, now: float, strange: set[str]) -> Iterator[StoredFile]:
    """Yield the entries of trusted signers, with their uses; add the blobs of others to `strange`."""
    logged = sum_up(store.use_logs(), now)
    for file, is_believed in store.all_stored():
        if is_believed:
            yield file._replace(entry=logged.of(file.entry))
        else:
            strange.update(blob.digest for blob in file.blobs)


def _blobs(store: RemoteStore) -> Iterator[BlobFile]:
    for file in store.files.listed(f"{BLOBS}/"):
        name = file.name.rpartition("/")[2]
        if is_blob(name):
            yield BlobFile(Path(file.name), name, file.size, file.written)


def _leftovers(store: RemoteStore, now: float) -> Iterator[Leftover]:
    ages = (
        (REPORTS + "/", USE_LOG_SECONDS),
        (LEASES + "/", SHARED_GRACE_SECONDS),  # the holder of a lease writes to it
        (f"{STORE_VERSION}/{TEMPORARY_PREFIX}", SHARED_GRACE_SECONDS),
    )
    for prefix, seconds in ages:
        for file in store.files.listed(prefix):
            if file.written < now - seconds:
                yield Leftover(Path(file.name), file.size)
