"""The tables of the index in SQLAlchemy, and the statements with which the commands list them.

This is the one description of the schema; the migrations create it in SQLite, and a test checks
that both agree. Importing this module imports SQLAlchemy, so only the commands do.
"""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    text,
)

from cachegraph.store.local.sizes import SIZE, WORTH

NOTICED_SECONDS = 0.001
"""Seconds by which a hit must be slower than building to be reported; less is noise of the clock."""

metadata = MetaData()


def _entry_id() -> Column[int]:
    return Column(
        "entry_id",
        Integer,
        ForeignKey("entry.id", ondelete="CASCADE"),
        primary_key=True,
        nullable=False,
    )


entry = Table(
    "entry",
    metadata,
    Column("id", Integer, primary_key=True, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("level", Text, nullable=False),
    Column("format", Integer, nullable=False),
    Column("payload_size", Integer, nullable=False),
    Column("blob_size", Integer, nullable=False),
    Column("stored_size", Integer, nullable=False),
    Column("seconds", Text, nullable=False),
    Column("build_seconds", REAL, nullable=False),
    Column("load_seconds", REAL, nullable=False),
    Column("created", REAL, nullable=False),
    Column("last_used", REAL, nullable=False),
    Column("uses", Integer, nullable=False),
    Column("summary", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("clock", REAL, nullable=False, server_default="0"),
    Column("referrers", Integer, nullable=False, server_default="0"),
    Index("entry_by_last_used", "last_used"),
    Index("entry_by_level", "level", "id"),
    Index("entry_by_worth", text(WORTH), sqlite_where=text("referrers = 0")),
)

record = Table("record", metadata, _entry_id(), Column("content", LargeBinary, nullable=False))

encoding = Table("encoding", metadata, _entry_id(), Column("content", LargeBinary, nullable=False))

blob_reference = Table(
    "blob_reference",
    metadata,
    _entry_id(),
    Column("name", Text, primary_key=True, nullable=False),
    Column("blob", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Index("blob_reference_by_blob", "blob"),
)

activity = Table(
    "activity",
    metadata,
    Column("day", Integer, primary_key=True, nullable=False),
    Column("level", Text, primary_key=True, nullable=False),
    Column("outcome", Text, primary_key=True, nullable=False),
    Column("reason", Text, primary_key=True, nullable=False),
    Column("events", Integer, nullable=False),
    Column("seconds", REAL, nullable=False),
)

part = Table(
    "part",
    metadata,
    _entry_id(),
    Column("name", Text, primary_key=True, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Index("part_by_digest", "digest"),
)

evicted = Table(
    "evicted",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    Column("level", Text, nullable=False),
    Column("evicted", REAL, nullable=False),
    Column("why", Text, nullable=False),
    Index("evicted_by_time", "evicted"),
)

miss = Table(
    "miss",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    Column("level", Text, nullable=False),
    Column("missed", REAL, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("encoding", LargeBinary),
    Index("miss_by_time", "missed"),
)

reference = Table(
    "reference",
    metadata,
    _entry_id(),
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    Index("reference_by_digest", "digest"),
)

run = Table(
    "run",
    metadata,
    Column("began", REAL, primary_key=True, nullable=False),
    Column("process", Integer, primary_key=True, nullable=False),
    Column("ended", REAL, nullable=False),
)

eviction = Table(
    "eviction",
    metadata,
    Column("id", Integer, primary_key=True, nullable=False),
    Column("clock", REAL, nullable=False),
    Column("blob_bytes", Integer, nullable=False),
    Column("stored_bytes", Integer, nullable=False, server_default="0"),
)

KEPT_BY_TRIGGERS = ("clock", "referrers")

SELECT_MISSES = (
    select(miss)
    .order_by(miss.c.level != "function", miss.c.missed.desc(), miss.c.digest)
    .limit(bindparam("most"))
)
"""Misses of functions come first: each causes many misses of its parts, which say no more."""
SELECT_MISSES_BY_PREFIX = (
    select(miss)
    .where(func.lower(func.hex(miss.c.digest)).startswith(bindparam("prefix")))
    .order_by(miss.c.digest)
)

SELECT_ENTRY_REFERENCES = select(entry.c.digest, reference.c.digest).join(
    reference, reference.c.entry_id == entry.c.id
)
SELECT_ENTRY_REFERENCES_OF = SELECT_ENTRY_REFERENCES.where(entry.c.digest == bindparam("key")).order_by(
    reference.c.digest
)

_entry_columns = [column for column in entry.c if column.name not in ("id", *KEPT_BY_TRIGGERS)]
SELECT_ENTRIES = select(*_entry_columns).order_by(entry.c.last_used, entry.c.id)
SELECT_ENTRIES_BETWEEN = (
    select(*_entry_columns)
    .where(entry.c.digest.between(bindparam("first"), bindparam("last")))
    .order_by(entry.c.digest)
    .limit(bindparam("most"))
)
ORDERS = {
    "used": entry.c.last_used.desc(),
    "created": entry.c.created.desc(),
    "size": literal_column(SIZE, Integer).desc(),
    "build": entry.c.build_seconds.desc(),
    "uses": entry.c.uses.desc(),
    "key": entry.c.digest.asc(),
}
_OF_LEVELS = entry.c.level.op("GLOB")(bindparam("levels"))
SELECT_LISTED = {
    name: select(*_entry_columns)
    .where(_OF_LEVELS)
    .order_by(order, entry.c.id.desc())
    .limit(bindparam("most"))
    for name, order in ORDERS.items()
}
"""Listings: last used, last made, largest, longest to build, or most used first, or by key."""
SELECT_ENCODING = (
    select(encoding.c.content)
    .join(entry, entry.c.id == encoding.c.entry_id)
    .where(entry.c.digest == bindparam("key"))
)
SELECT_REFERENCES_OF = (
    select(blob_reference.c.name, blob_reference.c.blob, blob_reference.c.size)
    .join(entry, entry.c.id == blob_reference.c.entry_id)
    .where(entry.c.digest == bindparam("key"))
    .order_by(blob_reference.c.name)
)
SELECT_LEVELS = (
    select(entry.c.level, func.count(), func.sum(literal_column(SIZE, Integer)))
    .where(_OF_LEVELS)
    .group_by(entry.c.level)
)
_ACTIVITY_OF_LEVELS = activity.c.level.op("GLOB")(bindparam("levels"))
SELECT_ACTIVITY = (
    select(
        activity.c.level,
        activity.c.outcome,
        activity.c.reason,
        func.sum(activity.c.events),
        func.sum(activity.c.seconds),
    )
    .where(_ACTIVITY_OF_LEVELS)
    .group_by(activity.c.level, activity.c.outcome, activity.c.reason)
)
SELECT_DAYS = (
    select(activity.c.day, activity.c.outcome, func.sum(activity.c.events), func.sum(activity.c.seconds))
    .where(activity.c.day >= bindparam("day"), _ACTIVITY_OF_LEVELS)
    .group_by(activity.c.day, activity.c.outcome)
)
SELECT_UNPROFITABLE = (
    select(*_entry_columns)
    .where(_OF_LEVELS, entry.c.uses > 0, entry.c.load_seconds > entry.c.build_seconds + NOTICED_SECONDS)
    .order_by(entry.c.uses.desc(), entry.c.id)
    .limit(bindparam("most"))
)
