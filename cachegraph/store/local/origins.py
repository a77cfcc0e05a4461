"""Origins: where copies of shared entries came from, and which of them were revoked since.

Sqlite3 alone. Functions raise sqlite3.Error and OSError.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from cachegraph.fingerprint.primitives import content_name
from cachegraph.store.entry import Origin
from cachegraph.store.local.index import SELECT_RECORD, SelectAll, SelectOne
from cachegraph.store.revocation.list_file import Revoked

REVOKED = "it was revoked"
"""The reason of a removal, which a later miss gives."""

_INSERT = (
    "INSERT INTO origin (entry_id, signer, signature, writer, version, description) VALUES (?, ?, ?, ?, ?, ?)"
)
_SELECT = """
    SELECT signer, signature, writer, origin.version, description, encoding.content
    FROM entry JOIN origin ON origin.entry_id = entry.id JOIN encoding ON encoding.entry_id = entry.id
    WHERE entry.digest = ?
"""
_SELECT_ALL = """
    SELECT entry.digest, origin.signer, origin.writer, coalesce(origin.version, entry.version)
    FROM entry LEFT JOIN origin ON origin.entry_id = entry.id
"""


def write_origin(connection: sqlite3.Connection, entry_id: int | None, origin: Origin) -> None:
    """Write the origin of an entry that has none, in the transaction of `connection`."""
    row = (origin.signer, origin.signature, origin.writer, origin.release, origin.description)
    connection.execute(_INSERT, (entry_id, *row))


def origin_of(select_one: SelectOne, digest: bytes) -> Origin | None:
    """Return the origin of the entry of a key; None for one that was built here, or came unsigned."""
    row = select_one(_SELECT, (digest,))
    return None if row is None else Origin(*row)


def revoked_entries(select_all: SelectAll, select_one: SelectOne, revoked: Revoked) -> set[bytes]:
    """Return the keys of all entries that are revoked.

    Copies go by their signer, writer and release; what was built here goes by its release; both by their
    records.
    """
    return {*_by_origin(select_all, revoked), *_by_record(select_one, revoked)}


def _by_origin(select_all: SelectAll, revoked: Revoked) -> Iterator[bytes]:
    signers = frozenset(map(bytes.fromhex, revoked.signers))
    for digest, signer, writer, release in select_all(_SELECT_ALL, ()):
        if signer in signers or writer in revoked.writers or release in revoked.releases:
            yield digest


def _by_record(select_one: SelectOne, revoked: Revoked) -> Iterator[bytes]:
    for key, name in revoked.entries:
        row = select_one(SELECT_RECORD, (bytes.fromhex(key),))
        if row is not None and content_name(bytes(row[0])) == name:
            yield bytes.fromhex(key)
