"""The source of packages that keys describe as a whole: its digest, and a check that it is still
what was imported."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from cachegraph.errors import SourceError
from cachegraph.fingerprint.primitives import strong_digest

if TYPE_CHECKING:
    from pathlib import Path

_IMPORTED = time.time()


@lru_cache(maxsize=16)
def source_digest(directory: Path) -> bytes:
    """Return the BLAKE2b-256 of the relative paths and contents of every *.py file under `directory`.

    Its location, file times and listing order do not matter. Each directory is read once per process, since
    the imported source counts. Raises SourceError if there is nothing to read.
    """
    root = os.fspath(directory)
    try:
        files = sorted((path[len(root) + 1 :].replace(os.sep, "/"), path) for path in _source_files(root))
        pieces = [
            piece for name, path in files for piece in (name.encode("utf-8", "surrogateescape"), _read(path))
        ]
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    if not pieces:
        raise SourceError("reading the source under", directory, "no *.py file")
    prefixed = (part for piece in pieces for part in (len(piece).to_bytes(8, "little"), piece))
    return strong_digest(b"".join(prefixed))


def check_unchanged(directory: Path, since: float) -> None:
    """Raise SourceError if a *.py file under `directory` was changed after `since` (seconds since 1970).

    After an upgrade under a running process, the imported code is no longer what `source_digest` reads. The
    time compared is that of the inode's last change, which installers that preserve modification times update
    too. From then on keys rely on that source (check_relied_on).
    """
    try:
        files = list(_source_files(os.fspath(directory)))
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    _check(directory, files, since)
    _relied_on[directory] = files, since


def check_relied_on() -> None:
    """Raise SourceError if source that keys rely on (check_unchanged) was changed since.

    Modules are imported on first use, so an artifact may come from other code than its key describes, even if
    the edit was undone meanwhile.
    """
    for directory, (files, since) in _relied_on.items():
        _check(directory, files, since)


_relied_on: dict[Path, tuple[list[str], float]] = {}


def _check(directory: Path, files: list[str], since: float) -> None:
    try:
        changed = [path for path in files if os.stat(path).st_ctime > since]
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    if changed:
        found = f"{changed[0]}, which was changed after it was imported; start a new process"
        raise SourceError("describing the source under", directory, found)


def imported_source(directory: Path) -> bytes:
    """Return the `source_digest` of `directory`, and let keys rely on it.

    Raises SourceError if the source was changed since this process began to import.
    """
    found = source_digest(directory)
    if directory not in _relied_on:
        check_unchanged(directory, _IMPORTED)
    return found


def _source_files(directory: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and entry.is_file():
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                yield from _source_files(entry.path)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()
