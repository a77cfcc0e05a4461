"""Checking whether an index is damaged, before it is quarantined, with a connection that could write to it.

An error alone proves nothing: a connection may lack a descriptor, another may read as immutable
what somebody writes, and a newer release may have constraints that this one does not know. An index
is damaged if SQLite's integrity check fails, if it lacks tables that its release created, or if it
cannot be written although its files can.
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
"""Seconds; a check that takes longer is stopped, and counts as passed."""
_STEPS = 100_000  # of SQLite's virtual machine between two looks at the clock


def fault_of(path: Path) -> str:
    """Return the fault of the index at `path`; empty if none is found.

    Raises sqlite3.Error and OSError if it cannot be checked.
    """
    try:
        with closing(open_unchanged(path)) as connection:
            # The header first: on a read-only disk it raises before every page is read.
            fault = schema_fault(connection) or _fault_in_header(connection, path)
            return fault or _fault_in_pages(connection)
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
    """Check that the index can be written.

    A damaged header can look like that of a newer SQLite, which makes the index read-only.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")  # raises nothing if the index is read-only
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
