"""Classification of errors of the disk and of SQLite: damage that can be healed, or a failed access."""

from __future__ import annotations

import errno
import sqlite3

from cachegraph.errors import MissingBlob, SourceError
from cachegraph.store.entry import Miss
from cachegraph.store.files import Oversized
from cachegraph.store.trust import Untrusted

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_DAMAGE_EXTENDED_CODES = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
_READ_ONLY_CODES = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_NOT_READ = (sqlite3.Error, OSError, MemoryError, RecursionError)
_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
_READ_ONLY_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class UnsharedIndex(sqlite3.OperationalError):
    """An error in an index that was read as immutable: another process writes to it after all."""


class IndexDamaged(sqlite3.DatabaseError):
    """Damage that SQLite did not notice: the index lost what was just written, or fails its check."""


def is_damage(error: BaseException) -> bool:
    """Return True if the index, not the access to it, seems to be at fault; soundness.py then makes sure.

    The statements are constant, so SQLITE_ERROR means that the schema is damaged.
    """
    if isinstance(error, UnicodeDecodeError):  # in SQLite's message, which quotes a damaged schema
        return True
    if not isinstance(error, sqlite3.Error):
        return False
    extended = sqlite_code(error)
    if extended & 0xFF in _DAMAGE_CODES or extended in _DAMAGE_EXTENDED_CODES:
        return True
    return isinstance(error, IndexDamaged | sqlite3.DataError) or "Could not decode" in str(error)


def is_suspicious(error: BaseException) -> bool:
    """Return True if damage may be why a write failed, also as a constraint or a read-only database."""
    if is_damage(error):
        return True
    code = sqlite_code(error) if isinstance(error, sqlite3.Error) else 0
    return code & 0xFF == sqlite3.SQLITE_CONSTRAINT or code == sqlite3.SQLITE_READONLY


def is_moved(error: BaseException) -> bool:
    """Return True if the index was renamed or deleted under an open connection."""
    return isinstance(error, sqlite3.Error) and sqlite_code(error) == sqlite3.SQLITE_READONLY_DBMOVED


def miss_of(error: Exception) -> Miss:
    """Return the miss for an error while reading: damaged, unreadable or untrusted."""
    if isinstance(error, Untrusted):
        return Miss("untrusted", str(error))
    unreadable = isinstance(error, _NOT_READ) and not isinstance(error, Oversized) and not is_damage(error)
    return Miss("unreadable" if unreadable else "damaged", f"{type(error).__name__}: {error}")


def load_failure(error: Exception) -> Miss:
    """Return the miss for an error while loading a payload: damaged, unreadable or untrusted."""
    from cachegraph.pickling import UntrustedPickle  # imports pickle, which a hit may not need

    reason = "untrusted" if isinstance(error, UntrustedPickle) else "unreadable"
    if isinstance(error, MissingBlob):
        reason = "damaged"
    return Miss(reason, f"loading it raised {type(error).__name__}: {error}")


def store_failure_reason(error: BaseException) -> str:
    """Return full, read-only, untrusted, busy, damaged, io-error, source or refused for a failed put."""
    if isinstance(error, Untrusted):
        return "untrusted"
    if isinstance(error, SourceError):
        return "source"
    if isinstance(error, sqlite3.Error):
        return _sqlite_reason(error)
    if not isinstance(error, OSError):
        return "refused"
    if error.errno in _FULL_ERRNOS:
        return "full"
    return "read-only" if error.errno in _READ_ONLY_ERRNOS else "io-error"


def sqlite_code(error: sqlite3.Error) -> int:
    """Return SQLite's extended result code; 0 if the error comes from the Python module itself."""
    return getattr(error, "sqlite_errorcode", None) or 0


def _sqlite_reason(error: sqlite3.Error) -> str:
    code = sqlite_code(error) & 0xFF
    if is_damage(error):
        return "damaged"
    if code == sqlite3.SQLITE_FULL or sqlite_code(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return "full"
    if code in _BUSY_CODES:
        return "busy"
    return "read-only" if code in _READ_ONLY_CODES else "io-error"
