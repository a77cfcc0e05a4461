"""How an artifact gets into the local store: its blobs first, then everything else in one transaction."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

from cachegraph import __version__
from cachegraph.key import CacheKey, compressed
from cachegraph.store.entry import LARGEST_ENTRY, PAYLOAD, Artifact, Entry, Reference
from cachegraph.store.local.blobs import Blobs
from cachegraph.store.record import RECORD_FORMAT, Record, encode
from cachegraph.store.sizes import INLINE_LIMIT, bytes_of_rows

if TYPE_CHECKING:
    from logging import Logger

    from cachegraph.store.local.store import LocalStore

_ATTEMPTS = 3


def publish(store: LocalStore, key: CacheKey, artifact: Artifact, load_seconds: float) -> None:
    """Put `artifact` into `store` under `key`; a damaged index is set aside and begun anew.

    Raises sqlite3.Error, OSError, and ValueError for what cannot be stored.
    """
    _refuse_too_large(store, key, artifact)
    for attempt in range(_ATTEMPTS):
        try:
            if _publish_once(store, key, artifact, load_seconds):
                return
        except Exception as error:
            if attempt == _ATTEMPTS - 1 or not store.database.heals(error):
                raise
    raise OSError(f"storing {key.hex}: its blobs were removed {_ATTEMPTS} times while it was being published")


def _publish_once(store: LocalStore, key: CacheKey, artifact: Artifact, load_seconds: float) -> bool:
    from cachegraph.store.local.eviction import (
        Eviction,  # imported by what a hit imports, which needs none of it
    )
    from cachegraph.store.shared.publication import Publication, write

    payload, named = write_blobs(store.blobs, artifact)
    record = encode(key, make_record(artifact, payload, named))
    encoding = compressed(key)
    refuse_oversized(key, len(record) + len(encoding))
    blobs = [*([payload] if payload else []), *named]
    content = len(record) + len(encoding) + len(artifact.summary)
    stored_size = bytes_of_rows(content, len(key.parts), len(blobs) + len(artifact.references))
    entry = describe(key, artifact, named, stored_size, load_seconds)

    def all_exist() -> bool:  # asked under the write lock that pruning takes too: what exists now stays
        return all(store.blobs.exists(blob.digest) for blob in blobs)

    publication = Publication(entry, record, encoding, key.part_digests, blobs, artifact.references)
    eviction = Eviction(store.max_size, key.digest)
    published = write(store.database, publication, all_exist, eviction.make_room)
    if eviction.evicted:
        _remove_freed(store, eviction.freed)
    return published


def _remove_freed(store: LocalStore, freed: list[str]) -> None:
    """Remove blobs after their entries were evicted. The put has gone well whatever becomes of them."""
    from cachegraph.store.local.eviction import remove_freed

    try:
        remove_freed(store, freed)
    except (sqlite3.Error, OSError) as error:
        _log().debug("removing evicted blobs in %s failed, so pruning will: %s", store.layout.blobs, error)


def _refuse_too_large(store: LocalStore, key: CacheKey, artifact: Artifact) -> None:
    """Raise ValueError for what is larger than the whole cache may be: everything else would go for it."""
    size = len(artifact.payload) + sum(map(len, artifact.blobs.values()))
    if store.max_size and size > store.max_size:
        raise ValueError(
            f"storing {key.hex}: it has {size} bytes, and the cache may hold {store.max_size}; raise CACHEGRAPH_MAX_SIZE"
        )


def refuse_oversized(key: CacheKey, size: int) -> None:
    """Raise ValueError for an entry of `size` bytes, its blobs not counted, which no read would believe."""
    if size > LARGEST_ENTRY:
        raise ValueError(f"storing {key.hex}: its entry has {size} bytes; the limit is {LARGEST_ENTRY}")


def write_blobs(blobs: Blobs, artifact: Artifact) -> tuple[Reference | None, list[Reference]]:
    """Write the blobs of `artifact` and return how an entry refers to them: its payload, unless inline, and the named.

    Raises OSError, and ValueError for a blob without a name.
    """
    if PAYLOAD in artifact.blobs:
        raise ValueError(
            "storing an artifact: a blob has the empty name, which stands for the payload; name it"
        )
    named = [_write_blob(blobs, name, content) for name, content in artifact.blobs.items()]
    if len(artifact.payload) <= INLINE_LIMIT:
        return None, named
    return _write_blob(blobs, PAYLOAD, artifact.payload), named


def _write_blob(blobs: Blobs, name: str, content: bytes) -> Reference:
    return Reference(name, blobs.write(content), len(content))


def make_record(artifact: Artifact, payload: Reference | None, named: list[Reference]) -> Record:
    """Return what a hit on `artifact` returns, after `write_blobs` returned the rest."""
    digests = {reference.name: reference.digest for reference in named}
    if payload is None:
        return Record(artifact.payload, None, digests, artifact.seconds)
    return Record(b"", payload.digest, digests, artifact.seconds)


def describe(
    key: CacheKey, artifact: Artifact, named: list[Reference], stored_size: int, load_seconds: float
) -> Entry:
    """Return what is listed about an artifact that is being stored now; `stored_size` is what its rows take."""
    now = time.time()
    return Entry(
        digest=key.digest,
        level=key.level,
        format=RECORD_FORMAT,
        payload_size=len(artifact.payload),
        blob_size=sum(reference.size for reference in named),
        stored_size=stored_size,
        seconds=artifact.seconds,
        build_seconds=sum(artifact.seconds.values()),
        load_seconds=load_seconds,
        created=now,
        last_used=now,
        uses=0,
        summary=artifact.summary,
        version=__version__,
    )


def _log() -> Logger:
    import logging

    return logging.getLogger("cachegraph")
