"""Records of source digests: while no file of a directory was changed, nothing is read to know its digest.

It is what git's index is to a work tree. There is a record for each directory, in a file of this user:

    record  := "cgsource" version (1 byte) path listing source sum
    path    := XXH3-128 of the directory's absolute path, in hexadecimal also the name of the file
    listing := XXH3-128 of what is known of the *.py files below the directory without reading them: their
               names relative to it, with a zero byte between; then, in words of 8 bytes, little-endian, of
               each file its inode, size and time of change (nanoseconds since 1970); how many files, how
               many bytes of names. They are in the order of a walk: the names in a directory sorted, and
               what is in a subdirectory in its place
    source  := what source_digest (source.py) makes of the directory by reading it
    sum     := XXH3-128 of all before

A file that is not exactly so, or of another listing, says nothing. A record is made if the listing was the
same before and after the contents were read, and the last change was SETTLED before: an edit at any later
moment then has another time of change, whatever time of modification is set. So it must be a time that the
system keeps: not of a file system that is not known for it (store/filesystem.py), nor of another device
than the directory's, nor of whole seconds, as on images below others: they show times of modification.
What a link leads to, instead of a file, may lie anywhere: then there is no record.

Version history: 1 is the first. Another scheme of source_digest is another version.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from typing import TYPE_CHECKING

from cachegraph.fingerprint.primitives import digest, running_digest
from cachegraph.named_tuples import NamedTuple

RECORD_SIZE = 73
SETTLED = 2_000_000_000
"""Nanoseconds, longer than a time of change stays the same."""

_HEAD = b"cgsource\x01"
_SECOND = 1_000_000_000
_KIND, _REGULAR = 12, 0o10
"""The bits of a mode above the permissions, and what they are for a file; the module stat is Python."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _DIRECTORY | os.O_NOFOLLOW
_NO_DIRECTORY = (errno.ENOTDIR, errno.ELOOP)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class RecordFiles(Protocol):
        """The place where records are kept; nobody else can write there."""

        def read_source_record(self, name: str) -> bytes | None:
            """Return the content of the file of that name, or None. Never raises."""

        def write_source_record(self, name: str, content: bytes) -> None:
            """Replace the file of that name. Raises OSError."""

        def tells_changes(self, directory: str) -> bool:
            """Return True if the file system of `directory` keeps times of change that nobody can set."""


class Listing(NamedTuple):
    """The *.py files below a directory at the time `taken`: their digest, their names relative to it, and
    when each was `changed`. Times are nanoseconds since 1970."""

    digest: bytes
    names: Sequence[str]
    changed: Sequence[int]
    taken: int

    @property
    def last_change(self) -> tuple[float, str]:
        """The last of the times, in seconds as os.stat gives it, and the name of the file."""
        when = max(self.changed)
        seconds, rest = divmod(when, _SECOND)
        return seconds + 1e-9 * rest, self.names[self.changed.index(when)]

    @property
    def settled(self) -> int:
        """The time from which on every edit gives a file another time of change than it has."""
        return max(self.changed) + SETTLED

    def shows_edits(self, directory: str) -> bool:
        """Return True if the times are of the file system of `directory`, and kept by it. Raises OSError."""
        devices = {os.lstat(os.path.join(directory, name)).st_dev for name in ("", *self.names)}
        return len(devices) == 1 and all(when % _SECOND for when in self.changed)


def listed(directory: str) -> Listing | None:
    """Return the listing of a directory; None if it is none, has no source or a link to some, or cannot be
    listed."""
    taken, names, numbers = time.time_ns(), list[str](), list[int]()
    found = running_digest()
    try:
        _list(os.open(directory, _DIRECTORY), "", names, numbers)
        joined = "\0".join(names).encode("utf-8", "surrogateescape")
        found.update(joined)
        found.update(struct.pack(f"<{len(numbers) + 2}Q", *numbers, len(names), len(joined)))
    except (OSError, struct.error):  # the latter for a time before 1970
        return None
    return Listing(found.digest(), names, numbers[2::3], taken) if names else None


def later_edits_show(file: str) -> bool:
    """Return True if every edit of a source file from now on gives it another time of change, if its file
    system keeps these. Raises OSError."""
    directory, name = os.path.split(file)
    now, found = time.time_ns(), os.lstat(file)
    listing = Listing(b"", [name], [found.st_ctime_ns], now)
    is_file = found.st_mode >> _KIND == _REGULAR
    return is_file and listing.settled <= now and listing.shows_edits(directory)


def _list(directory: int, prefix: str, names: list[str], numbers: list[int]) -> None:
    """Add the files below an open directory, which is closed; raises OSError for a link in a file's place.

    The directories are those that source_digest reads. A name is looked up faster in an open directory, and
    its kind found by opening it; a listing with kinds takes longer.
    """
    try:
        for name in sorted(os.listdir(directory)):
            if name.endswith(".py"):
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if found.st_mode >> _KIND != _REGULAR:
                    raise OSError(f"{prefix}{name} is no regular file")
                names.append(prefix + name)
                numbers += (found.st_ino, found.st_size, found.st_ctime_ns)
            elif name != "__pycache__" and (below := _opened(name, directory)) is not None:
                _list(below, f"{prefix}{name}/", names, numbers)
    finally:
        os.close(directory)


def _opened(name: str, directory: int) -> int | None:
    """Return the subdirectory of that name, open, or None for anything else. Raises OSError."""
    try:
        return os.open(name, _BELOW, dir_fd=directory)
    except OSError as error:
        if error.errno in _NO_DIRECTORY:
            return None
        raise


class SourceRecords:
    """The records in `files`. A directory without one that holds is read, and recorded by `keep`."""

    def __init__(self, files: RecordFiles) -> None:
        self._files = files
        self._due: dict[str, tuple[int, Callable[[str], bytes]]] = {}

    def find(self, directory: str) -> tuple[bytes, Listing] | None:
        """Return the recorded digest of `directory`, and its listing, or None if no record holds. Never
        raises."""
        path = _path(directory)
        record = self._files.read_source_record(path.hex())
        if record is None or len(record) != RECORD_SIZE or digest(record[:-16]) != record[-16:]:
            return None
        listing = listed(directory)
        if listing is None or not record.startswith(_HEAD + path + listing.digest):
            return None
        return record[-32:-16], listing

    def add(self, directory: str, read: Callable[[str], bytes]) -> None:
        """Have the digest of `directory` recorded, which `read` finds by reading it anew."""
        self._due[directory] = 0, read

    def keep(self) -> None:
        """Record what was added, as soon as every later edit would show. Raises OSError."""
        now = time.time_ns()
        for directory, (due, read) in list(self._due.items()):
            if due <= now:
                del self._due[directory]
                if self._files.tells_changes(directory):
                    self._record(directory, read)

    def _record(self, directory: str, read: Callable[[str], bytes]) -> None:
        before = listed(directory)
        if before is None or not before.shows_edits(directory):
            return
        if before.settled > before.taken:
            self._due[directory] = before.settled, read
            return
        source, path = read(directory), _path(directory)
        after = listed(directory)
        if after is not None and after.digest == before.digest:
            content = _HEAD + path + before.digest + source
            self._files.write_source_record(path.hex(), content + digest(content))


def _path(directory: str) -> bytes:
    return digest(os.fsencode(os.path.abspath(directory)))
