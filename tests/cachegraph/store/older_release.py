"""Older releases: their statements, word for word, on the migrations up to their own schema.

They know no later column, table or trigger, and only records of format 1, which name blobs by the 16 bytes of
their XXH3-128.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import time
import zlib
from collections.abc import Mapping
from pathlib import Path

from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey
from cachegraph.store.local.migrations import migration_file, statements

UPSERT_ENTRY = """
    INSERT INTO entry (digest, level, format, payload_size, blob_size, stored_size, seconds, build_seconds, load_seconds,
                       created, last_used, uses, summary, version)
    VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, '0.1.0')
    ON CONFLICT (digest) DO UPDATE SET level = excluded.level, format = excluded.format,
        payload_size = excluded.payload_size, blob_size = excluded.blob_size, stored_size = excluded.stored_size,
        seconds = excluded.seconds, build_seconds = excluded.build_seconds, load_seconds = excluded.load_seconds,
        created = excluded.created, last_used = excluded.last_used, uses = excluded.uses, summary = excluded.summary,
        version = excluded.version
"""
UPSERT_RECORD = """
    INSERT INTO record (entry_id, content) VALUES (?, ?)
    ON CONFLICT (entry_id) DO UPDATE SET content = excluded.content
"""
UPSERT_ENCODING = UPSERT_RECORD.replace("record", "encoding")
SELECT_RECORD = (
    "SELECT record.content FROM entry JOIN record ON record.entry_id = entry.id WHERE entry.digest = ?"
)
COUNT_USE = (
    "UPDATE entry SET uses = uses + ?, last_used = max(last_used, ?), load_seconds = coalesce(?, load_seconds) "
    "WHERE digest = ?"
)
SELECT_ENTRIES = "SELECT digest, level, uses, summary FROM entry ORDER BY last_used, id"


_HEADER = struct.Struct(">4s16s16s32sB16sHH")


def first_format(
    key: CacheKey, payload: bytes, blobs: Mapping[str, str], seconds: Mapping[str, float] | None = None
) -> bytes:
    """Return a record of format 1 with an inline payload; `blobs` maps names to 32 hexadecimal digits."""
    costs = seconds or {}
    header = _HEADER.pack(b"", b"", key.digest, key.confirmation, 0, bytes(16), len(blobs), len(costs))
    pieces = [_text(name) + bytes.fromhex(blob) for name, blob in blobs.items()]
    pieces += [_text(step) + struct.pack(">d", cost) for step, cost in costs.items()]
    checked = b"".join((header[20:], *pieces, payload))
    return b"".join((b"CGR\1", digest(checked), checked))


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


class OlderRelease:
    """The release whose last migration was `schema`, on the index in `directory`."""

    def __init__(self, directory: Path, schema: int) -> None:
        path = directory / "v1" / "index.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.schema = schema
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        self._migrate()

    def _migrate(self) -> None:
        (found,) = self.connection.execute("PRAGMA user_version").fetchone()
        for number in range(found + 1, self.schema + 1):
            for statement in statements(migration_file(number).read_text("utf-8")):
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA user_version = {number}")

    def put(self, key: CacheKey, payload: bytes, blobs: dict[str, bytes], seconds: dict[str, float]) -> None:
        """Publish an entry in one transaction, without writing its blobs."""
        digests = {name: digest(content) for name, content in blobs.items()}
        record = first_format(key, payload, {name: blob.hex() for name, blob in digests.items()}, seconds)
        encoding = zlib.compress(key.encoding)
        sizes = len(payload), sum(map(len, blobs.values())), len(record) + len(encoding)
        costs = json.dumps(seconds), sum(seconds.values()), 0.0
        now = time.time()
        run = self.connection.execute
        run("BEGIN IMMEDIATE")
        run(UPSERT_ENTRY, (key.digest, key.level, *sizes, *costs, now, now, "by the older release"))
        (entry,) = run("SELECT id FROM entry WHERE digest = ?", (key.digest,)).fetchone()
        run(UPSERT_RECORD, (entry, record))
        run(UPSERT_ENCODING, (entry, encoding))
        run("DELETE FROM blob_reference WHERE entry_id = ?", (entry,))
        for name, blob in digests.items():
            run("INSERT INTO blob_reference VALUES (?, ?, ?, ?)", (entry, name, blob, len(blobs[name])))
        if self.schema >= 2:
            run("DELETE FROM part WHERE entry_id = ?", (entry,))
            for name, part in key.part_digests.items():
                run("INSERT INTO part (entry_id, name, digest) VALUES (?, ?, ?)", (entry, name, part))
        run("COMMIT")

    def get(self, key: CacheKey) -> bytes | None:
        """Return the checked payload of an entry without blobs; None for a record of another format."""
        row = self.connection.execute(SELECT_RECORD, (key.digest,)).fetchone()
        if row is None or not row[0].startswith(b"CGR\1"):
            return None
        _, checksum, found, confirmation, _, _, _, costs = _HEADER.unpack_from(row[0])
        assert digest(row[0][20:]) == checksum
        assert (found, confirmation) == (key.digest, key.confirmation)
        offset = _HEADER.size
        for _ in range(costs):
            offset += 2 + struct.unpack_from(">H", row[0], offset)[0] + 8
        return bytes(row[0][offset:])

    def use(self, key: CacheKey) -> None:
        """Count a use."""
        self.connection.execute(COUNT_USE, (1, time.time(), None, key.digest))

    def delete(self, key: CacheKey) -> None:
        """Remove an entry."""
        self.connection.execute("DELETE FROM entry WHERE digest = ?", (key.digest,))

    def scan(self) -> list[tuple[bytes, str, int, str]]:
        """Return (key digest, level, uses, summary) of every entry."""
        return self.connection.execute(SELECT_ENTRIES).fetchall()

    def close(self) -> None:
        self.connection.close()
