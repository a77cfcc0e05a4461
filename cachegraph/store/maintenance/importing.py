"""Importing the entries of a bundle into a cache: each is checked by itself, and refused with a reason."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

from cachegraph.errors import InvalidEncoding
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import Hit, Miss
from cachegraph.store.failures import miss_of, store_failure_reason
from cachegraph.store.maintenance.exporting import LeftOut
from cachegraph.store.maintenance.whole_entries import read_artifact, stored_key
from cachegraph.store.paths import ENTRIES
from cachegraph.store.protocol import Store
from cachegraph.store.remote.store import RemoteStore


class Imported(NamedTuple):
    """The keys (hexadecimal) that a cache took from a bundle, those that it had, and what it refused."""

    taken: list[str]
    present: list[str]
    refused: list[LeftOut]


def import_entries(
    bundle: RemoteStore, into: Store, advance: Callable[[int], None] = lambda _: None
) -> Imported:
    """Store every entry of `bundle` that passes all checks and that `into` lacks.

    Raises RemoteError if the bundle as a whole cannot be read.
    """
    imported = Imported([], [], [])
    for key_hex in entry_keys(bundle):
        outcome = _import_one(bundle, into, key_hex)
        if outcome is None:
            imported.present.append(key_hex)
        elif outcome:
            imported.refused.append(LeftOut(key_hex, outcome))
        else:
            imported.taken.append(key_hex)
        advance(1)
    return imported


def entry_keys(bundle: RemoteStore) -> Iterator[str]:
    """Yield the key (hexadecimal) of every entry. Raises RemoteError."""
    return (file.name.rpartition("/")[2] for file in bundle.files.listed(f"{ENTRIES}/"))


def _import_one(bundle: RemoteStore, into: Store, key_hex: str) -> str | None:
    """Store one entry; return why it was refused, an empty text if it was stored, or None if it was there."""
    try:
        file = bundle.read_entry(key_hex)
    except Exception as error:  # a damaged file, or lack of memory, can raise anything
        file = miss_of(error)
    if isinstance(file, Miss):
        return f"{file.reason}: {file.detail}"
    try:
        key = stored_key(file)
    except InvalidEncoding as error:
        return f"damaged: {error}"
    if isinstance(into.get(key), Hit):
        return None
    artifact = read_artifact((bundle,), key, file)
    if isinstance(artifact, Miss):
        return f"{artifact.reason}: {artifact.detail}"
    try:
        into.put(key, artifact, file.entry.load_seconds, file.origin)
    except (sqlite3.Error, OSError, ValueError) as error:
        return f"not stored ({store_failure_reason(error)}): {error}"
    return ""
