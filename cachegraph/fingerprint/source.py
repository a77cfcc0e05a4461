"""The source of packages that keys describe as a whole: its digest, and a check that it is still
what was imported."""

from __future__ import annotations

import os
import struct
from operator import attrgetter
from typing import TYPE_CHECKING

from cachegraph.errors import SourceError
from cachegraph.fingerprint.primitives import running_digest
from cachegraph.named_tuples import NamedTuple
from cachegraph.processes import began

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cachegraph.fingerprint.source_records import SourceRecords


class Source(NamedTuple):
    """The *.py files under a directory as they were read: their digest and paths, and the time (seconds since
    1970) and path of the `last_change`. Paths may be relative to the directory."""

    digest: bytes
    paths: Sequence[str]
    last_change: tuple[float, str]


def source_digest(directory: Path) -> bytes:
    """Return the XXH3-128 of the names and contents of the *.py files in `directory`, and of the names and
    the digests of its subdirectories that have any.

    Its location, file times and listing order do not matter. Each directory is read once per process, since
    the imported source counts. Raises SourceError if there is nothing to read.

    Two sources of one XXH3-128 can be made on purpose, but only by somebody who writes code that runs here.
    The BLAKE2b-256 of the engine's source takes 1.7 ms more, a tenth of a warm start (decision 0097).
    """
    return _source(directory).digest


def imported_source(directory: Path, records: SourceRecords | None = None) -> bytes:
    """Return the `source_digest` of `directory`, and let keys rely on it (check_relied_on).

    With `records`, files are read only if they are not as they were when the digest was recorded.
    Raises SourceError if a file was changed since this process began: after an upgrade under a running
    process, the imported code is not what was read. The time compared is that of the inode's last change,
    which installers that preserve modification times update too.
    """
    found = _source(directory) if records is None else _recorded(directory, records)
    if directory not in _relied_on:
        when, path = found.last_change
        if when > began():
            raise _changed(directory, path)
        _relied_on[directory] = found.paths
    return found.digest


def check_relied_on() -> None:
    """Raise SourceError if source that keys rely on (imported_source) was changed since this process began.

    Modules are imported on first use, so an artifact may come from other code than its key describes, even if
    the edit was undone meanwhile.
    """
    for directory, files in _relied_on.items():
        _check(directory, files)


_relied_on: dict[Path, Sequence[str]] = {}


def _check(directory: Path, files: Sequence[str]) -> None:
    try:
        changed = [path for path in files if os.stat(os.path.join(directory, path)).st_ctime > began()]
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    if changed:
        raise _changed(directory, changed[0])


def _changed(directory: Path, path: str) -> SourceError:
    found = f"{os.path.join(directory, path)}, which was changed after this process began; start a new one"
    return SourceError("describing the source under", directory, found)


def _source(directory: Path) -> Source:
    try:
        found = _read_directory(os.fspath(directory), memoryview(bytearray(_USUAL_SIZE)), _read_before)
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    if not found.paths:
        raise SourceError("reading the source under", directory, "no *.py file")
    return found


def _recorded(directory: Path, records: SourceRecords) -> Source:
    """Return the source of `directory` from the records, or else by reading it, to be recorded later."""
    top = os.fspath(directory)
    if (before := _read_before.get(top)) is not None:
        return before
    known = records.find(top)
    if known is None:
        found = _source(directory)
        records.add(top, _read_anew)
        return found
    digest, listing = known
    found = _read_before[top] = Source(digest, listing.names, listing.last_change)
    return found


def _read_anew(directory: str) -> bytes:
    return _read_directory(directory, memoryview(bytearray(_USUAL_SIZE)), {}).digest


_read_before: dict[str, Source] = {}


def _read_directory(directory: str, buffer: memoryview, before: dict[str, Source]) -> Source:
    """Return what is in a directory that is not in `before`, read into `buffer` file after file.

    The digest is that of the contents, the names with a zero byte between, and the numbers: the length of
    each content, how many contents, how many bytes of names.
    """
    if (known := before.get(directory)) is not None:
        return known
    digest = running_digest()
    names: list[str] = []
    lengths: list[int] = []
    paths: list[str] = []
    last_change = (0.0, "")
    for entry in _listed(directory):
        name = entry.name
        if name.endswith(".py") and entry.is_file():
            path = entry.path
            content, when = _read(path, buffer)
            paths.append(path)
            if when > last_change[0]:
                last_change = when, path
        elif name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            found = _read_directory(entry.path, buffer, before)
            if not found.paths:
                continue
            name, content = f"{name}/", found.digest
            paths += found.paths
            last_change = max(last_change, found.last_change)
        else:
            continue
        digest.update(content)
        names.append(name)
        lengths.append(len(content))
    joined = "\0".join(names).encode("utf-8", "surrogateescape")
    digest.update(joined)
    digest.update(struct.pack(f"<{len(lengths) + 2}Q", *lengths, len(lengths), len(joined)))
    found = before[directory] = Source(digest.digest(), tuple(paths), last_change)
    return found


_name = attrgetter("name")


def _listed(directory: str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return sorted(entries, key=_name)


_USUAL_SIZE = 65_536
"""Larger files are read in two steps; for others their size need not be asked for first."""


def _read(path: str, buffer: memoryview) -> tuple[memoryview | bytes, float]:
    """Return the content of a file, which is in `buffer` if it has room there, and the time of its last
    change; the file object of Python costs as much again."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = os.readv(descriptor, (buffer,))
        after = os.fstat(descriptor)
        content: memoryview | bytes = buffer[:length]
        if length == len(buffer):
            content = bytes(buffer) + os.read(descriptor, after.st_size)
    finally:
        os.close(descriptor)
    if len(content) != after.st_size:
        raise OSError(f"{path} was changed while it was read")
    return content, after.st_ctime
