"""Verifying a shared directory of files, which other hosts go on using: as verification.py does, without its lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cachegraph.store.entry import Miss
from cachegraph.store.local.quarantine import keep_file
from cachegraph.store.maintenance.criteria import Advance
from cachegraph.store.maintenance.verification import UNREADABLE, Problem, blob_fault, encoding_fault
from cachegraph.store.shared.files import Oversized, remove_file
from cachegraph.store.shared.store import SharedStore, entry_files


def verify(store: SharedStore, advance: Advance = lambda _: None) -> list[Problem]:
    """Check every file of `store`, remove those that are damaged, and return what was wrong.

    `advance` is told of every file looked at. What cannot be read, or is not to be believed, is a problem, and stays.
    """
    return list(_check(store, advance))


def _check(store: SharedStore, advance: Advance) -> Iterator[Problem]:
    for file in store.blobs.files():
        found = blob_fault(store, file)
        if found:
            yield _removed(store, "blob", file.digest, file.path, found, bool(blob_fault(store, file)))
        advance(1)
    for name, path in entry_files(store.layout):
        found = _entry_fault(store, name, path)
        if found:
            again = _entry_fault(store, name, path)
            yield _removed(store, "entry", name, path, found, bool(again))
        advance(1)


def _entry_fault(store: SharedStore, name: str, path: Path) -> str:
    try:
        found = store.look_at(name, path)
    except FileNotFoundError:
        return ""
    except Oversized as error:
        return str(error)
    except OSError as error:
        return f"{UNREADABLE}: {error}"
    if isinstance(found, Miss):
        return "" if found.reason == "foreign-format" else found.detail
    for blob in found.blobs:
        if not store.blobs.exists(blob.digest):
            return f"the blob {blob.digest} ({blob.name or 'its payload'}) is missing"
    return encoding_fault(found.encoding, found.entry.digest)


def _removed(store: SharedStore, what: str, name: str, path: Path, found: str, still: bool) -> Problem:
    """What was found, after the file was removed if it is `still` damaged and can be read at all."""
    if not still:
        return Problem(what, name, found, "written anew meanwhile")
    if found.startswith(UNREADABLE):
        return Problem(what, name, found, "left as it is")
    try:
        keep_file(store.layout.root, f"{what}-{name}", path, store.guard)
        remove_file(path)
    except OSError as error:
        return Problem(what, name, found, f"not removed: {error}")
    return Problem(what, name, found, "removed")
