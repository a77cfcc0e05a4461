"""What size means, in the limit, in eviction, in pruning, and wherever a size is shown.

    an entry takes      the bytes of its rows (`stored_size`), or of its file, and those of the blobs that it refers to
    a store holds       the bytes of all rows, or files, of entries, and each blob that any of them refers to, once

Pages of SQLite are not it: they are freed by the page, not by the entry, so who counted them evicted a hundred entries for
the room of one. What rows take beside what is written into them (the entry's own row, those of its parts, blobs and
references, each with its indexes) is counted by the constants below, as measured (decision 0066).

Beside what a store holds lie, on the disk: what pages have free (a third of them as a rule, where small entries come and
go), the write-ahead log (4 MB as a rule), what is remembered of evictions and misses (publication.py and index.py bound
both), an artifact for every process that is publishing, and what pruning calls leftovers.
"""

from __future__ import annotations

import sqlite3
from typing import Protocol

INLINE_LIMIT = 64 * 1024
"""A payload that is longer is a blob."""

ENTRY_BYTES = 450
PART_BYTES = 90
REFERENCE_BYTES = 70
"""What a row takes beside what is written into it, and in indexes."""

SIZE = f"(stored_size + blob_size + CASE WHEN payload_size > {INLINE_LIMIT} THEN payload_size ELSE 0 END)"
"""What an entry takes, in SQL."""

SELECT_BYTES_HELD = "SELECT stored_bytes + blob_bytes FROM eviction"
"""What the store holds, as triggers keep it."""

COUNT_ROW_BYTES = "SELECT coalesce(sum(stored_size), 0) FROM entry"
COUNT_BLOB_BYTES = (
    "SELECT coalesce(sum(size), 0) FROM (SELECT max(size) AS size FROM blob_reference GROUP BY blob)"
)
COUNT_BYTES_HELD = f"SELECT ({COUNT_ROW_BYTES}) + ({COUNT_BLOB_BYTES})"
"""The same counted, of an index of whatever release."""


class Sized(Protocol):
    """What has the sizes of an entry."""

    @property
    def payload_size(self) -> int:
        """Bytes of the payload, wherever it is."""

    @property
    def blob_size(self) -> int:
        """Bytes of the named blobs."""

    @property
    def stored_size(self) -> int:
        """Bytes of the rows, or of the file."""


def bytes_taken(entry: Sized) -> int:
    """Return what an entry takes: its rows or its file, its payload where that is a blob, and its named blobs."""
    payload = entry.payload_size if entry.payload_size > INLINE_LIMIT else 0
    return entry.stored_size + payload + entry.blob_size


def bytes_of_rows(content: int, parts: int, references: int) -> int:
    """Return what the rows of an entry take, of so many bytes in all, with so many parts, and references to anything."""
    return ENTRY_BYTES + content + parts * PART_BYTES + references * REFERENCE_BYTES


def bytes_held(connection: sqlite3.Connection) -> int:
    """Return what the store holds whose index `connection` leads to; 0 where the index is not set up."""
    (held,) = connection.execute(SELECT_BYTES_HELD).fetchone() or (0,)
    return int(held)
