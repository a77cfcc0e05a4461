"""Migration of an index to the schema of this release: numbered SQL files, applied under one write lock.

`PRAGMA user_version` is the number of the last file applied. Releases only add to the schema, so a
higher number, up to NEWEST_SCHEMA, is used as it is. Any other number is checked against the
tables, which tell what was applied: one flipped bit makes the number negative, huge or too small.
The files are at the root of a checkout, and inside an installed package.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from cachegraph.store.failures import IndexDamaged

SCHEMA_VERSION = 6
NEWEST_SCHEMA = 999
"""A higher number is damage: no release has as many migrations."""

_SELECT_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_SELECT_COLUMNS = "SELECT * FROM pragma_table_xinfo(?)"
_PACKAGE = Path(__file__).resolve().parents[2]


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration applied, 0 if there was none."""
    row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return row[0]


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the missing migrations in one transaction. Needs autocommit mode."""
    if _is_up_to_date(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply_missing(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_up_to_date(connection: sqlite3.Connection) -> bool:
    version = schema_version(connection)
    if version == SCHEMA_VERSION:
        return True
    return SCHEMA_VERSION < version <= NEWEST_SCHEMA and not schema_fault(connection)


def schema_fault(connection: sqlite3.Connection) -> str:
    """Return what the index lacks of the schema with its number; empty if it lacks nothing.

    In an index of a newer release only the columns are checked: the release may have replaced
    indexes and triggers.
    """
    version = schema_version(connection)
    if not 0 <= version <= NEWEST_SCHEMA:
        known = _applied(connection) is not None
        return "" if known else f"its schema has number {version}, and matches no release"
    missing = _schema_of(min(version, SCHEMA_VERSION)) - _schema(connection)
    if version > SCHEMA_VERSION:
        missing = frozenset(part for part in missing if part[0] == "column")
    if not missing:
        return ""
    return f"it lacks a part of schema {version}: {' '.join(map(str, min(missing)[:3]))}"


def _applied(connection: sqlite3.Connection) -> int | None:
    """Return the number of the last migration applied, judged by the tables, or None."""
    found = _schema(connection)
    if not found:
        return 0
    for number in range(SCHEMA_VERSION, 0, -1):
        if _schema_of(number) == found:
            return number
    number = schema_version(connection)
    return number if 0 < number <= SCHEMA_VERSION and _schema_of(number) <= found else None


def _schema(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    """Return columns, indexes and triggers as tuples; not the text of tables, which SQLite edits."""
    rows = connection.execute(_SELECT_OBJECTS).fetchall()
    columns = (
        ("column", table, *map(str, column[1:]))
        for kind, table, _ in rows
        if kind == "table"
        for column in connection.execute(_SELECT_COLUMNS, (table,)).fetchall()
    )
    return frozenset((*columns, *((kind, name, str(sql)) for kind, name, sql in rows if kind != "table")))


@lru_cache(maxsize=SCHEMA_VERSION)
def _schema_of(number: int) -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for earlier in range(1, number + 1):
            _apply(connection, earlier)
        return _schema(connection)


def _apply(connection: sqlite3.Connection, number: int) -> None:
    for statement in statements(migration_file(number).read_text("utf-8")):
        connection.execute(statement)


def _apply_missing(connection: sqlite3.Connection) -> None:
    if _is_up_to_date(connection):  # another process was first
        return
    number = schema_version(connection)
    applied = _applied(connection)
    if applied is None:
        raise IndexDamaged(f"migrating the index: its schema has number {number}, and matches no release")
    connection.execute(f"PRAGMA user_version = {applied}")
    for number in range(applied + 1, SCHEMA_VERSION + 1):
        _apply(connection, number)
        connection.execute(f"PRAGMA user_version = {number}")


def migration_file(number: int) -> Path:
    """Return the path of migration `number`. Raises FileNotFoundError if it is not shipped."""
    directory = migrations_directory()
    for path in directory.glob(f"{number:04d}_*.sql"):
        return path
    raise FileNotFoundError(
        f"migrating the index: no {number:04d}_*.sql in {directory}; reinstall cachegraph"
    )


def migrations_directory() -> Path:
    """Return the directory of the numbered files: in the package, or beside it in a checkout."""
    shipped = _PACKAGE / "migrations"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "migrations"


def statements(script: str) -> list[str]:
    """Split a script into statements, because `executescript` would commit the open transaction first."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    parts = "\n".join(lines).split(";\n")
    return [part.strip().rstrip(";") for part in parts if part.strip()]
