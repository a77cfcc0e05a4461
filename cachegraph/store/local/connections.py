"""Opening one connection to the index, while other processes may be opening it too.

Nothing in cachegraph opens the index file itself: closing such a descriptor would drop every POSIX
lock that SQLite holds for this process. Functions raise sqlite3.Error and OSError.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cachegraph.store.entry import LARGEST_ENTRY
from cachegraph.store.failures import IndexDamaged, sqlite_code
from cachegraph.store.paths import FILE_MODE, file_size
from cachegraph.store.trust import PRIVATE, Guard, Trust

COMPANIONS = ("", "-wal", "-shm")
READ_TIMEOUT = 2.0
WRITE_TIMEOUT = 10.0
SETUP_TIMEOUT = 1.0

_PRAGMAS = (
    "PRAGMA mmap_size = 0",  # a file cut short under a mapping kills the process
    "PRAGMA cell_size_check = ON",
    "PRAGMA trusted_schema = OFF",
)
_WRITE_PRAGMAS = ("PRAGMA synchronous = NORMAL", "PRAGMA foreign_keys = ON")
_PLAIN = frozenset(b"/-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Bytes of a path that a URI may hold as they are."""
_PAUSES = (0.001, 0.005, 0.02)
_FILES_OF_AN_INDEX = 4
_IMMUTABLE = "mode=ro&immutable=1"
_CANNOT_SHARE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_CANNOT_SHARE_EXTENDED = frozenset(
    {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMMAP}
)


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """Return a connection that never writes to the index, or None if there is no index yet.

    SQLite needs its two companion files (-wal, -shm) even to read, and creates them if they are
    missing. If it cannot, in a read-only directory or on a full disk, nobody else can write either,
    and the index is read as an immutable file (is_immutable). Should another process write after
    all, the checksums of the records protect the reader, and errors of SQLite are no proof of
    damage. If this process has no descriptors left, others may well write: that raises.
    """
    for pause in (*_PAUSES, None):
        try:
            return _opened(path, "mode=ro")
        except sqlite3.OperationalError as error:
            if not path_exists(path):
                return None
            if not _cannot_share(error):
                raise
            if not _is_plain_failure(error) or not _may_write_in(path.parent):
                break
            if pause is not None:  # the last process to close the index may be removing the companions
                time.sleep(pause)
            elif _lacks_descriptors() or _has_log(path):
                raise
    return _opened(path, _IMMUTABLE)


def is_immutable(connection: sqlite3.Connection) -> bool:
    """Return True if the connection reads the index as an immutable file."""
    return isinstance(connection, _ImmutableConnection)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Return a connection to the index, in WAL mode and migrated; create the index if it is missing."""
    from cachegraph.store.local.migrations import migrate

    _guard_of(path).make_directory(path.parent)
    _make_file(path)
    connection = _connect(path, "mode=rwc", SETUP_TIMEOUT)
    with closed_on_error(connection):
        _enter_wal_mode(connection, path)
        connection.execute(f"PRAGMA busy_timeout = {WRITE_TIMEOUT * 1000:.0f}")
        _run_pragmas(connection, _PRAGMAS + _WRITE_PRAGMAS)
        migrate(connection)
    return connection


def open_unchanged(path: Path) -> sqlite3.Connection:
    """Return a connection that may write to the index, without migrating it."""
    connection = _connect(path, "mode=rw", READ_TIMEOUT)
    with closed_on_error(connection):
        _run_pragmas(connection, _PRAGMAS)
    return connection


def open_damaged(path: Path) -> sqlite3.Connection:
    """Return a connection to a damaged index that ignores damage in the schema."""
    connection = _connect(path, "mode=ro", READ_TIMEOUT)
    with closed_on_error(connection):
        _run_pragmas(connection, (*_PRAGMAS, "PRAGMA writable_schema = ON"))  # ignores what it cannot parse
    return connection


def open_for_update(path: Path, timeout: float) -> sqlite3.Connection | None:
    """Return a connection that writes to the index, migrated, or None if there is none."""
    from cachegraph.store.local.migrations import migrate

    if not path_exists(path):
        return None
    connection = _if_set_up(_connect(path, "mode=rw", timeout), ("PRAGMA synchronous = NORMAL",))
    if connection is not None:
        with closed_on_error(connection):
            migrate(connection)
    return connection


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close `connection` if the block raises."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def path_exists(path: Path) -> bool:
    """Return True if `path` exists. Raises OSError if that cannot be told."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class _ImmutableConnection(sqlite3.Connection):
    """A connection that reads the index as an immutable file."""


def _cannot_share(error: sqlite3.Error) -> bool:
    code = sqlite_code(error)
    return code & 0xFF in _CANNOT_SHARE or code in _CANNOT_SHARE_EXTENDED


def _is_plain_failure(error: sqlite3.Error) -> bool:
    """Return True if SQLite could not open a file, for lack of a permission or of a descriptor."""
    return sqlite_code(error) & 0xFF in _CANNOT_SHARE


