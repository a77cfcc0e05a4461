"""Salvage: what can be read of an index that was set aside goes into the one that takes its place, entry by entry.

Nothing is believed that does not carry its own sums: the encoding of a key gives the key, and the record must be that
key's, by both its digests and its checksum (record.py). What only describes an entry (when it was used, its summary) is
taken as it is where it is of the right kind. An entry that the new index has by then stays as it is there.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from cachegraph.errors import InvalidEncoding
from cachegraph.key import CacheKey, expanded
from cachegraph.store.entry import PAYLOAD, Entry, Reference
from cachegraph.store.local.connections import open_damaged, open_for_writing
from cachegraph.store.paths import Layout, file_size
from cachegraph.store.record import RECORD_FORMAT, Record, decode
from cachegraph.store.shared.publication import Publication, add_if_missing
from cachegraph.store.sizes import bytes_of_rows

LONGEST_SALVAGE = 20.0
"""Seconds; what is left by then is built again."""
_PER_TRANSACTION = 200
_MOST_BETWEEN = 20_000  # a damaged number may be any
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError, MemoryError)

_SELECT_UP = "SELECT entry_id FROM record ORDER BY entry_id"
_SELECT_DOWN = "SELECT entry_id FROM record ORDER BY entry_id DESC"
_SELECT_CONTENT = "SELECT content FROM {} WHERE entry_id = ?"
_SELECT_RECORD = _SELECT_CONTENT.format("record")
_SELECT_ENCODING = _SELECT_CONTENT.format("encoding")
_SELECT_REFERENCES = "SELECT digest FROM reference WHERE entry_id = ?"
_DESCRIBED = {"load_seconds": 0.0, "created": 0.0, "last_used": 0.0, "uses": 0, "summary": "", "version": ""}
_SELECT_DESCRIBED = f"SELECT {', '.join(_DESCRIBED)} FROM entry WHERE id = ?"


def salvage(aside: Path, path: Path) -> int:
    """Put what can be read of the index `aside` into the one at `path`; return how many entries. Raises no sqlite3.Error."""
    end = time.monotonic() + LONGEST_SALVAGE
    kept = 0
    with suppress(*_UNREADABLE, OSError), closing(open_damaged(aside)) as source:
        found = _publications(source, Layout(path.parent.parent), end)
        while batch := list(islice(found, _PER_TRANSACTION)):
            kept += _add(path, batch)
    return kept


def _add(path: Path, batch: list[Publication]) -> int:
    """Put `batch` into the index at `path` in one transaction; return how many entries it did not have."""
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
    """Yield the numbers of all entries from both ends up to where a damaged page is, then all those between."""
    low, high = 0, 2**63
    for number in _numbers(source, _SELECT_UP):
        if number <= low:  # damaged pages can lead in a circle
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
    """All of an entry; None if its record or its key cannot be read, or one of its blobs is missing."""
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
    blobs = [Reference(name, blob, file_size(layout.blob(blob))) for name, blob in _blobs(record).items()]
    if not all(layout.blob(blob.digest).exists() for blob in blobs):
        return None
    references = [
        other for (other,) in _rows(source, _SELECT_REFERENCES, entry_id) if isinstance(other, bytes)
    ]
    described = _described(source, entry_id)
    written = len(content) + len(compressed) + len(described["summary"])
    stored_size = bytes_of_rows(written, len(key.parts), len(blobs) + len(references))
    entry = _entry(key, record, blobs, stored_size, described)
    return Publication(entry, content, compressed, key.part_digests, blobs, references)


def _blobs(record: Record) -> dict[str, str]:
    payload = {} if record.payload_blob is None else {PAYLOAD: record.payload_blob}
    return {**payload, **record.blobs}


def _described(source: sqlite3.Connection, entry_id: int) -> dict[str, Any]:
    found = next(iter(_rows(source, _SELECT_DESCRIBED, entry_id)), tuple(_DESCRIBED.values()))
    return {name: _of_kind(value, _DESCRIBED[name]) for name, value in zip(_DESCRIBED, found, strict=True)}


def _entry(
    key: CacheKey, record: Record, blobs: list[Reference], stored_size: int, described: dict[str, Any]
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


def _of_kind(value: object, kind: Any) -> Any:
    """`value` if it can be what `kind` is, else `kind`."""
    if type(value) is not type(kind) or (isinstance(value, float) and not isfinite(value)):
        return kind
    return value


def _one(source: sqlite3.Connection, statement: str, entry_id: int) -> object:
    return next((row[0] for row in _rows(source, statement, entry_id)), None)


def _rows(source: sqlite3.Connection, statement: str, entry_id: int) -> list[tuple[Any, ...]]:
    try:
        return source.execute(statement, (entry_id,)).fetchall()
    except _UNREADABLE:
        return []
