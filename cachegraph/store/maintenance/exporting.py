"""Exporting entries into a bundle, with the entries that they refer to.

A copy of a signed entry keeps its signature. What was built here, or came from a directory whose owner
is trusted, is signed by the user who exports: he vouches for it. What was revoked is left out, and the
revocation lists that this user has seen are in the bundle. Entries are written in the order of their
keys, each after its blobs, without the times and counts of their uses, so equal entries make equal
bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.primitives import content_name
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.artifacts import pack
from cachegraph.store.entry import Artifact, Miss
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.whole_entries import read_artifact, stored_key
from cachegraph.store.remote.bundle_format import BundleWriter
from cachegraph.store.revocation.kept import newest_files, usable_lists
from cachegraph.store.revocation.list_file import Revoked
from cachegraph.store.shared.entry_check import revocation_fault
from cachegraph.store.shared.entry_file import write_again, write_entry
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
    signers: Collection[bytes] = (),
) -> Exported:
    """Write the entries of these keys, and all that they refer to, into a new bundle at `path`.

    With them goes the last revocation list of each of `signers` that this user has seen. The bundle appears
    whole or not at all. Raises OSError (FileNotFoundError and UnusableFile without a key to sign with) and
    sqlite3.Error.
    """
    found, missing = _with_references(cache, chosen)
    left_out: list[LeftOut] = []
    lists = usable_lists(signers)
    revoked = Revoked.union(seen.revoked for seen in lists.values())
    with BundleWriter(path) as writer:
        for digest, file in sorted(found.items()):
            why = _add(writer, cache, file, revoked)
            if why:
                left_out.append(LeftOut(digest.hex(), why))
            advance(1)
        for signer, content in sorted(newest_files(lists).items()):
            writer.add_revocations(signer, content)
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


def _add(writer: BundleWriter, cache: CacheDirectory, file: StoredFile | Miss, revoked: Revoked) -> str:
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
    try:
        content = _signed(key, artifact, file)
    except ValueError as error:
        return f"untrusted: {error}"
    fault = revocation_fault(content, key.hex, revoked)
    if fault:
        return f"untrusted: {fault}"
    pack(artifact, writer)
    writer.add_entry(key.hex, content)
    return ""


def _signed(key: CacheKey, artifact: Artifact, file: StoredFile) -> bytes:
    """Return the file of an entry: as its publisher signed it, or else signed by this user."""
    record, _ = pack(artifact, _BlobNames())
    if file.origin is not None:
        return write_again(key, record, file.origin)
    entry = file.entry._replace(last_used=file.entry.created, uses=0, load_seconds=0.0, stored_size=0)
    return write_entry(key, record, entry, artifact.references, sign)


class _BlobNames:
    """Names blobs without writing them: whether they are needed is not known yet."""

    def write(self, content: bytes) -> str:
        return content_name(content)
