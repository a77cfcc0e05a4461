"""Exporting entries into a bundle, with the entries that they refer to.

Each entry is signed by the user who exports: he vouches for what his cache holds. Entries are written
in the order of their keys, each after its blobs, without the times and counts of their uses, so equal
entries make equal bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cachegraph.errors import InvalidEncoding
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.artifacts import pack
from cachegraph.store.entry import Miss
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.whole_entries import read_artifact, stored_key
from cachegraph.store.remote.bundle_format import BundleWriter
from cachegraph.store.shared.entry_file import write_entry
from cachegraph.store.shared.without_index import StoredFile
from cachegraph.store.signing import sign


class LeftOut(NamedTuple):
    """An entry that was not exported or imported, by its key (hexadecimal), and why."""

    key: str
    why: str


class Exported(NamedTuple):
    """The number of entries in a bundle, the bytes of its files, and what was left out.

    `missing` are the keys (hexadecimal) that the entries refer to and the cache lacks.
    """

    entries: int
    bytes: int
    left_out: list[LeftOut]
    missing: list[str]


def export(
    cache: CacheDirectory,
    chosen: Collection[bytes],
    path: str,
    advance: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write the entries of these keys, and all that they refer to, into a new bundle at `path`.

    The bundle appears whole or not at all. Raises OSError (FileNotFoundError and UnusableKey without a
    key to sign with) and sqlite3.Error.
    """
    found, missing = _with_references(cache, chosen)
    left_out: list[LeftOut] = []
    with BundleWriter(path) as writer:
        for digest, file in sorted(found.items()):
            why = _add(writer, cache, file)
            if why:
                left_out.append(LeftOut(digest.hex(), why))
            advance(1)
    return Exported(len(found) - len(left_out), writer.size, left_out, missing)


def _with_references(
    cache: CacheDirectory, chosen: Collection[bytes]
) -> tuple[dict[bytes, StoredFile | Miss], list[str]]:
    """Return the descriptions of the chosen entries and of all that they refer to, and the missing keys."""
    found: dict[bytes, StoredFile | Miss] = {}
    waiting = list(chosen)
    while waiting:
        digest = waiting.pop()
        if digest not in found:
            file = found[digest] = cache.described(digest)
            waiting.extend(() if isinstance(file, Miss) else file.references)
    missing = [digest for digest, file in found.items() if isinstance(file, Miss) and digest not in chosen]
    for digest in missing:
        del found[digest]
    return found, sorted(digest.hex() for digest in missing)


def _add(writer: BundleWriter, cache: CacheDirectory, file: StoredFile | Miss) -> str:
    """Write one entry after its blobs; return why it was left out, or an empty text."""
    if isinstance(file, Miss):
        return f"{file.reason}: {file.detail}"
    try:
        key = stored_key(file)
    except InvalidEncoding as error:
        return f"damaged: {error}"
    artifact = read_artifact(cache.stores, key, file)
    if isinstance(artifact, Miss):
        return f"{artifact.reason}: {artifact.detail}"
    entry = file.entry._replace(last_used=file.entry.created, uses=0, load_seconds=0.0, stored_size=0)
    record, _ = pack(artifact, writer)
    writer.add_entry(key.hex, write_entry(key, record, entry, artifact.references, sign))
    return ""
