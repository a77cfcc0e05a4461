"""Replacing a damaged index: it is quarantined, and its readable entries are copied to a new one.

    <directory>/v1/index.sqlite.damaged-<time>-<unique>     the index with its -wal; pruned after a week

Processes that have the damaged index open go on reading it; the next one to open an index finds the
new one.

Only what carries its own checksums is copied: the encoding of a key gives the key, and the record
must match that key by both its digests and its checksum (record.py). Descriptive columns (last use,
summary) are copied if they have the right type. An entry that the new index already has stays as it
is.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from cachegraph.errors import InvalidEncoding
from cachegraph.key import CacheKey, expanded
from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import PAYLOAD, BlobReference, Entry, Origin
from cachegraph.store.local.connections import open_damaged, open_for_writing
from cachegraph.store.local.publication import Publication, add_if_missing
from cachegraph.store.local.sizes import bytes_of_rows
from cachegraph.store.paths import DAMAGED_SUFFIX, Identity, Layout, file_size, identity, unique_name
from cachegraph.store.record import RECORD_FORMAT, Record, decode

LONGEST_SALVAGE = 20.0
"""Seconds; entries not copied by then are built again."""
_PER_TRANSACTION = 200
_MOST_BETWEEN = 20_000  # a damaged number can have any value
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError, MemoryError)
_QUARANTINED = ("", "-wal")
_REBUILT = "-shm"  # SQLite rebuilds it from the log, and it may be the damaged part

_SELECT_UP = "SELECT entry_id FROM record ORDER BY entry_id"
_SELECT_DOWN = "SELECT entry_id FROM record ORDER BY entry_id DESC"
_SELECT_CONTENT = "SELECT content FROM {} WHERE entry_id = ?"
_SELECT_RECORD = _SELECT_CONTENT.format("record")
_SELECT_ENCODING = _SELECT_CONTENT.format("encoding")
_SELECT_ORIGIN = "SELECT signer, signature, writer, version, description FROM origin WHERE entry_id = ?"
_SELECT_REFERENCES = "SELECT digest FROM reference WHERE entry_id = ?"
_DESCRIBED = {"load_seconds": 0.0, "created": 0.0, "last_used": 0.0, "uses": 0, "summary": "", "version": ""}
_SELECT_DESCRIBED = f"SELECT {', '.join(_DESCRIBED)} FROM entry WHERE id = ?"


class Replacement(NamedTuple):
    """A replaced index: where the damaged one is, its fault, and how many of its entries were kept."""

    quarantined: Path
    fault: str
    kept: int


def replace_index(path: Path, damaged: Identity, fault: str) -> Replacement | None:
    """Quarantine the index at `path` if it still is the `damaged` one, copy its entries, and log a warning.

    Return None if another process has replaced it. Raises OSError; an entry that cannot be read is
    built again.
    """
    quarantined = quarantine_index(path, damaged)
    if quarantined is None:
        return None
    kept = salvage(quarantined, path)
    logger("cachegraph").warning(
        "the index %s was damaged (%s): quarantined as %s, %d entries kept",
        path,
        fault,
        quarantined.name,
        kept,
    )
    return Replacement(quarantined, fault, kept)


def quarantine_index(path: Path, damaged: Identity) -> Path | None:
    """Rename the index at `path` and its log, if it still is `damaged`; return its path. Raises OSError."""
    with _directory_lock(path.parent):
        if identity(path) != damaged:
            return None
        stamp = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{unique_name('')}"
        quarantined = Path(f"{path}{DAMAGED_SUFFIX}{stamp}")
        for companion in _QUARANTINED:
            with suppress(FileNotFoundError):
                os.rename(f"{path}{companion}", f"{quarantined}{companion}")
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{_REBUILT}")
    return quarantined


def salvage(quarantined: Path, path: Path) -> int:
    """Copy the readable entries of a damaged index to the one at `path`; return how many."""
    end = time.monotonic() + LONGEST_SALVAGE
    kept = 0
    with suppress(*_UNREADABLE, OSError), closing(open_damaged(quarantined)) as source:
        found = _publications(source, Layout(path.parent.parent), end)
        while batch := list(islice(found, _PER_TRANSACTION)):
            kept += _add(path, batch)
    return kept


@contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    """Hold a lock on the directory itself, so that only one process at a time renames its index."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _add(path: Path, batch: list[Publication]) -> int:
    """Add `batch` to the index at `path` in one transaction; return how many entries it did not have."""
    with closing(open_for_writing(path)) as index:
        index.execute("BEGIN IMMEDIATE")
        added = sum(add_if_missing(index, publication) for publication in batch)
        index.execute("COMMIT")
        return added


