"""The table `cachegraph_file` of a PostgreSQL database, which the first writer creates.

    name     text, primary key; ordered by bytes, so that names with one beginning are neighbours
    size     bigint, of the content
    content  bytea, at most LARGEST bytes, or NULL if an object store has it
    place    text, the content's name in the object store, or NULL
    written  timestamptz

Removing a lease notifies the channel `cachegraph_` and the MD5 of its name.
Version history: none yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5
from typing import Any

import psycopg
from sqlalchemy import Connection, create_engine, event, make_url, text
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from cachegraph.named_tuples import NamedTuple
from cachegraph.remote_url import RemoteURL
from cachegraph.store.paths import LEASES
from cachegraph.store.remote.files import RemoteError, RemoteFile, WriteRefused
from cachegraph.store.remote.postgresql_connection import connect

_CREATE = (
    "SELECT pg_advisory_xact_lock(hashtext('cachegraph_file'))",  # else of two creators one has an error
    'CREATE TABLE IF NOT EXISTS cachegraph_file (name text COLLATE "C" PRIMARY KEY, size bigint NOT NULL,'
    " content bytea, place text, written timestamptz NOT NULL DEFAULT now())",
)
_PUT = (
    "WITH old AS (SELECT place FROM cachegraph_file WHERE name = :name)"
    " INSERT INTO cachegraph_file (name, size, content, place) VALUES (:name, :size, :content, :place)"
    " ON CONFLICT (name) DO {} RETURNING (SELECT place FROM old)"
)
_CREATE_ROW = _PUT.format("NOTHING")
_REPLACE_ROW = _PUT.format(
    "UPDATE SET size = excluded.size, content = excluded.content, place = excluded.place, written = now()"
)
_READ = "SELECT size, CASE WHEN size <= :most THEN content END, place FROM cachegraph_file WHERE name = :name"
_EXISTS = "SELECT 1 FROM cachegraph_file WHERE name = :name"
_LIST = (
    "SELECT name, size, extract(epoch FROM written)::float8 FROM cachegraph_file"
    " WHERE name >= :prefix AND name < :end"
)
_REMOVE = (
    "DELETE FROM cachegraph_file WHERE name = :name RETURNING place,"
    f" CASE WHEN starts_with(name, '{LEASES}/') THEN pg_notify('cachegraph_' || md5(name), '') END"
)
_LAST = chr(0x10FFFF)
_NO_TABLE = "42P01"
_REFUSALS = frozenset({"42501", "25006", "53100"})
"""No right, a transaction that only reads (as on a standby), no space."""


class FileRow(NamedTuple):
    """A file: its `size`, and its `content` or the `place` where an object store has it.

    Both are None if the content is longer than the reader allowed.
    """

    size: int
    content: bytes | None
    place: str | None


class PostgreSQLTable:
    """The table in the database of a URL, for this process. Methods raise RemoteError."""

    def __init__(self, url: RemoteURL) -> None:
        self._location = url.location
        native = make_url(url.url).set(drivername="postgresql")
        given = native.render_as_string(hide_password=False)
        self._engine = create_engine(
            native.set(drivername="postgresql+psycopg"),
            creator=lambda: connect(given, url.timeout),
            use_native_hstore=False,
            isolation_level="AUTOCOMMIT",  # a statement is then one request, instead of three
            pool_size=1,
            max_overflow=7,
            pool_timeout=url.timeout,
        )
        event.listen(self._engine, "checkout", _refuse_closed)

    def read(self, name: str, most: int) -> FileRow | None:
        """Return a row, without its content if that is longer than `most`; None if there is none."""
        found = self._rows(_READ, name=name, most=most)
        return FileRow(*found[0]) if found else None

    def create(self, name: str, row: FileRow) -> bool:
        """Add a row; return False if the file has one."""
        return bool(self._put(_CREATE_ROW, name, row))

    def replace(self, name: str, row: FileRow) -> str | None:
        """Add or replace a row; return the place of the replaced content, if it had one."""
        [(replaced,)] = self._put(_REPLACE_ROW, name, row)
        return None if replaced is None else str(replaced)

    def has(self, name: str) -> bool:
        """Return True if the file has a row."""
        return bool(self._rows(_EXISTS, name=name))

    def remove(self, name: str) -> FileRow | None:
        """Remove a row and return it without size and content; None if there was none."""
        found = self._rows(_REMOVE, name=name)
        return FileRow(0, None, found[0][0]) if found else None

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`."""
        for name, size, written in self._rows(_LIST, prefix=prefix, end=f"{prefix}{_LAST}"):
            yield RemoteFile(name, size, written)

    def wait(self, name: str, seconds: float) -> None:
        """Return when the row of a lease is removed, or after `seconds`.

        A pooler between this process and the server may withhold the message: then after `seconds`.
        """
        channel = f"cachegraph_{md5(name.encode(), usedforsecurity=False).hexdigest()}"
        with self._connected() as connection:
            connection.exec_driver_sql(f"LISTEN {channel}")
            # Asked only now: from here on no removal goes unnoticed.
            if connection.execute(text(_EXISTS), {"name": name}).first():
                listening: Any = connection.connection.driver_connection
                list(listening.notifies(timeout=seconds, stop_after=1))
            connection.exec_driver_sql("UNLISTEN *")

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _put(self, statement: str, name: str, row: FileRow) -> list[tuple[Any, ...]]:
        values = {"name": name, **row._asdict()}
        try:
            return self._answer(statement, values)
        except RemoteError as error:
            if not _has_no_table(error):
                raise
        self._create_table()
        return self._answer(statement, values)

    def _rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; none if nobody has created the table yet."""
        try:
            return self._answer(statement, values)
        except RemoteError as error:
            if _has_no_table(error):
                return []
            raise

    def _answer(self, statement: str, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        with self._connected() as connection:
            return [tuple(row) for row in connection.execute(text(statement), values)]

    def _create_table(self) -> None:
        with self._connected() as connection:
            connection.exec_driver_sql("BEGIN")
            for statement in _CREATE:
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql("COMMIT")

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield a connection, each of whose statements is a transaction; raise errors as RemoteErrors."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except (SQLAlchemyError, psycopg.Error) as error:
            what = str(getattr(error, "orig", None) or error)
            kind = WriteRefused if _state(error) in _REFUSALS else RemoteError
            raise kind(self._location, what.strip().partition("\n")[0]) from error


def _refuse_closed(connection: Any, *_: object) -> None:
    """Raise DisconnectionError for a connection that the server has closed: SQLAlchemy makes another."""
    if connection.was_closed():
        raise DisconnectionError("closed by the server")


def _has_no_table(error: RemoteError) -> bool:
    return _state(error.__cause__) == _NO_TABLE


def _state(error: object) -> str:
    """Return the code that PostgreSQL gave an error; empty if it gave none."""
    return str(getattr(getattr(error, "orig", None) or error, "sqlstate", "") or "")
