"""A damaged index is set aside, and what can be read of it goes into the one that takes its place.

    <directory>/v1/index.sqlite.damaged-<time>-<unique>     the index, with its -wal; kept for a look (pruning.py)

Whoever has it open goes on reading it; who opens an index next finds the new one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachegraph.store.paths import DAMAGED_SUFFIX, Identity, identity, unique_name

if TYPE_CHECKING:
    from logging import Logger

_KEPT = ("", "-wal")
_FORGOTTEN = "-shm"  # made anew from the log by whoever opens it, and may be what is damaged


class Replacement(NamedTuple):
    """Where the damaged index is now, what was wrong with it, and how many of its entries the new one has."""

    aside: Path
    fault: str
    kept: int


def replace(path: Path, damaged: Identity, fault: str) -> Replacement | None:
    """Set the index at `path` aside if it still is the damaged one, and salvage what it has; return what was done.

    None if somebody else has replaced it. Says so in the log. Raises OSError; what cannot be salvaged is built again.
    """
    from cachegraph.store.local.salvage import salvage

    aside = set_aside(path, damaged)
    if aside is None:
        return None
    kept = salvage(aside, path)
    _log().warning(
        "the index %s was damaged (%s): set aside as %s, %d entries kept", path, fault, aside.name, kept
    )
    return Replacement(aside, fault, kept)


def set_aside(path: Path, damaged: Identity) -> Path | None:
    """Rename the index at `path`, with its log, if it still is the damaged one; return where it is. Raises OSError."""
    with _directory_lock(path.parent):
        if identity(path) != damaged:
            return None
        stamp = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{unique_name('')}"
        aside = Path(f"{path}{DAMAGED_SUFFIX}{stamp}")
        for companion in _KEPT:
            with suppress(FileNotFoundError):
                os.rename(f"{path}{companion}", f"{aside}{companion}")
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{_FORGOTTEN}")
    return aside


@contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    """Hold the one lock that keeps two processes from setting aside at once; it lives in no file and ends with us."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _log() -> Logger:
    import logging

    return logging.getLogger("cachegraph")
