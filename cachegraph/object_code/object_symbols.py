"""Reads the symbols of relocatable object code: which are defined, and which it wants from elsewhere.

Reads what LLVM writes for the supported processors: ELF64 (elf.py, which checks all that its linker looks at), Mach-O 64
and COFF, all little-endian. Every offset is checked before it is followed; anything odd raises ObjectFormatError and
nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cachegraph.errors import ObjectFormatError
from cachegraph.object_code.elf import MAGIC, VisibleSymbol, elf_symbols

_MACH_O = b"\xcf\xfa\xed\xfe"
_COFF_MACHINES = (b"\x64\x86", b"\x64\xaa")

_MACH_O_SYMBOL_TABLE = 2
_MACH_O_DEBUG, _MACH_O_TYPE = 0xE0, 0x0E
_COFF_EXTERNAL = 2


@dataclass(frozen=True, slots=True)
class Symbols:
    """Names other objects can see, without the platform's prefix: those `defined` here, those `undefined`, and, of those
    that are defined, the `pointers`: what can be written to, and has room for one (on ELF; elsewhere all)."""

    defined: frozenset[str]
    undefined: frozenset[str]
    pointers: frozenset[str]


def read_symbols(content: bytes) -> Symbols:
    """Return the symbols of the object `content`; raises ObjectFormatError unless it is one, whole."""
    if content.startswith(MAGIC):
        found = tuple(elf_symbols(content))
    elif content.startswith(_MACH_O):
        found = _without_room(_mach_o_symbols(content))
    elif content[:2] in _COFF_MACHINES:
        found = _without_room(_coff_symbols(content))
    else:
        raise _error(
            f"it starts with {content[:6].hex() or 'nothing'}, which is no ELF, Mach-O or COFF object"
        )
    return Symbols(
        frozenset(symbol.name for symbol in found if symbol.is_defined),
        frozenset(symbol.name for symbol in found if not symbol.is_defined),
        frozenset(symbol.name for symbol in found if symbol.is_defined and symbol.holds_pointer),
    )


def _without_room(symbols: Iterator[tuple[str, bool]]) -> tuple[VisibleSymbol, ...]:
    """Symbols of a format that is not looked at as closely."""
    return tuple(VisibleSymbol(name, is_defined, True) for name, is_defined in symbols)


def _mach_o_symbols(content: bytes) -> Iterator[tuple[str, bool]]:
    _, _, _, _, commands, _, _, _ = _unpack("<IIIIIIII", content, 0)
    position = 32
    tables = 0
    for _ in range(commands):
        command, size = _unpack("<II", content, position)
        tables += command == _MACH_O_SYMBOL_TABLE
        if tables > 1:
            raise _error(f"it has {tables} symbol tables")
        if command == _MACH_O_SYMBOL_TABLE:
            table, count, strings, strings_size = _unpack("<IIII", content, position + 8)
            yield from _mach_o_table(content, table, count, strings, strings_size)
        if size < 8:
            raise _error(f"a load command of {size} bytes")
        position += size


def _mach_o_table(
    content: bytes, table: int, count: int, strings: int, strings_size: int
) -> Iterator[tuple[str, bool]]:
    _slice(content, table, 16 * count)
    for position in range(table, table + 16 * count, 16):
        name, kind, _, _, value = _unpack("<IBBHQ", content, position)
        external = kind & 1
        if external and not kind & _MACH_O_DEBUG:
            defined = bool(kind & _MACH_O_TYPE) or value != 0
            yield _string(content, strings, strings_size, name).removeprefix("_"), defined


def _coff_symbols(content: bytes) -> Iterator[tuple[str, bool]]:
    _, _, _, table, count, _, _ = _unpack("<HHIIIHH", content, 0)
    strings = table + 18 * count
    (strings_size,) = _unpack("<I", content, strings)
    position = table
    while position < strings:
        value, section, _, storage, auxiliary = _unpack("<IhHBB", content, position + 8)
        if storage == _COFF_EXTERNAL:
            name = _coff_name(content, _slice(content, position, 8), strings, strings_size)
            yield name, section != 0 or value != 0
        position += 18 * (1 + auxiliary)


def _coff_name(content: bytes, field: bytes, strings: int, strings_size: int) -> str:
    if field.startswith(b"\0\0\0\0"):
        return _string(content, strings, strings_size, int.from_bytes(field[4:], "little"))
    return _decoded(field.rstrip(b"\0"))


def _string(content: bytes, strings: int, strings_size: int, offset: int) -> str:
    if strings + strings_size > len(content):
        raise _error(f"its string table ends at {strings + strings_size}, of {len(content)} bytes")
    end = content.find(b"\0", strings + offset, strings + strings_size)
    if end < 0:
        raise _error(f"a name at {offset} of a string table of {strings_size} bytes")
    return _decoded(content[strings + offset : end])


def _decoded(name: bytes) -> str:
    if not name.isascii():
        raise _error(f"a symbol named {name!r}")
    return name.decode("ascii")


def _unpack(layout: str, content: bytes, offset: int) -> tuple[int, ...]:
    return struct.unpack(layout, _slice(content, offset, struct.calcsize(layout)))


def _slice(content: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise _error(f"it refers to bytes {offset} to {offset + size} of {len(content)}")
    return content[offset : offset + size]


def _error(found: str) -> ObjectFormatError:
    return ObjectFormatError(found)
