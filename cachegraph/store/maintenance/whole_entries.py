"""Whole entries as commands read them: the key and the artifact of what a store describes."""

from __future__ import annotations

from collections.abc import Iterable

from cachegraph.errors import InvalidEncoding
from cachegraph.key import CacheKey, expanded, kept_names
from cachegraph.store.entry import Artifact, Miss
from cachegraph.store.protocol import Store
from cachegraph.store.shared.without_index import StoredFile


def stored_key(file: StoredFile) -> CacheKey:
    """Return the key of an entry, with its names. Raises InvalidEncoding if it is not that of the entry."""
    key = CacheKey.parse(expanded(file.encoding))
    if key.digest != file.entry.digest:
        raise InvalidEncoding("reading a stored key", 0, f"the key {file.entry.hex}", f"the key {key.hex}")
    return key._replace(names=kept_names(file.encoding))


def read_artifact(stores: Iterable[Store], key: CacheKey, file: StoredFile) -> Artifact | Miss:
    """Return the artifact of `key`, with all its blobs, from the first store that has it whole, or a miss."""
    found: Artifact | Miss = Miss("never-seen", "no store has it")
    for store in stores:
        found = _artifact(store, key, file)
        if isinstance(found, Artifact):
            break
    return found


def _artifact(store: Store, key: CacheKey, file: StoredFile) -> Artifact | Miss:
    hit = store.get(key)
    if isinstance(hit, Miss):
        return hit
    if file.record is not None and not file.holds(hit):
        return Miss("damaged", "it was exchanged for another one while it was read")
    blobs: dict[str, bytes] = {}
    for name, digest in hit.blobs.items():
        content = store.read_blob(digest)
        if content is None:
            return Miss("damaged", f"its blob {digest} is missing or damaged")
        blobs[name] = content
    return Artifact(hit.payload, blobs, hit.seconds, file.entry.summary, file.references)
