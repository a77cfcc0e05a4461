"""Runs: processes that used the cache at overlapping times, such as the workers of one test suite.

Each process writes with its counts when it began and when it last counted. Functions raise sqlite3.Error.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from typing import Any

PROCESSES_KEPT = 1000

_NOTE = """
    INSERT INTO run (began, process, ended) VALUES (?, ?, ?)
    ON CONFLICT (began, process) DO UPDATE SET ended = excluded.ended
"""
_FORGET = "DELETE FROM run WHERE ended <= (SELECT ended FROM run ORDER BY ended DESC LIMIT 1 OFFSET ?)"
_SELECT_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'run'"
_SELECT = "SELECT began, ended FROM run ORDER BY ended DESC"


def note_run(connection: sqlite3.Connection, began: float) -> None:
    """Write, in the transaction of `connection`, that this process used the cache from `began` until now."""
    connection.execute(_NOTE, (began, os.getpid(), time.time()))
    connection.execute(_FORGET, (PROCESSES_KEPT,))


def last_run_began(select_all: Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]) -> float | None:
    """Return when the first process of the last run began (seconds since 1970), or None without a run.

    `select_all` returns the rows of a statement; an index of an older release knows no runs.
    """
    first: float | None = None
    for began, ended in select_all(_SELECT, ()) if select_all(_SELECT_TABLE, ()) else ():
        if first is not None and ended < first:
            break
        first = began if first is None else min(first, began)
    return first