def _may_write_in(directory: Path) -> bool:
    return os.access(directory, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _lacks_descriptors() -> bool:
    """Return True if this process cannot open as many files now as SQLite needs."""
    taken: list[int] = []
    try:
        taken.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_FILES_OF_AN_INDEX))
    except OSError:
        return True
    finally:
        for descriptor in taken:
            os.close(descriptor)
    return False


def _has_log(path: Path) -> bool:
    """Return True if the log holds changes, which a connection to an immutable file does not see."""
    return file_size(Path(f"{path}-wal")) > 0


def _opened(path: Path, query: str) -> sqlite3.Connection | None:
    return _if_set_up(_connect(path, query, READ_TIMEOUT), _PRAGMAS)


def _if_set_up(connection: sqlite3.Connection, pragmas: tuple[str, ...]) -> sqlite3.Connection | None:
    with closed_on_error(connection):
        if connection.execute("PRAGMA user_version").fetchone() != (0,) or _has_tables(connection):
            _run_pragmas(connection, pragmas)
            return connection
    connection.close()
    return None


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Return True if the index has tables; a schema number of 0 may be a flipped bit."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def _connect(path: Path, query: str, timeout: float) -> sqlite3.Connection:
    """Open an index, and raise Untrusted unless it is trusted both before SQLite reads it and afterwards."""
    _check_trust(path)
    connection = sqlite3.connect(
        f"{_uri(path)}?{query}",
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        factory=_ImmutableConnection if query == _IMMUTABLE else sqlite3.Connection,
    )
    # Without the limit, a damaged row could make SQLite allocate a gigabyte.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ENTRY)
    connection.text_factory = _text
    with closed_on_error(connection):
        _check_trust(path)
    return connection


def _uri(path: Path) -> str:
    """Return the URI of an absolute path. `path.as_uri()` would import urllib, which takes 2 ms."""
    return "file://" + "".join(chr(it) if it in _PLAIN else f"%{it:02X}" for it in os.fsencode(path))


def _text(content: bytes) -> str:
    """Decode a text even if one of its bits was flipped, so that one damaged row does not hide the others."""
    return content.decode(errors="replace")


def _check_trust(path: Path) -> None:
    """Raise Untrusted unless the index, its companions and their directories belong to this user alone.

    Checks names instead of descriptors, because SQLite opens the files itself; nobody else can
    change names in directories that pass the check.
    """
    guard = _guard_of(path)
    for companion in COMPANIONS:
        file = Path(f"{path}{companion}")
        with suppress(FileNotFoundError, NotADirectoryError):
            guard.check_link(file)
            _refuse_special(file)


def _refuse_special(file: Path) -> None:
    """Raise OSError for anything but a regular file.

    Opening a pipe or a device could block forever, and SQLite waits 10 s for a directory in place of a
    companion. A directory counts as a file that cannot be written.
    """
    mode = os.lstat(file).st_mode
    if not stat.S_ISREG(mode):
        number = errno.EPERM if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, "not a regular file", os.fspath(file))


def _guard_of(path: Path) -> Guard:
    return Guard(path.parent.parent, Trust.of(PRIVATE))


def _run_pragmas(connection: sqlite3.Connection, pragmas: tuple[str, ...]) -> None:
    """Run statements that make SQLite read the schema.

    Raises IndexDamaged if its error message cannot be decoded.
    """
    try:
        for pragma in pragmas:
            connection.execute(pragma)
    except UnicodeDecodeError as error:
        raise IndexDamaged(f"reading the schema of the index: {error}") from error


def _make_file(path: Path) -> None:
    """Create the index file for its owner only; SQLite gives its companion files the same mode."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, FILE_MODE)  # whatever the umask is
    finally:
        os.close(descriptor)


def _enter_wal_mode(connection: sqlite3.Connection, path: Path) -> None:
    """Switch to WAL mode. If two processes do so at once, one gets "locked" without SQLite's busy timeout.

    Processes that have the index open in WAL mode lock it as long as they live, which matters to a
    connection in another mode only: if damage is why this one is, then this raises IndexDamaged.
    """
    begin = time.monotonic()
    deadline = begin + WRITE_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has an effect on a new index only
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            fault = _fault_of_locked(connection, path) if time.monotonic() > begin + SETUP_TIMEOUT else ""
            if fault:
                raise IndexDamaged(f"opening the index {path}: {fault}, and open elsewhere") from error
        time.sleep(0.002 + os.urandom(1)[0] / 10_000)


def _fault_of_locked(connection: sqlite3.Connection, path: Path) -> str:
    """Return why nobody can switch a locked index to WAL mode; empty if its owner may do so yet.

    An index gets its schema number after the switch and is never switched back.
    """
    if not os.stat(path).st_size:
        return "it is empty"
    try:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
        return ""
    if not number or mode == "wal":
        return ""
    return f"it has schema {number}, but its header names the journal mode {mode}"


def _is_busy(error: sqlite3.Error) -> bool:
    return sqlite_code(error) & 0xFF == sqlite3.SQLITE_BUSY
