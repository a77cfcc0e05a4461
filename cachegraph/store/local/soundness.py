"""Telling whether an index is damaged, before anybody sets it aside: by a connection that could write to it.

An error alone proves nothing. One connection may lack a descriptor, another read an index as immutable that somebody
writes to after all, a newer release may have constraints that this one does not know. The index is damaged if SQLite's
own check finds so, if it has not the tables that its release gave it, or if it cannot be written although its files can.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from cachegraph.store.failures import is_damage, sqlite_code
from cachegraph.store.local.connections import COMPANIONS, open_unchanged
from cachegraph.store.local.migrations import schema_fault, schema_version

LONGEST_CHECK = 60.0
"""Seconds; a check that takes longer has found nothing so far, and counts as one that finds nothing."""
_STEPS = 100_000  # of SQLite's machine, between two looks at the clock


def fault_of(path: Path) -> str:
    """Return what is wrong with the index at `path`, empty where nothing is found.

    Raises sqlite3.Error and OSError where it cannot be looked at.
    """
    try:
        with closing(open_unchanged(path)) as connection:
            # The header first: where nothing may be written at all that raises, before every page is read.
            return (
                schema_fault(connection) or _fault_in_header(connection, path) or _fault_in_pages(connection)
            )
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        return str(error)


def _fault_in_pages(connection: sqlite3.Connection) -> str:
    end = time.monotonic() + LONGEST_CHECK
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if sqlite_code(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return ""
    finally:
        connection.set_progress_handler(None, _STEPS)
    return "" if found == "ok" else f"its integrity check says: {found}"


def _fault_in_header(connection: sqlite3.Connection, path: Path) -> str:
    """A damaged header can make an index look as if a newer SQLite had written it, which makes it read-only."""
    try:
        connection.execute(
            "BEGIN IMMEDIATE"
        )  # of an index that is read-only this begins to read, and says nothing
        connection.execute(f"PRAGMA user_version = {schema_version(connection)}")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if sqlite_code(error) != sqlite3.SQLITE_READONLY or not _can_be_written(path):
            raise
        return "it cannot be written, although its files can"
    return ""


def _can_be_written(path: Path) -> bool:
    files = (Path(f"{path}{companion}") for companion in COMPANIONS)
    effective = os.access in os.supports_effective_ids
    return all(
        os.access(place, os.W_OK, effective_ids=effective)
        for place in (path.parent, *(file for file in files if file.exists()))
    )
