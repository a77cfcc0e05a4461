"""Files in PostgreSQL: a row each of the table `cachegraph_file`, which the first writer creates.

    name     text, primary key
    content  bytea, at most LARGEST bytes
    written  timestamptz

Version history: none yet.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cachegraph.remote_url import RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.remote.files import RemoteError, RemoteFile
from cachegraph.store.remote.per_process import PerProcess

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LARGEST = 256 * 2**20
_CREATE = (
    "CREATE TABLE IF NOT EXISTS cachegraph_file"
    " (name text PRIMARY KEY, content bytea NOT NULL, written timestamptz NOT NULL DEFAULT now())"
)
_INSERT = "INSERT INTO cachegraph_file (name, content) VALUES (:name, :content) ON CONFLICT (name) DO "
_READ = (
    "SELECT octet_length(content) AS size,"
    " CASE WHEN octet_length(content) <= :most THEN content END AS content"
    " FROM cachegraph_file WHERE name = :name"
)
_LIST = (
    "SELECT name, octet_length(content), extract(epoch FROM written)::float8 FROM cachegraph_file"
    " WHERE starts_with(name, :prefix)"
)
_NO_TABLE = "42P01"


class PostgreSQLFiles:
    """The files in the database of a URL."""

    def __init__(self, url: RemoteURL) -> None:
        self.location = url.location
        self.may_write = url.may_write
        self._url = url
        self._engine = PerProcess(self._connect)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""
        found = self._rows(_READ, name=name, most=most)
        if not found:
            raise FileNotFoundError(errno.ENOENT, "no such row", f"{self.location} {name}")
        [(size, content)] = found
        if content is None:
            raise Oversized(f"{self.location} {name}", size, most)
        return bytes(content)

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file in one step."""
        self._put(name, content, "UPDATE SET content = excluded.content, written = now()")

    def create(self, name: str, content: bytes) -> bool:
        """Create a file in one step; return False if there is one."""
        return self._put(name, content, "NOTHING")

    def remove(self, name: str) -> bool:
        """Remove a file; return False if there was none."""
        return bool(self._rows("DELETE FROM cachegraph_file WHERE name = :name RETURNING 1", name=name))

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`."""
        for name, size, written in self._rows(_LIST, prefix=prefix):
            yield RemoteFile(name, size, written)

    def close(self) -> None:
        """Close the connections of this process."""
        engine = self._engine.forget()
        if engine is not None:
            engine.dispose()

    def _put(self, name: str, content: bytes, conflict: str) -> bool:
        if len(content) > LARGEST:
            raise Oversized(f"{self.location} {name}", len(content), LARGEST)
        from sqlalchemy import text

        with self._connected() as connection:
            connection.execute(text(_CREATE))
            found = connection.execute(text(_INSERT + conflict), {"name": name, "content": content})
            return bool(found.rowcount)

    def _rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; none if nobody has created the table yet."""
        from sqlalchemy import text
        from sqlalchemy.exc import ProgrammingError

        try:
            with self._connected() as connection:
                return [tuple(row) for row in connection.execute(text(statement), values)]
        except RemoteError as error:
            cause = error.__cause__
            if isinstance(cause, ProgrammingError) and getattr(cause.orig, "sqlstate", "") == _NO_TABLE:
                return []
            raise

    def _connect(self) -> Engine:
        from sqlalchemy import create_engine, make_url

        from cachegraph.store.remote.postgresql_connection import connect

        url = make_url(self._url.url).set(drivername="postgresql+psycopg")
        given = url.set(drivername="postgresql").render_as_string(hide_password=False)
        return create_engine(
            url,
            creator=lambda: connect(given, self._url.timeout),
            use_native_hstore=False,
            pool_size=1,
            max_overflow=7,
            pool_timeout=self._url.timeout,
        )

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Yield a connection in a transaction; raise the library's errors as RemoteErrors."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._engine.get().begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            what = str(getattr(error, "orig", None) or error)
            raise RemoteError(self.location, what.strip().partition("\n")[0]) from error
