"""The directory on this node for the index of a cache directory on a network file system.

    <the user's cache directory>/nodes/<digest>             if that is on a local file system
    <temporary directory>/cachegraph-<uid>/<digest>         otherwise, in the first one that is local

The digest is that of the path of the cache directory. Anybody may create directories in a temporary
directory, so one there is used only if it is a directory, belongs to this user and is closed to
others: whoever can write an index decides what its readers load.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cachegraph.errors import NoDirectoryError
from cachegraph.fingerprint.primitives import digest
from cachegraph.store.filesystem import file_system
from cachegraph.store.paths import DIRECTORY_MODE, unique_name
from cachegraph.user_directories import user_cache_directory

_PLACES = ("/tmp", "/var/tmp", "/dev/shm")


def node_directory(directory: Path) -> Path:
    """Return the directory on this node for the index of `directory`.

    Creates its parent in a temporary directory. If there is no safe place, the name is unique, so
    that only this process uses it.
    """
    name = digest(os.fsencode(os.path.realpath(directory))).hex()
    with suppress(NoDirectoryError):
        user = Path(user_cache_directory())
        if file_system(user).local:
            return user / "nodes" / name
    places = (*_temporary(), *_PLACES)
    for parent in dict.fromkeys(places):
        if os.path.isdir(parent) and file_system(Path(parent)).local:
            ours = _own_directory(Path(parent) / f"cachegraph-{os.geteuid()}")
            if ours is not None:
                return ours / name
    return Path(places[0]) / unique_name("cachegraph-")


def _temporary() -> Iterator[str]:
    """Yield the directory for temporary files, if there is one that this user may write to."""
    with suppress(FileNotFoundError):
        yield tempfile.gettempdir()


def _own_directory(path: Path) -> Path | None:
    """Create `path`, or return None unless it is a directory of this user and closed to others."""
    try:
        os.mkdir(path, DIRECTORY_MODE)
    except FileExistsError:
        pass
    except OSError:
        return None
    try:
        status = os.lstat(path)
    except OSError:
        return None
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return path if ours else None