def _publications(source: sqlite3.Connection, layout: Layout, end: float) -> Iterator[Publication]:
    for entry_id in _entry_ids(source):
        if time.monotonic() > end:
            return
        publication = _publication(source, layout, entry_id)
        if publication is not None:
            yield publication


def _entry_ids(source: sqlite3.Connection) -> Iterator[int]:
    """Yield the numbers of all entries: from both ends up to a damaged page, then every number between."""
    low, high = 0, 2**63
    for number in _numbers(source, _SELECT_UP):
        if number <= low:  # damaged pages can form a circle
            break
        low = number
        yield number
    for number in _numbers(source, _SELECT_DOWN):
        if number <= low:
            return
        if number >= high:
            break
        high = number
        yield number
    yield from range(low + 1, min(high, low + _MOST_BETWEEN))


def _numbers(source: sqlite3.Connection, statement: str) -> Iterator[int]:
    with suppress(*_UNREADABLE):
        for (number,) in source.execute(statement):
            yield number


def _publication(source: sqlite3.Connection, layout: Layout, entry_id: int) -> Publication | None:
    """Return the rows of an entry, or None if a part of it is damaged or one of its blobs is missing."""
    content, compressed = (_one(source, select, entry_id) for select in (_SELECT_RECORD, _SELECT_ENCODING))
    if not isinstance(content, bytes) or not isinstance(compressed, bytes):
        return None
    try:
        key = CacheKey.parse(expanded(compressed))
    except (InvalidEncoding, MemoryError):
        return None
    record = decode(content, key)
    if not isinstance(record, Record):
        return None
    blobs = [
        BlobReference(name, blob, file_size(layout.blob(blob))) for name, blob in record.all_blobs.items()
    ]
    if not all(layout.blob(blob.digest).exists() for blob in blobs):
        return None
    references = [
        other for (other,) in _rows(source, _SELECT_REFERENCES, entry_id) if isinstance(other, bytes)
    ]
    described = _described(source, entry_id)
    written = len(content) + len(compressed) + len(described["summary"])
    stored_size = bytes_of_rows(written, len(key.parts), len(blobs) + len(references))
    entry = _entry(key, record, blobs, stored_size, described)
    origin = _origin(source, entry_id, compressed)
    return Publication(entry, content, compressed, key.part_digests, blobs, references, origin)


def _origin(source: sqlite3.Connection, entry_id: int, encoding: bytes) -> Origin | None:
    row = next(iter(_rows(source, _SELECT_ORIGIN, entry_id)), None)
    if row is None or tuple(map(type, row)) != (bytes, bytes, str, str, bytes):
        return None
    signer, signature, writer, version, description = row
    return Origin(signer, signature, writer, version, description, encoding)


def _described(source: sqlite3.Connection, entry_id: int) -> dict[str, Any]:
    found = next(iter(_rows(source, _SELECT_DESCRIBED, entry_id)), tuple(_DESCRIBED.values()))
    return {name: _of_type(value, _DESCRIBED[name]) for name, value in zip(_DESCRIBED, found, strict=True)}


def _entry(
    key: CacheKey, record: Record, blobs: list[BlobReference], stored_size: int, described: dict[str, Any]
) -> Entry:
    payload = sum(blob.size for blob in blobs if blob.name == PAYLOAD)
    return Entry(
        digest=key.digest,
        level=key.level,
        format=RECORD_FORMAT,
        payload_size=payload or len(record.payload),
        blob_size=sum(blob.size for blob in blobs) - payload,
        stored_size=stored_size,
        seconds=record.seconds,
        build_seconds=sum(record.seconds.values()),
        **described,
    )


def _of_type(value: object, default: Any) -> Any:
    """Return `value` if it is finite and has the type of `default`, else `default`."""
    if type(value) is not type(default) or (isinstance(value, float) and not isfinite(value)):
        return default
    return value


def _one(source: sqlite3.Connection, statement: str, entry_id: int) -> object:
    return next((row[0] for row in _rows(source, statement, entry_id)), None)


def _rows(source: sqlite3.Connection, statement: str, entry_id: int) -> list[tuple[Any, ...]]:
    try:
        return source.execute(statement, (entry_id,)).fetchall()
    except _UNREADABLE:
        return []
