"""The linker of object code for x86-64: objects become functions at addresses of this process.

All objects of a call share one mapping (code_memory.py), so that 32 bits reach from each to the others:

    code      := executable sections, a stub for each function outside that is called
    constants := sections that are only read, an address for each symbol that is found through the table
    data      := writable sections, common symbols
    stub      := jmp *address; address; two bytes

The relocations are those of x86-64's System V ABI that elf.py accepts. That reader has checked that each lies
in its section: nothing here writes elsewhere.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from cachegraph.errors import ObjectLinkError
from cachegraph.object_code.code_memory import CODE, CONSTANTS, DATA, SEGMENTS, CodeMemory
from cachegraph.object_code.elf import ObjectFile, Relocation, SectionRow, Symbol
from cachegraph.object_code.linked import LinkedObjects

_ABSOLUTE_64, _CALL, _RELATIVE_64 = 1, 4, 24
_THROUGH_TABLE = (9, 41, 42)
_STUB = struct.Struct("<6sQxx")
_JUMP = b"\xff\x25\0\0\0\0"
_WORD = struct.Struct("<Q")
_HALF = struct.Struct("<i")


def link_for_x86_64(
    objects: Sequence[ObjectFile], imports: Mapping[str, int], exports: Sequence[str]
) -> LinkedObjects:
    """Return `objects`, linked with each other and with the addresses in `imports`.

    Nothing else of the process is found by them. Raises ObjectLinkError if a symbol is missing, or is defined
    twice, or if there is no memory.
    """
    image = _Image(objects, imports)
    memory = CodeMemory([len(segment) for segment in image.segments])
    image.place(memory.starts)
    memory.fill(image.segments)
    return LinkedObjects({name: image.address(name) for name in exports}, memory)


class _Image:
    """The content of the segments, laid out on creation; `place` writes the addresses into it."""

    def __init__(self, objects: Sequence[ObjectFile], imports: Mapping[str, int]) -> None:
        self.objects = objects
        self.imports = imports
        self.segments = [bytearray() for _ in SEGMENTS]
        self.starts: Sequence[int] = ()
        self._sections = [self._laid_out(found) for found in objects]
        """For each object the place of each section: its segment, and its offset there."""
        self._definitions = _definitions(objects)
        self._commons: dict[str, int] = {}
        self._stubs: dict[str, int] = {}
        self._table: dict[tuple[int, int], int] = {}
        for name, (_, symbol) in self._definitions.items():
            if symbol.is_common:
                self._commons[name] = self._added(DATA, symbol.value, bytes(symbol.size))
        for number, _, relocation in self._relocations():
            self._make_room(number, relocation)

    def _laid_out(self, found: ObjectFile) -> dict[int, tuple[int, int]]:
        places = {}
        for number, section, content in found.loaded():
            segment = _segment_of(section)
            places[number] = segment, self._added(segment, section.alignment, content)
        return places

    def _added(self, segment: int, alignment: int, content: bytes) -> int:
        """Append `content` to a segment; return its offset."""
        room = self.segments[segment]
        room += bytes(-len(room) % alignment)
        room += content
        return len(room) - len(content)

    def _relocations(self) -> Iterator[tuple[int, int, Relocation]]:
        """Yield the number of the object, of the section, and the relocation, of sections in memory."""
        for number, found in enumerate(self.objects):
            for section, relocations in found.relocations.items():
                if section in self._sections[number]:
                    for relocation in relocations:
                        yield number, section, relocation

    def _make_room(self, number: int, relocation: Relocation) -> None:
        """Add the stub or the entry of the table that a relocation needs; refuse an unknown symbol."""
        found = self.objects[number]
        symbol, name = found.symbols[relocation.symbol], found.names[relocation.symbol]
        is_outside = not symbol.is_local and name not in self._definitions
        if is_outside and name not in self.imports:
            raise ObjectLinkError("linking", name, "no object defines it, and no address was given")
        entry = number, relocation.symbol
        if relocation.kind in _THROUGH_TABLE and entry not in self._table:
            self._table[entry] = self._added(CONSTANTS, _WORD.size, bytes(_WORD.size))
        if relocation.kind == _CALL and is_outside and name not in self._stubs:
            self._stubs[name] = self._added(CODE, _STUB.size, _STUB.pack(_JUMP, self.imports[name]))

    def place(self, starts: Sequence[int]) -> None:
        """Write all that depends on where the segments are."""
        self.starts = starts
        for (number, symbol), offset in self._table.items():
            _WORD.pack_into(self.segments[CONSTANTS], offset, self._target(number, symbol))
        for number, section, relocation in self._relocations():
            self._relocate(number, section, relocation)

    def _relocate(self, number: int, section: int, relocation: Relocation) -> None:
        segment, start = self._sections[number][section]
        offset = start + relocation.offset
        here = self.starts[segment] + offset
        value = self._reached(number, relocation) + relocation.addend
        if relocation.kind == _ABSOLUTE_64:
            _WORD.pack_into(self.segments[segment], offset, value % 2**64)
        elif relocation.kind == _RELATIVE_64:
            _WORD.pack_into(self.segments[segment], offset, (value - here) % 2**64)
        else:
            _HALF.pack_into(self.segments[segment], offset, value - here)

    def _reached(self, number: int, relocation: Relocation) -> int:
        """Return the address of what a relocation is about: the symbol, its stub, or its table entry."""
        if relocation.kind in _THROUGH_TABLE:
            return self.starts[CONSTANTS] + self._table[number, relocation.symbol]
        stub = self._stubs.get(self.objects[number].names[relocation.symbol])
        if relocation.kind == _CALL and stub is not None:
            return self.starts[CODE] + stub
        return self._target(number, relocation.symbol)

    def _target(self, number: int, symbol: int) -> int:
        """Return the address of a symbol of an object."""
        found = self.objects[number]
        if found.symbols[symbol].is_local:
            return self._at(number, found.symbols[symbol])
        return self.address(found.names[symbol])

    def address(self, name: str) -> int:
        """Return the address of a symbol that is not local; raises ObjectLinkError if there is none."""
        if name in self._commons:
            return self.starts[DATA] + self._commons[name]
        if name in self._definitions:
            return self._at(*self._definitions[name])
        if name in self.imports:
            return self.imports[name]
        raise ObjectLinkError("linking", name, "no object defines it")

    def _at(self, number: int, symbol: Symbol) -> int:
        segment, offset = self._sections[number][symbol.section]
        return self.starts[segment] + offset + symbol.value


def _segment_of(section: SectionRow) -> int:
    if section.is_code:
        return CODE
    return DATA if section.is_writable else CONSTANTS


def _definitions(objects: Sequence[ObjectFile]) -> dict[str, tuple[int, Symbol]]:
    """Return the object and the symbol that define each name; raises ObjectLinkError if two do.

    A common symbol counts where there is no definition, the largest of several; a weak definition, the first
    of several, where there is nothing else.
    """
    found: dict[str, tuple[int, Symbol]] = {}
    for number, content in enumerate(objects):
        for name, symbol in zip(content.names, content.symbols, strict=True):
            if symbol.is_local or symbol.is_undefined:
                continue
            before = found.get(name)
            if before is None or _rank(before[1]) < _rank(symbol):
                found[name] = number, symbol
            elif _rank(symbol) == _rank(before[1]) == _STRONG:
                raise ObjectLinkError("linking", name, "two objects define it")
    return found


_STRONG = (2, 0)


def _rank(symbol: Symbol) -> tuple[int, int]:
    """Return how much a definition counts."""
    if symbol.is_common:
        return 1, symbol.size
    return (0, 0) if symbol.is_weak else _STRONG
