"""Files in PostgreSQL (postgresql_table.py); large ones in an object store, if the URL names one.

The object is named by its content, as a blob is, and written before the row that refers to it. So a
row that is replaced never shows a part of another content. An object whose row was never written stays
until somebody stores the same content, or removes it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from cachegraph.fingerprint.primitives import content_name
from cachegraph.remote_url import RemoteURL
from cachegraph.store.entry import INLINE_LIMIT
from cachegraph.store.files import Oversized
from cachegraph.store.paths import blob_place
from cachegraph.store.remote.files import RemoteError, RemoteFile, RemoteFiles
from cachegraph.store.remote.per_process import PerProcess

if TYPE_CHECKING:
    from cachegraph.store.remote.postgresql_table import FileRow, PostgreSQLTable

LARGEST = 256 * 2**20


class PostgreSQLFiles:
    """The files in the database of a URL, and in `objects` what is longer than INLINE_LIMIT."""

    def __init__(self, url: RemoteURL, objects: RemoteFiles | None = None) -> None:
        self.location = url.location
        self.may_write = url.may_write
        self._url = url
        self._objects = objects
        self._table = PerProcess(self._open)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""
        row = self._table.get().read(name, most)
        if row is None:
            raise FileNotFoundError(errno.ENOENT, "no such row", f"{self.location} {name}")
        if row.size > most:
            raise Oversized(f"{self.location} {name}", row.size, most)
        if row.place is not None:
            return self._named_objects().read(row.place, most)
        return bytes(row.content or b"")

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file in one step."""
        row = self._row(name, content)
        if row.place is not None:
            self._named_objects().write(row.place, content)
        replaced = self._table.get().replace(name, row)
        if replaced not in (None, row.place):
            self._remove_object(replaced)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file in one step; return False if there is one."""
        row = self._row(name, content)
        if row.place is not None:
            if self._table.get().has(name):
                return False
            self._named_objects().create(row.place, content)
        return self._table.get().create(name, row)

    def remove(self, name: str) -> bool:
        """Remove a file; return False if there was none."""
        row = self._table.get().remove(name)
        if row is not None:
            self._remove_object(row.place)
        return row is not None

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`."""
        return self._table.get().listed(prefix)

    def wait(self, name: str, seconds: float) -> None:
        """Return when the file of a lease is removed, or else after `seconds`."""
        self._table.get().wait(name, seconds)

    def close(self) -> None:
        """Close the connections of this process."""
        table = self._table.forget()
        if table is not None:
            table.close()
        if self._objects is not None:
            self._objects.close()

    def _open(self) -> PostgreSQLTable:
        from cachegraph.store.remote.postgresql_table import PostgreSQLTable  # imports SQLAlchemy

        return PostgreSQLTable(self._url)

    def _row(self, name: str, content: bytes) -> FileRow:
        """Return the row for `content`. Raises Oversized for more than the table may hold."""
        from cachegraph.store.remote.postgresql_table import FileRow

        if self._objects is not None and len(content) > INLINE_LIMIT:
            return FileRow(len(content), None, blob_place(content_name(content)))
        if len(content) > LARGEST:
            raise Oversized(f"{self.location} {name}", len(content), LARGEST)
        return FileRow(len(content), content, None)

    def _named_objects(self) -> RemoteFiles:
        if self._objects is None:
            advice = "large files are in an object store; name it in the URL, as ?content=s3://BUCKET/PREFIX"
            raise RemoteError(self.location, advice)
        return self._objects

    def _remove_object(self, place: str | None) -> None:
        """Remove an object that no row refers to any more; one that cannot be removed is only litter."""
        if place is not None and self._objects is not None:
            with suppress(OSError):
                self._objects.remove(place)
