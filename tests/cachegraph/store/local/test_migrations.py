"""Migrations: found where they are shipped, applied once, and equal to the described tables."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit
from cachegraph.store.local import migrations, schema
from cachegraph.store.local.migrations import SCHEMA_VERSION, migrate, migrations_directory, statements
from cachegraph.store.local.store import LocalStore

Key = Callable[..., CacheKey]


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def test_the_number_of_the_last_file_is_the_schema_version() -> None:
    numbers = sorted(int(path.name[:4]) for path in migrations_directory().glob("*.sql"))
    assert numbers == list(range(1, SCHEMA_VERSION + 1))


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    connection = connect(tmp_path / "index.sqlite")
    migrate(connection)
    before = connection.execute("SELECT * FROM sqlite_master").fetchall()
    migrate(connection)
    assert connection.execute("SELECT * FROM sqlite_master").fetchall() == before
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_the_files_are_read_only_when_there_is_something_to_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect(tmp_path / "index.sqlite")
    migrate(connection)
    monkeypatch.setattr(migrations, "migrations_directory", lambda: tmp_path / "missing")
    migrate(connection)
    with pytest.raises(FileNotFoundError, match=r"no 0001_\*\.sql in .*missing; reinstall"):
        migrate(connect(tmp_path / "fresh.sqlite"))


def test_a_migration_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0001_broken.sql").write_text("CREATE TABLE a (b);\nCREATE TABLE a (b);\n")
    monkeypatch.setattr(migrations, "migrations_directory", lambda: tmp_path)
    connection = connect(tmp_path / "index.sqlite")
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(connection)
    assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []
    assert not connection.in_transaction


def test_migrating_waits_for_another_that_migrates_and_finds_it_done(tmp_path: Path) -> None:
    connect(tmp_path / "index.sqlite").execute("PRAGMA journal_mode = WAL")
    other = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    migrations._apply_missing(other)
    commit = threading.Timer(0.2, other.execute, ["COMMIT"])
    commit.start()
    ours = connect(tmp_path / "index.sqlite")
    migrate(ours)
    commit.join()
    assert ours.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_script_is_split_at_semicolons_that_end_lines() -> None:
    script = "-- a; comment;\nCREATE TABLE a (\n  b TEXT DEFAULT ';' -- c\n);\n\nSELECT 1;\n"
    assert statements(script) == ["CREATE TABLE a (\n  b TEXT DEFAULT ';' -- c\n)", "SELECT 1"]


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_the_tables_of_the_schema_are_those_of_the_migrations(tmp_path: Path) -> None:
    migrate(connect(tmp_path / "migrated.sqlite"))
    described = create_engine(f"sqlite:///{tmp_path / 'described.sqlite'}")
    schema.metadata.create_all(described)
    migrated = create_engine(f"sqlite:///{tmp_path / 'migrated.sqlite'}")
    assert structure(migrated) == structure(described)


def structure(database: object) -> dict[str, object]:
    tables = inspect(database)
    return {
        name: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"])
                for column in tables.get_columns(name)
            ],
            "key": tables.get_pk_constraint(name)["constrained_columns"],
            "foreign": [
                (one["constrained_columns"], one["referred_table"], one["referred_columns"], one["options"])
                for one in tables.get_foreign_keys(name)
            ],
            "unique": [one["column_names"] for one in tables.get_unique_constraints(name)],
            "indexes": [
                (one["name"], one["column_names"], one["unique"]) for one in tables.get_indexes(name)
            ],
        }
        for name in tables.get_table_names()
    }


def test_an_older_release_uses_a_newer_index(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    store.close()
    newer = connect(store.layout.index)
    newer.execute("ALTER TABLE entry ADD COLUMN host TEXT NOT NULL DEFAULT ''")
    newer.execute("CREATE TABLE lease (digest BLOB PRIMARY KEY)")
    newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.close()
    assert store.get(key("a")) == Hit(b"a", {}, {})
    store.put(key("b"), Artifact(b"b"))
    assert [entry.digest for entry in store.scan()] == [key("a").digest, key("b").digest]
    assert connect(store.layout.index).execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)
