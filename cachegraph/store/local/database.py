"""The connections of this process to the index: a few that read, one that writes, and none across a fork.

A thread takes a reading connection that no other thread uses and gives it back. There are as many
as threads have read at the same time; up to MOST_IDLE idle ones stay open.

SQLite keeps the locks of a process in its memory: a child that inherits them would believe that it
holds locks that it does not hold. So every connection is closed before a fork, and opened again
when it is next used.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from cachegraph.forking import PausableLock, Rank, pause_at_forks
from cachegraph.store.failures import IndexDamaged, UnsharedIndex, is_damage, is_moved, is_suspicious
from cachegraph.store.local.connections import is_immutable, open_for_reading, open_for_writing
from cachegraph.store.paths import Identity, identity

if TYPE_CHECKING:
    from cachegraph.store.local.salvage import Replacement

MOST_IDLE = 4
CLEARED_SECONDS = 60.0
"""Seconds for which an index that passed its check is not checked again, whatever errors occur."""
_CHECKED_SIZE = 10**9  # bytes; checking them takes about a second
_SELECT_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
_NOTHING_NOW: Identity = (-1, -1)
"""The identity of no index, noted if the connection was closed during the read, so that it is repeated."""


class Database:
    """The index at `path`. Creating the object opens nothing. Methods raise sqlite3.Error and OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._here = threading.local()  # `read`: the Identity of the index that this thread read last
        self._idle: list[_Reader] = []
        self._readers: WeakSet[_Reader] = WeakSet()
        self._writer: _Writer | None = None
        self._writing = threading.RLock()  # reentrant: a signal handler may write too
        self._opening = threading.RLock()
        self._locks = PausableLock(self._writing), PausableLock(self._opening)
        self._written: Identity | None = None  # the file of the last transaction
        self._suspected: Identity | None = None
        self._proof = ""
        self._cleared: tuple[Identity, float] | None = None  # the file that passed its check, and when
        self._doubted: Identity | None = None

    def select_one(self, statement: str, parameters: tuple[object, ...]) -> tuple[Any, ...] | None:
        """Return the first row, or None, through sqlite3 alone.

        The row may be outdated if the index was replaced meanwhile: call `renew`. Raises
        sqlite3.Error and OSError.
        """
        return next(iter(self._select(statement, parameters, only_one=True)), None)

    def select_all(self, statement: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """Return every row, otherwise as select_one does."""
        return self._select(statement, parameters, only_one=False)

    def has_table(self, name: str) -> bool:
        """Return True if the index has that table, which one of an older release may lack."""
        return self.select_one(_SELECT_TABLE, (name,)) is not None

    def _select(
        self, statement: str, parameters: tuple[object, ...], only_one: bool
    ) -> list[tuple[Any, ...]]:
        reader = self._take_reader()
        self._here.read = None if reader is None else reader.identity
        if reader is None:
            return []
        try:
            return reader.select(statement, parameters, only_one)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if self._is_stale(reader):
                self._here.read = _NOTHING_NOW
                return []
            if reader.is_immutable:
                reader.is_outdated = True
                raise UnsharedIndex(f"reading the index {self.path} as immutable: {error}") from error
            if is_damage(error):
                self._suspected = reader.identity
            raise
        finally:
            self._give_back(reader)

    def renew(self) -> bool:
        """Return True if the index was replaced since `select_one` read it in this thread."""
        read: Identity | None = getattr(self._here, "read", None)
        now = identity(self.path)
        if read is None or read == now:
            return False
        self._here.read = None
        for reader in list(self._readers):
            reader.is_outdated = reader.is_outdated or reader.identity != now
        return True

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open one consistent view, on a connection of its own. Raises FileNotFoundError without an index."""
        connection = open_for_reading(self.path)
        if connection is None:
            raise FileNotFoundError(f"reading the index: there is none at {self.path}")
        try:
            connection.execute("BEGIN")
            yield connection
        except UnicodeDecodeError as error:  # of a message
            raise IndexDamaged(f"reading the index: {error}") from error
        finally:
            connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction and commit it at the end; create the index if there is none.

        Raises sqlite3.Error and OSError; the next use then opens a new connection.
        """
        with self._writing:
            try:
                connection = self._current_writer().connection
                connection.execute("BEGIN IMMEDIATE")
                self._check_if_doubted(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._close_writer()  # which rolls back
                raise

    def doubt(self) -> None:
        """Have the index checked before the next write, because a reader found a damaged row.

        SQLite can confuse the pages of two rows, and every write would spread the damage.
        """
        self._doubted = identity(self.path)

    def heals(self, error: BaseException) -> bool:
        """Return True if writing again may succeed: the index was moved, or will be replaced."""
        if is_moved(error):
            return True
        proof = str(error) if isinstance(error, IndexDamaged) else ""
        if not is_suspicious(error) or (not proof and self._was_cleared(self._written)):
            return False
        self._suspected, self._proof = self._written, proof
        return True

    def replace_if_damaged(self, suspected: Identity, proof: str = "") -> Replacement | None:
        """Replace the index if it is still the `suspected` one and is damaged; return what was done, or None.

        `proof` describes damage that is certain; if it is empty, the index is checked. Raises
        sqlite3.Error and OSError.
        """
        from cachegraph.store.local.salvage import replace_index  # only damage needs them
        from cachegraph.store.local.soundness import fault_of

        if suspected != identity(self.path):
            return None
        fault = proof or fault_of(self.path)
        if not fault:
            self._cleared = suspected, time.monotonic()
            return None
        return replace_index(self.path, suspected, fault)

    def close(self) -> None:
        """Close every connection of this process; the next use opens them again."""
        with self._writing, self._opening:
            self._close_all()

    def _take_reader(self) -> _Reader | None:
        while self._idle:
            try:
                reader = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if reader.pid != os.getpid():
                _INHERITED.append(reader)
            elif reader.is_outdated:
                reader.close()
            elif not reader.closed:
                return reader
        with self._opening:
            pause_at_forks(self, Rank.INDEX)
            connection = open_for_reading(self.path)
            if connection is None:
                return None
            reader = _Reader(connection, identity(self.path))
            self._readers.add(reader)
        return reader

    def _give_back(self, reader: _Reader) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(reader)
        else:
            reader.close()

    def _is_stale(self, reader: _Reader) -> bool:
        """Return True if a fork closed the connection, or its index was replaced or deleted."""
        return reader.closed or reader.identity != identity(self.path)

    def _current_writer(self) -> _Writer:
        self._replace_if_suspected()
        self._written = identity(self.path)
        if self._writer is not None and self._writer.pid != os.getpid():
            _INHERITED.append(self._writer)
            self._writer = None
        elif self._writer is not None and self._writer.identity == self._written:
            return self._writer
        self._close_writer()
        pause_at_forks(self, Rank.INDEX)
        self._writer = _Writer(self.path)
        return self._writer

    def _replace_if_suspected(self) -> None:
        suspected, self._suspected = self._suspected, None
        proof, self._proof = self._proof, ""
        if suspected is None or (not proof and self._was_cleared(suspected)):
            return
        self._close_writer()
        self.replace_if_damaged(suspected, proof)
        for reader in list(self._readers):  # they may be reading the quarantined index
            reader.is_outdated = True

    def _was_cleared(self, suspected: Identity | None) -> bool:
        """Return True if that index passed its check a moment ago: repeating it would take too long."""
        if self._cleared is None or self._cleared[0] != suspected:
            return False
        return time.monotonic() - self._cleared[1] < CLEARED_SECONDS

    def _check_if_doubted(self, connection: sqlite3.Connection) -> None:
        doubted, self._doubted = self._doubted, None
        if doubted is None or doubted != identity(self.path) or os.stat(self.path).st_size > _CHECKED_SIZE:
            return
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise IndexDamaged(f"checking the index {self.path}: {found}")

    def _close_writer(self) -> None:
        if self._writer is not None and self._writer.pid == os.getpid():
            self._writer.connection.close()
        self._writer = None

    def _close_all(self) -> None:
        for reader in list(self._readers):
            if reader.pid == os.getpid():
                reader.close()
        self._readers.clear()
        self._idle.clear()
        self._close_writer()

    def pause(self, seconds: float) -> None:
        """Wait for running operations, close all connections, and keep them closed until `resume`."""
        deadline = time.monotonic() + seconds
        for lock in self._locks:
            lock.pause(deadline - time.monotonic())
        self._close_all()

    def resume(self, in_child: bool) -> None:
        """Allow connections to be opened again."""
        for lock in self._locks:
            lock.resume(in_child)


class _Reader:
    """A reading connection. Its lock is needed only when a fork closes it from another thread."""

    def __init__(self, connection: sqlite3.Connection, identity: Identity | None) -> None:
        self._connection = connection
        self._lock = threading.RLock()  # reentrant, for a signal handler that forks
        self.identity = identity
        self.pid = os.getpid()
        self.closed = False
        self.is_outdated = False
        self.is_immutable = is_immutable(connection)
        finalize(self, _close_dropped, connection, self.pid).atexit = False

    def select(self, statement: str, parameters: tuple[object, ...], only_one: bool) -> list[tuple[Any, ...]]:
        with self._lock:
            cursor = self._connection.execute(statement, parameters)
            return cursor.fetchmany(1) if only_one else cursor.fetchall()

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._connection.close()


class _Writer:
    """The writing connection of the process."""

    def __init__(self, path: Path) -> None:
        self.connection = open_for_writing(path)
        self.identity = identity(path)
        self.pid = os.getpid()
        finalize(self, _close_dropped, self.connection, self.pid).atexit = False


def _close_dropped(connection: sqlite3.Connection, pid: int) -> None:
    """Close the connection of a cache that was dropped: Python warns of those that it closes itself."""
    if pid == os.getpid():
        connection.close()
    else:
        _INHERITED.append(connection)


_INHERITED: list[object] = []  # connections of the parent process, which a child must not even close
