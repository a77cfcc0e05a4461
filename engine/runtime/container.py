"""The stored form of a compiled kernel: its object code, and a header with all that loading checks.

    kernel  := header digest(header) object
    header  := MAGIC(8 bytes) u16(format) u16(ABI) u32(length of the header) text(triple) text(level)
               text(symbol) u32(length of the object) digest(object)
    text    := u16(length) UTF-8
    digest  := XXH3-128 (16 bytes); all integers little-endian

ABI is the version of the calling convention and of the statuses (kernel_interface.py). The digests
find damage, not forgery: who may write an entry is the store's business, which covers containers too by
what it signs or names.

Version history
    1  first, with an object per CPU level
    2  one object, for one CPU level
"""

from __future__ import annotations

import struct

from cachegraph.fingerprint.primitives import digest
from cachegraph.named_tuples import NamedTuple
from engine.runtime.errors import KernelFormatError

MAGIC = b"\x89kernel\n"
FORMAT = 2
ABI = 1

_FIXED = struct.Struct("<8sHHI")
_DIGEST_SIZE = 16


class StoredKernel(NamedTuple):
    """A stored kernel, checked: the triple and CPU level of its object `code`, and its symbol."""

    triple: str
    level: str
    symbol: str
    code: bytes


def pack_kernel(symbol: str, triple: str, level: str, code: bytes) -> bytes:
    """Return the stored form of a kernel: the object `code` that was compiled for `triple` and `level`."""
    described = b"".join(
        (_text(triple), _text(level), _text(symbol), struct.pack("<I", len(code)), digest(code))
    )
    header = _FIXED.pack(MAGIC, FORMAT, ABI, _FIXED.size + len(described)) + described
    return b"".join((header, digest(header), code))


def unpack_kernel(content: bytes) -> StoredKernel:
    """Return the kernel that `content` holds; raises KernelFormatError unless this version's
    pack_kernel wrote every byte."""
    size = _header_size(content)
    header = content[:size]
    if digest(header) != content[size : size + _DIGEST_SIZE]:
        raise _error("its header does not have its digest")
    fields = _Fields(header, _FIXED.size)
    triple, level, symbol = fields.text(), fields.text(), fields.text()
    length, expected = fields.number("<I"), fields.take(_DIGEST_SIZE)
    code = content[size + _DIGEST_SIZE :]
    if len(code) != length:
        raise _error(f"its object has {len(code)} bytes; its header says {length}")
    if digest(code) != expected:
        raise _error(f"the object of {symbol} does not have its digest")
    return StoredKernel(triple, level, symbol, code)


def _header_size(content: bytes) -> int:
    if len(content) < _FIXED.size:
        raise _error(f"it has {len(content)} bytes")
    magic, written, abi, size = _FIXED.unpack_from(content)
    if magic != MAGIC:
        raise _error(f"it starts with {magic.hex()}")
    if (written, abi) != (FORMAT, ABI):
        raise _error(
            f"it has format {written} and ABI {abi}; this release reads format {FORMAT} and ABI {ABI}"
        )
    return int(size)


class _Fields:
    def __init__(self, header: bytes, offset: int) -> None:
        self.header = header
        self.offset = offset

    def take(self, size: int) -> bytes:
        taken = self.header[self.offset : self.offset + size]
        if len(taken) != size:
            raise _error(f"its header ends at byte {len(self.header)}, inside a field")
        self.offset += size
        return taken

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def text(self) -> str:
        try:
            return self.take(self.number("<H")).decode()
        except UnicodeDecodeError as error:
            raise _error(f"a name that is not UTF-8 ({error.reason})") from None


def _text(name: str) -> bytes:
    encoded = name.encode()
    return struct.pack("<H", len(encoded)) + encoded


def _error(found: str) -> KernelFormatError:
    return KernelFormatError("reading", "a stored kernel", found)
