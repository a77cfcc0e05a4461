"""Brings an index to the schema of this release: numbered SQL files applied under one write lock.

`PRAGMA user_version` is the number of the last file applied. A newer release only ever adds, so a higher number is
used as it is. The files are at the root of a checkout, or inside the package when it was installed from a wheel.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

SCHEMA_VERSION = 3

_PACKAGE = Path(__file__).resolve().parent.parent


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration applied, 0 for a database that has none."""
    row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return row[0]


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing in one transaction; whoever comes second finds it done. Needs autocommit mode."""
    if schema_version(connection) >= SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply_missing(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply_missing(connection: sqlite3.Connection) -> None:
    for number in range(schema_version(connection) + 1, SCHEMA_VERSION + 1):
        for statement in statements(migration_file(number).read_text("utf-8")):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")


def migration_file(number: int) -> Path:
    """Return the path of migration `number`; raises FileNotFoundError naming the directory when it is not shipped."""
    directory = migrations_directory()
    for path in directory.glob(f"{number:04d}_*.sql"):
        return path
    raise FileNotFoundError(
        f"migrating the index: no {number:04d}_*.sql in {directory}; reinstall cachegraph"
    )


def migrations_directory() -> Path:
    """Return where the numbered files are: in the package, or beside it in a checkout."""
    shipped = _PACKAGE / "migrations"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "migrations"


def statements(script: str) -> list[str]:
    """Split a script into statements: `executescript` would commit the open transaction first."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    parts = "\n".join(lines).split(";\n")
    return [part.strip().rstrip(";") for part in parts if part.strip()]
