"""Reasons for misses: the entry was evicted, a part of its key changed, or it was never stored.

A miss costs two or three SELECTs on indexed columns. One more finds the nearest keys, for
explanations. Functions raise sqlite3.Error and OSError.
"""

from __future__ import annotations

import time

from cachegraph.key import SUBJECTS, CacheKey
from cachegraph.store.entry import Miss, NearKey
from cachegraph.store.local.database import Database

TARGET = "target"

_SELECT_EVICTED = "SELECT evicted, why FROM evicted WHERE digest = ?"
# The entry of the same subject with the most equal parts, the youngest of several; the names of these parts.
_SELECT_NEAREST = """
    SELECT hex(entry.digest), group_concat(part.name, char(10)), count(*) AS equal
    FROM (SELECT entry_id FROM part WHERE digest = ? AND name = ? ORDER BY entry_id DESC LIMIT 50) AS kin
    JOIN part ON part.entry_id = kin.entry_id JOIN entry ON entry.id = kin.entry_id
    WHERE entry.level = ? AND part.digest IN ({marks})
    GROUP BY entry.id ORDER BY equal DESC, entry.id DESC LIMIT 1
"""
# Among the entries of the same subject and the latest ones: those with the most equal parts, or with none if
# no other has more, and their keys.
_SELECT_NEAREST_KEYS = """
    WITH candidate AS (
        SELECT id FROM (SELECT entry_id AS id FROM part WHERE digest = ? ORDER BY entry_id DESC LIMIT 50)
        UNION SELECT id FROM (SELECT id FROM entry WHERE level = ? ORDER BY id DESC LIMIT 1000)
    ), nearest AS (
        SELECT entry.id, sum(part.digest IN ({marks})) AS equal, entry.created
        FROM candidate JOIN entry ON entry.id = candidate.id JOIN part ON part.entry_id = entry.id
        WHERE entry.level = ? AND entry.digest != ? AND entry.created <= ?
        GROUP BY entry.id ORDER BY equal DESC, entry.created DESC, entry.id DESC LIMIT ?
    )
    SELECT entry.digest, equal, encoding.content
    FROM nearest JOIN entry ON entry.id = nearest.id JOIN encoding ON encoding.entry_id = nearest.id
    ORDER BY equal DESC, nearest.created DESC, nearest.id DESC
"""


def nearest_keys(database: Database, key: CacheKey, before: float, most: int) -> list[NearKey]:
    """Return the `most` stored keys of the same level that share the most parts with `key`.

    Returns keys stored up to the time `before`; of older entries, only those of the same subject
    are compared.
    """
    if not database.has_table("part"):
        return []
    digests = key.part_digests
    subject = next((digest for name, digest in digests.items() if name in SUBJECTS), None)
    statement = _SELECT_NEAREST_KEYS.format(marks=", ".join("?" * len(digests)))
    parameters = (subject, key.level, *digests.values(), key.level, key.digest, before, most)
    return [NearKey(*row) for row in database.select_all(statement, parameters)]


def refine(database: Database, key: CacheKey, miss: Miss) -> Miss:
    """Return a more precise reason than `miss` why `key` has no entry, or `miss`."""
    if not database.has_table("part"):
        return miss
    return _evicted(database, key) or _changed(database, key) or miss


def _evicted(database: Database, key: CacheKey) -> Miss | None:
    row = database.select_one(_SELECT_EVICTED, (key.digest,))
    if row is None:
        return None
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row[0]))
    return Miss("evicted", f"{row[1]}, at {when} UTC")


def _changed(database: Database, key: CacheKey) -> Miss | None:
    digests = key.part_digests
    subject = next((name for name in digests if name in SUBJECTS), None)
    if subject is None:
        return None
    statement = _SELECT_NEAREST.format(marks=", ".join("?" * len(digests)))
    row = database.select_one(statement, (digests[subject], subject, key.level, *digests.values()))
    if row is None or row[0].lower() == key.hex:  # another process has stored it meanwhile
        return None
    equal = set(row[1].split("\n"))
    changed = [name for name in digests if name not in equal]
    if not changed:
        return Miss("damaged", f"the entry {row[0].lower()} has the parts of this key, and another digest")
    detail = f"the entry {row[0].lower()} differs in {', '.join(changed)}"
    if changed == [TARGET]:
        return Miss("foreign-target", detail)
    return Miss(f"key-part-changed: {', '.join(changed)}", detail)
