"""What an error of the disk or of SQLite means to the cache: damage that can be healed, or an access that failed."""

from __future__ import annotations

import errno
import sqlite3

from cachegraph.errors import MissingBlob, SourceError
from cachegraph.store.entry import Miss
from cachegraph.store.shared.files import Oversized
from cachegraph.store.trust import Untrusted

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_DAMAGE_EXTENDED_CODES = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
_READ_ONLY_CODES = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_NOT_READ = (sqlite3.Error, OSError, MemoryError, RecursionError)
_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})
_READ_ONLY_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class UnsharedIndex(sqlite3.OperationalError):
    """What was read of an index taken for immutable is not sound: somebody writes to it after all."""


class IndexDamaged(sqlite3.DatabaseError):
    """The index does not hold what was just written, or fails its check, without SQLite having noticed."""


def is_damage(error: BaseException) -> bool:
    """Return whether the index, and not the access to it, seems to be at fault; soundness.py then tells whether it is.

    The statements are fixed, so one that SQLite finds fault with (SQLITE_ERROR) met a schema that was damaged.
    """
    if isinstance(error, UnicodeDecodeError):  # SQLite quoted a damaged schema in its message
        return True
    if not isinstance(error, sqlite3.Error):
        return False
    extended = sqlite_code(error)
    if extended & 0xFF in _DAMAGE_CODES or extended in _DAMAGE_EXTENDED_CODES:
        return True
    return isinstance(error, IndexDamaged | sqlite3.DataError) or "Could not decode" in str(error)


def is_suspicious(error: BaseException) -> bool:
    """Return whether damage may be why a write failed: a constraint or a header may say what nobody wrote, too."""
    if is_damage(error):
        return True
    code = sqlite_code(error) if isinstance(error, sqlite3.Error) else 0
    return code & 0xFF == sqlite3.SQLITE_CONSTRAINT or code == sqlite3.SQLITE_READONLY


def is_moved(error: BaseException) -> bool:
    """Return whether the index was renamed or deleted under an open connection."""
    return isinstance(error, sqlite3.Error) and sqlite_code(error) == sqlite3.SQLITE_READONLY_DBMOVED


def miss_of(error: Exception) -> Miss:
    """Return the miss that an error met while reading is: damaged, unreadable or untrusted."""
    if isinstance(error, Untrusted):
        return Miss("untrusted", str(error))
    unreadable = isinstance(error, _NOT_READ) and not isinstance(error, Oversized) and not is_damage(error)
    return Miss("unreadable" if unreadable else "damaged", f"{type(error).__name__}: {error}")


def load_failure(error: Exception) -> Miss:
    """Return the miss that an entry is whose payload could not be loaded: damaged, unreadable or untrusted."""
    from cachegraph.pickling import UntrustedPickle  # imports pickle, which not every entry needs

    reason = "untrusted" if isinstance(error, UntrustedPickle) else "unreadable"
    if isinstance(error, MissingBlob):
        reason = "damaged"
    return Miss(reason, f"loading it raised {type(error).__name__}: {error}")


def store_failure_reason(error: BaseException) -> str:
    """Return full, read-only, untrusted, busy, damaged, io-error, source or refused for an error met while writing."""
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
    """Return SQLite's extended result code, 0 when the error comes from the Python module itself."""
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
