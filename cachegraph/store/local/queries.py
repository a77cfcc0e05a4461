"""The statements with which the commands read the index, and forget its counts, as texts for sqlite3.

Parameters have names. A statement that ends in LIMIT :most returns all rows for -1.
"""

from __future__ import annotations

from cachegraph.store.local.sizes import SIZE

NOTICED_SECONDS = 0.001
"""Seconds by which a hit must be slower than building to be reported; less is noise of the clock."""

ENTRY_COLUMNS = (
    "digest, level, format, payload_size, blob_size, stored_size, seconds, build_seconds, load_seconds, "
    "created, last_used, uses, summary, version"
)
"""The columns of an entry; the others are kept by triggers."""

MISS_COLUMNS = "digest, level, missed, reason, detail, encoding"

SELECT_MISSES = f"""
    SELECT {MISS_COLUMNS} FROM miss ORDER BY level != 'function', missed DESC, digest LIMIT :most
"""
"""Misses of functions come first: each causes many misses of its parts, which say no more."""
SELECT_MISSES_BY_PREFIX = f"""
    SELECT {MISS_COLUMNS} FROM miss WHERE lower(hex(digest)) GLOB :prefix || '*' ORDER BY digest
"""

SELECT_ENTRY_REFERENCES = """
    SELECT entry.digest, reference.digest FROM entry JOIN reference ON reference.entry_id = entry.id
"""
SELECT_ENTRY_REFERENCES_OF = f"""
    {SELECT_ENTRY_REFERENCES} WHERE entry.digest = :key ORDER BY reference.digest
"""

SELECT_ENTRIES = f"SELECT {ENTRY_COLUMNS} FROM entry ORDER BY last_used, id"
SELECT_MADE_SINCE = "SELECT digest FROM entry WHERE created >= :since"
SELECT_LONGEST_MADE_SINCE = f"""
    SELECT {ENTRY_COLUMNS} FROM entry WHERE created >= :since ORDER BY build_seconds DESC LIMIT :most
"""
COUNT_USED_SINCE = "SELECT count(*) FROM entry WHERE last_used >= :since AND uses"
SELECT_LONGEST_USED_SINCE = f"""
    SELECT {ENTRY_COLUMNS} FROM entry WHERE last_used >= :since AND uses
    ORDER BY load_seconds DESC LIMIT :most
"""
SELECT_COSTS = f"SELECT digest, {SIZE}, build_seconds, load_seconds FROM entry"
SELECT_ENTRIES_BETWEEN = f"""
    SELECT {ENTRY_COLUMNS} FROM entry WHERE digest BETWEEN :first AND :last ORDER BY digest LIMIT :most
"""
_ORDERS = {
    "used": "last_used DESC",
    "created": "created DESC",
    "size": f"{SIZE} DESC",
    "build": "build_seconds DESC",
    "uses": "uses DESC",
    "key": "digest",
}
SELECT_LISTED = {
    name: f"""
        SELECT {ENTRY_COLUMNS} FROM entry WHERE level GLOB :levels ORDER BY {order}, id DESC LIMIT :most
    """
    for name, order in _ORDERS.items()
}
"""Listings: last used, last made, largest, longest to build, or most used first, or by key."""
SELECT_ENCODING = """
    SELECT encoding.content FROM encoding JOIN entry ON entry.id = encoding.entry_id
    WHERE entry.digest = :key
"""
SELECT_REFERENCES_OF = """
    SELECT name, blob, size FROM blob_reference JOIN entry ON entry.id = blob_reference.entry_id
    WHERE entry.digest = :key ORDER BY name
"""

SELECT_LEVELS = f"SELECT level, count(*), sum({SIZE}) FROM entry WHERE level GLOB :levels GROUP BY level"
SELECT_ACTIVITY = """
    SELECT level, outcome, reason, sum(events), sum(seconds) FROM activity WHERE level GLOB :levels
    GROUP BY level, outcome, reason
"""
SELECT_EVERY_ACTIVITY = "SELECT day, level, outcome, reason, events, seconds FROM activity ORDER BY day"
SELECT_DAYS = """
    SELECT day, outcome, sum(events), sum(seconds) FROM activity WHERE day >= :day AND level GLOB :levels
    GROUP BY day, outcome
"""
FORGET_ACTIVITY = "DELETE FROM activity WHERE level GLOB :levels"
SELECT_REMOVALS = """
    SELECT why, count(*), max(evicted) FROM evicted GROUP BY why ORDER BY count(*) DESC, why
"""
"""The removals that the index remembers: for each reason how many, and when the last was."""
SELECT_UNPROFITABLE = f"""
    SELECT {ENTRY_COLUMNS} FROM entry
    WHERE level GLOB :levels AND uses > 0 AND load_seconds > build_seconds + {NOTICED_SECONDS}
    ORDER BY uses DESC, id LIMIT :most
"""
