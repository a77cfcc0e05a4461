"""The size and the worth of entries, for the limit, for eviction, for pruning, and wherever a size is shown.

    an entry takes      the bytes of its rows (`stored_size`) or of its file, and of its blobs
    a store holds       the bytes of the rows or files of all entries, and of each of their blobs, once

Pages of SQLite are not counted: a page is freed only when all of its rows are gone, so a limit on
pages evicted a hundred entries to make room for one. A row takes more than its content (keys,
indexes, rows of parts, blobs and references); the constants below add that, as measured (decision
0066).

The directory also holds things that are not counted: free space in pages (a third of them,
typically, with many small entries), the write-ahead log (typically 4 MB), remembered evictions and
misses (bounded in eviction.py and index.py), an artifact for every process that is publishing, and
leftovers, which pruning removes.
"""

from __future__ import annotations

import sqlite3

from cachegraph.store.entry import INLINE_LIMIT

ENTRY_BYTES = 450
PART_BYTES = 90
REFERENCE_BYTES = 70
"""Bytes that a row takes beside its content, with its share of the indexes."""

SIZE = f"(stored_size + blob_size + CASE WHEN payload_size > {INLINE_LIMIT} THEN payload_size ELSE 0 END)"
"""The size of an entry in SQL, as `Entry.size` computes it."""

WORTH = (
    "clock + (uses + 1) * max(build_seconds - load_seconds, 0.0) / "
    "(max(stored_size, payload_size) + blob_size + 1)"
)
"""The worth of an entry (eviction.py) in SQL.

SQLite uses its index only for exactly the expression of the migration.
"""

SELECT_BYTES_HELD = "SELECT stored_bytes + blob_bytes FROM eviction"
"""The bytes that the store holds, as triggers count them."""

COUNT_ROW_BYTES = "SELECT coalesce(sum(stored_size), 0) FROM entry"
COUNT_BLOB_BYTES = (
    "SELECT coalesce(sum(size), 0) FROM (SELECT max(size) AS size FROM blob_reference GROUP BY blob)"
)
COUNT_BYTES_HELD = f"SELECT ({COUNT_ROW_BYTES}) + ({COUNT_BLOB_BYTES})"
"""The bytes that the store holds, added up; works on an index of any release."""


def bytes_of_rows(content: int, parts: int, references: int) -> int:
    """Return the bytes of the rows of an entry, from its content and the numbers of other rows."""
    return ENTRY_BYTES + content + parts * PART_BYTES + references * REFERENCE_BYTES


def bytes_held(connection: sqlite3.Connection) -> int:
    """Return the bytes that the store with this index holds; 0 if the index is not set up."""
    (held,) = connection.execute(SELECT_BYTES_HELD).fetchone() or (0,)
    return int(held)
