"""The tables of the index in SQLAlchemy.

This is the one description of the schema; the migrations create it in SQLite, and a test checks
that both agree. Statements are texts for sqlite3 (queries.py): importing this module imports
SQLAlchemy, so no command does (decision 0154).
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
    text,
)

from cachegraph.store.local.sizes import WORTH

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

origin = Table(
    "origin",
    metadata,
    _entry_id(),
    Column("signer", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("writer", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("description", LargeBinary, nullable=False),
)

eviction = Table(
    "eviction",
    metadata,
    Column("id", Integer, primary_key=True, nullable=False),
    Column("clock", REAL, nullable=False),
    Column("blob_bytes", Integer, nullable=False),
    Column("stored_bytes", Integer, nullable=False, server_default="0"),
)
