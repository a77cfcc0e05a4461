"""The format of a bundle: the entries and blobs of a cache in one file, and revocation lists.

    bundle    := head file* entry row* blob row* list row* foot
    head      := magic(3: "CGB") version(1)
    file      := an entry (shared/entry_file.py), always signed, a blob, or a revocation list, as a shared
                 directory has them
    entry row := key(16) start(8) length(8)
    blob row  := name(40: BLAKE2b-256 and length) start(8)
    list row  := signer(32) start(8) length(8)
    foot      := number of entries(8) number of blobs(8) number of lists(8) checksum(16) head(4)
    checksum  := XXH3-128 of the numbers and all rows

Numbers are big-endian. A start is the place of a file in the bundle. Rows are in order of their keys,
names and signers, and none is there twice. Files are in the order in which they were added.

The checksum finds damage of the rows. It is no signature: each entry is signed together with its
place in a cache, and a blob is named by its content, so what somebody moved, exchanged or added is
refused when it is read (decision 0148).

Version history
    1  without revocation lists; not read
    2  with them
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import IO

from cachegraph.fingerprint.primitives import content_name, digest
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.paths import TEMPORARY_PREFIX, unique_name

BUNDLE_FORMAT = 2

_MAGIC = b"CGB"
_HEAD = _MAGIC + bytes((BUNDLE_FORMAT,))
_ENTRY_ROW = Struct(">16sQQ")
_BLOB_ROW = Struct(">40sQ")
_LIST_ROW = Struct(">32sQQ")
_ROWS = (_ENTRY_ROW, _BLOB_ROW, _LIST_ROW)
_NUMBERS = Struct(">QQQ")
_FOOT = Struct(">24s16s4s")
_KEY_SIZE, _NAME_SIZE, _SIGNER_SIZE = 16, 40, 32
_LARGEST_INDEX = 1 << 30


class BundleFault(ValueError):
    """An error for a file that is no whole bundle of this version."""


class Extent(NamedTuple):
    """A part of a file: `length` bytes from `start` on."""

    start: int
    length: int


class BundleIndex:
    """The rows of a bundle: where each of its files is."""

    def __init__(self, entries: bytes, blobs: bytes, lists: bytes, files_end: int) -> None:
        self._entries = entries
        self._blobs = blobs
        self._lists = lists
        self._files_end = files_end

    @classmethod
    def read(cls, descriptor: int, size: int) -> BundleIndex:
        """Return the index of the open file of `size` bytes. Raises BundleFault and OSError."""
        _check_head(os.pread(descriptor, len(_HEAD), 0))
        numbers, checksum, head = _foot(os.pread(descriptor, _FOOT.size, max(size - _FOOT.size, 0)))
        if head != _HEAD:
            raise BundleFault("its end is not that of a bundle: it is cut short, or was written to")
        entries, blobs, lists = (
            count * row.size for count, row in zip(_NUMBERS.unpack(numbers), _ROWS, strict=True)
        )
        length = entries + blobs + lists
        start = size - _FOOT.size - length
        if start < len(_HEAD) or length > _LARGEST_INDEX:
            raise BundleFault(f"its index would have {length} of its {size} bytes")
        rows = read_extent(descriptor, Extent(start, length))
        if digest(numbers + rows) != checksum:
            raise BundleFault("its index does not match its checksum")
        return cls(rows[:entries], rows[entries : entries + blobs], rows[entries + blobs :], start)

    def entry(self, key_hex: str) -> Extent | None:
        """Return where the entry of a key is, or None. Raises BundleFault for a place outside the files."""
        row = _find(self._entries, _ENTRY_ROW, _KEY_SIZE, bytes.fromhex(key_hex))
        return None if row is None else self._checked(Extent(row[1], row[2]))

    def blob(self, name: str) -> Extent | None:
        """Return where a blob is, or None. Raises BundleFault for a place outside the files."""
        row = _find(self._blobs, _BLOB_ROW, _NAME_SIZE, bytes.fromhex(name))
        return None if row is None else self._checked(Extent(row[1], int(name[64:], 16)))

    def revocations(self, signer: bytes) -> Extent | None:
        """Return where the list of a signer is, or None. Raises BundleFault for a place outside the files."""
        row = _find(self._lists, _LIST_ROW, _SIGNER_SIZE, signer)
        return None if row is None else self._checked(Extent(row[1], row[2]))

    def entries(self) -> Iterator[tuple[str, int]]:
        """Yield the key (hexadecimal) and the length of every entry, in order of keys."""
        for key, _, length in _ENTRY_ROW.iter_unpack(self._entries):
            yield key.hex(), length

    def blobs(self) -> Iterator[tuple[str, int]]:
        """Yield the name and the length of every blob, in order of names."""
        for name, _ in _BLOB_ROW.iter_unpack(self._blobs):
            yield name.hex(), int(name[32:].hex(), 16)

    def lists(self) -> Iterator[tuple[bytes, int]]:
        """Yield the signer and the length of every revocation list, in order of signers."""
        for signer, _, length in _LIST_ROW.iter_unpack(self._lists):
            yield signer, length

    def _checked(self, extent: Extent) -> Extent:
        if extent.start < len(_HEAD) or extent.start + extent.length > self._files_end:
            raise BundleFault(f"its index names bytes {extent.start} to {extent.start + extent.length}")
        return extent


def read_extent(descriptor: int, extent: Extent) -> bytes:
    """Return a part of an open file. Raises BundleFault if the file is shorter, and OSError."""
    pieces, left = [], extent.length
    while left and (piece := os.pread(descriptor, left, extent.start + extent.length - left)):
        pieces.append(piece)
        left -= len(piece)
    if left:
        raise BundleFault(f"it ends {left} bytes before the end of one of its files")
    return b"".join(pieces)


class BundleWriter:
    """A bundle being written: it appears at `path` whole when the context ends, or not at all."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._temporary = os.path.join(os.path.dirname(path) or ".", unique_name(TEMPORARY_PREFIX))
        self._entries: dict[bytes, Extent] = {}
        self._blobs: dict[bytes, Extent] = {}
        self._lists: dict[bytes, Extent] = {}
        self._end = len(_HEAD)

    def __enter__(self) -> BundleWriter:
        self._file: IO[bytes] = open(self._temporary, "xb")
        self._file.write(_HEAD)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with self._file:
                if kind is None:
                    self._write_index()
                    os.fsync(self._file.fileno())
            if kind is None:
                os.replace(self._temporary, self._path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._temporary)

    def add_entry(self, key_hex: str, content: bytes) -> None:
        """Add the file of an entry, unless its key is there. Raises OSError."""
        self._add(self._entries, bytes.fromhex(key_hex), content)

    def add_revocations(self, signer: bytes, content: bytes) -> None:
        """Add the file of a revocation list, unless its signer has one there. Raises OSError."""
        self._add(self._lists, signer, content)

    def write(self, content: bytes) -> str:
        """Add a blob, unless it is there; return its name. Raises OSError."""
        name = content_name(content)
        self._add(self._blobs, bytes.fromhex(name), content)
        return name

    @property
    def size(self) -> int:
        """Return the bytes of the files so far."""
        return self._end

    def _add(self, rows: dict[bytes, Extent], name: bytes, content: bytes) -> None:
        if name not in rows:
            rows[name] = Extent(self._end, len(content))
            self._file.write(content)
            self._end += len(content)

    def _write_index(self) -> None:
        entries = (_ENTRY_ROW.pack(key, *extent) for key, extent in sorted(self._entries.items()))
        blobs = (_BLOB_ROW.pack(name, extent.start) for name, extent in sorted(self._blobs.items()))
        lists = (_LIST_ROW.pack(signer, *extent) for signer, extent in sorted(self._lists.items()))
        rows = b"".join((*entries, *blobs, *lists))
        numbers = _NUMBERS.pack(len(self._entries), len(self._blobs), len(self._lists))
        self._file.write(rows + _FOOT.pack(numbers, digest(numbers + rows), _HEAD))


def _check_head(found: bytes) -> None:
    if not found.startswith(_MAGIC) or len(found) < len(_HEAD):
        raise BundleFault(
            f"it starts with {found.hex() or 'nothing'}, not with {_MAGIC.hex()}: it is no bundle"
        )
    if found != _HEAD:
        raise BundleFault(f"it has version {found[-1]}, and this release reads version {BUNDLE_FORMAT}")


def _foot(found: bytes) -> tuple[bytes, bytes, bytes]:
    if len(found) < _FOOT.size:
        raise BundleFault("it is cut short")
    numbers, checksum, head = _FOOT.unpack(found)
    return numbers, checksum, head


def _find(rows: bytes, row: Struct, size: int, name: bytes) -> tuple[int, ...] | None:
    """Return the fields of the row that begins with `name`, or None."""
    count = len(rows) // row.size
    place = bisect_left(range(count), name, key=lambda n: rows[n * row.size : n * row.size + size])
    if place == count or rows[place * row.size : place * row.size + size] != name:
        return None
    return row.unpack_from(rows, place * row.size)
