"""The stored form of a compiled kernel: an object per CPU level, and a header with all that loading checks.

    kernel  := header digest(header) object*            objects in the order of the variants
    header  := MAGIC(8 bytes) u16(format) u16(ABI) u32(length of the header) text(triple) text(symbol)
               u8(count) variant*
    variant := text(level) u32(length of the object) digest(object)
    text    := u16(length) UTF-8
    digest  := XXH3-128 (16 bytes); all integers little-endian

ABI is the version of the calling convention and of the statuses (kernel_interface.py). The digests
find damage, not forgery: who may write an entry is the store's business, which covers containers too by
what it signs or names.

Version history
    1  first
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from cachegraph.fingerprint.primitives import digest
from engine.runtime.errors import ForeignTarget, KernelFormatError

MAGIC = b"\x89kernel\n"
FORMAT = 1
ABI = 1

_FIXED = struct.Struct("<8sHHI")
_DIGEST_SIZE = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """The object code for one CPU level: its place in the stored bytes, and its digest."""

    level: str
    start: int
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class StoredKernel:
    """A stored kernel whose header was checked: its target, its symbol, and its variants, the weakest
    CPU level first."""

    triple: str
    symbol: str
    variants: tuple[Variant, ...]
    content: bytes

    def object_for(self, levels: tuple[str, ...]) -> bytes:
        """Return the object code for the first of `levels` that has one.

        Raises ForeignTarget if none has, KernelFormatError if it is damaged.
        """
        by_level = {variant.level: variant for variant in self.variants}
        level = next((level for level in levels if level in by_level), None)
        if level is None:
            found = f"it is for {', '.join(by_level) or 'no CPU'}; this machine runs {', '.join(levels)}"
            raise ForeignTarget("choosing the CPU level of", self.symbol, found)
        variant = by_level[level]
        code = self.content[variant.start : variant.start + variant.size]
        if digest(code) != variant.digest:
            raise KernelFormatError(
                "checking", self.symbol, f"its object for {level} does not have its digest"
            )
        return code


def pack_kernel(symbol: str, triple: str, objects: Mapping[str, bytes]) -> bytes:
    """Return the stored form of a kernel; `objects` maps CPU levels, the weakest first, to object code."""
    variants = (_text(level) + struct.pack("<I", len(code)) + digest(code) for level, code in objects.items())
    described = b"".join((_text(triple), _text(symbol), struct.pack("<B", len(objects)), *variants))
    header = _FIXED.pack(MAGIC, FORMAT, ABI, _FIXED.size + len(described)) + described
    return b"".join((header, digest(header), *objects.values()))


def unpack_kernel(content: bytes) -> StoredKernel:
    """Return the kernel that `content` holds; raises KernelFormatError unless this version's
    pack_kernel wrote every byte."""
    size = _header_size(content)
    header = content[:size]
    if digest(header) != content[size : size + _DIGEST_SIZE]:
        raise _error("its header does not have its digest")
    fields = _Fields(header, _FIXED.size)
    triple, symbol = fields.text(), fields.text()
    start = size + _DIGEST_SIZE
    variants = []
    for _ in range(fields.number("<B")):
        variant = Variant(fields.text(), start, fields.number("<I"), fields.take(_DIGEST_SIZE))
        variants.append(variant)
        start += variant.size
    if start != len(content):
        raise _error(f"it has {len(content)} bytes; its header describes {start}")
    return StoredKernel(triple, symbol, tuple(variants), content)


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


@dataclass
class _Fields:
    header: bytes
    offset: int

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
