"""The reader of relocatable ELF files. It refuses forms that LLVM does not write for our code: linking a
malformed file may kill the process.

The accepted form, for x86-64 and 64-bit Arm (numbers little-endian):

    file       := header, contents of the sections, 64 bytes for each section
    sections   := NULL, one STRTAB, one SYMTAB, any PROGBITS, NOBITS, UNWIND and RELA, with the flags below;
                  on Arm the kind UNWIND is PROGBITS
    symbol     := local ones first; each wholly in a loaded section, or undefined, or common
    relocation := of a known kind, wholly in the section that it changes, to about where its symbol lies
    .eh_frame  := CIE of the one form that LLVM writes, FDE*, each with one relocation to its code

What the code does when called cannot be checked here.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator, Mapping, Sequence

from cachegraph.errors import ObjectFormatError
from cachegraph.named_tuples import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")

_RELOCATABLE = 1
_NULL, _PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS, _UNWIND = 0, 1, 2, 3, 4, 8, 0x70000001
_WRITE, _ALLOC, _CODE, _MERGE, _STRINGS, _INFO, _LARGE = 1, 2, 4, 0x10, 0x20, 0x40, 0x10000000
_DATA_FLAGS = _WRITE | _ALLOC | _CODE | _MERGE | _STRINGS | _LARGE
_FLAGS = {
    _PROGBITS: _DATA_FLAGS,
    _NOBITS: _DATA_FLAGS,
    _SYMTAB: 0,
    _STRTAB: 0,
    _RELA: _INFO,
    _UNWIND: _ALLOC,
}
_NAMES = tuple(f".{large}{name}" for name in ("text", "rodata", "data", "bss") for large in ("", "l"))
_OTHER_NAMES = (".note.GNU-stack", ".comment", ".strtab", ".symtab")
_FRAMES = ".eh_frame"
_LARGEST_ALIGNMENT = 4096
_LARGEST_ZEROS = 2**24
_MOST_SECTIONS = 1024
_SLACK = 64
"""Bytes that a relocation may point beside its symbol: instructions count from their own end."""

_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_LOCAL, _GLOBAL, _WEAK = 0, 1, 2
_NO_TYPE, _OBJECT, _FUNCTION, _OF_SECTION, _OF_FILE = range(5)
_HIDDEN = 2


class _Change(NamedTuple):
    """The effect of a kind of relocation.

    `size` is the number of changed bytes; `is_empty` says that they must be 0 before, since LLVM adds to
    them; `is_near` that the symbol must be in the same file, within reach; `before` is how many bytes before
    them LLVM reads.
    """

    size: int
    is_empty: bool
    is_near: bool
    before: int = 0


class _Machine(NamedTuple):
    """A processor: its relocation kinds, those of unwind tables with their sizes, the CIE after "zR", the
    kind of sections with unwind tables, and the names of symbols that mark where code and data begin."""

    name: str
    changes: Mapping[int, _Change]
    in_frames: Mapping[int, int]
    common: bytes
    unwind: int
    marks: tuple[str, ...]


_FAR, _PLACE, _NEAR = _Change(8, True, False), _Change(8, True, True), _Change(4, True, True)
_CALL, _TABLE = _Change(4, True, False, 1), _Change(4, True, False, 3)
_ARM_NEAR, _ARM_FAR = _Change(4, False, True), _Change(4, False, False)
_MACHINES = {
    62: _Machine(
        "x86_64",
        {1: _FAR, 2: _NEAR, 4: _CALL, 9: _TABLE, 24: _PLACE, 41: _TABLE, 42: _TABLE},
        {2: 4, 24: 8},
        b"\x01\x78\x10",
        _UNWIND,
        (),
    ),
    183: _Machine(
        "aarch64",
        {257: _FAR, 260: _PLACE, 261: _NEAR}
        | dict.fromkeys((275, 276, 277, 278, 279, 280, 284, 285, 286, 299), _ARM_NEAR)
        | dict.fromkeys((*range(263, 270), 282, 283, 311, 312), _ARM_FAR),
        {261: 4, 260: 8},
        b"\x01\x7c\x1e",
        _PROGBITS,
        ("$x", "$d"),
    ),
}
_POINTER_SIZES = {0x1B: 4, 0x1C: 8}


class SectionRow(NamedTuple):
    """A row of the table of sections."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int

    @property
    def is_code(self) -> bool:
        return bool(self.flags & _CODE)

    @property
    def is_writable(self) -> bool:
        return bool(self.flags & _WRITE)


class Symbol(NamedTuple):
    """A row of the table of symbols. `value` is an offset in `section`, a common symbol's alignment."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_local(self) -> bool:
        return self.info >> 4 == _LOCAL

    @property
    def is_weak(self) -> bool:
        return self.info >> 4 == _WEAK

    @property
    def is_undefined(self) -> bool:
        return self.section == _UNDEFINED

    @property
    def is_common(self) -> bool:
        return self.section == _COMMON


class Relocation(NamedTuple):
    """A change, of `kind`, of what is at `offset` of a section: about `addend` beyond `symbol`, a number."""

    offset: int
    kind: int
    symbol: int
    addend: int


class Symbols(NamedTuple):
    """The names that other objects can see: `defined` here or `undefined`; `pointers` are the defined ones at
    which 8 bytes can be written."""

    defined: frozenset[str]
    undefined: frozenset[str]
    pointers: frozenset[str]


def read_symbols(content: bytes) -> Symbols:
    """Return the symbols of the object code `content`; raises ObjectFormatError unless all of it has the form
    above."""
    return ObjectFile(content).symbols_seen()


class ObjectFile:
    """Object code that has the form above; creating one raises ObjectFormatError for any other `content`.

    `relocations` has the number of each section that relocations change, and these.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.machine, table, count, names = _header(content)
        self.sections = [SectionRow._make(row) for row in _rows(_SECTION, content, table, count)]
        _require(tuple(self.sections[0]) == (0,) * 10, "a first section that is not empty")
        _require(names < count and self.sections[names].kind == _STRTAB, "no section with names")
        self.strings = self._strings(self.sections[names])
        for number, section in enumerate(self.sections[1:], 1):
            self._check_section(number, section)
        self.table = self._only(_SYMTAB)
        self._only(_STRTAB)
        self.symbols = self._read_symbols()
        self.names = self._read_names()
        relocated = [self._relocations(section) for section in self.sections if section.kind == _RELA]
        self.relocations = dict(relocated)
        _require(len(self.relocations) == len(relocated), "two tables of relocations for one section")
        for number, section in enumerate(self.sections):
            if self._is_unwinding(section):
                _check_frames(self, section, self.relocations.get(number, []))

    def loaded(self) -> Iterator[tuple[int, SectionRow, bytes]]:
        """Yield the number, row and content of each section that the code needs in memory when it runs.

        Unwind tables are left out: nothing unwinds this code.
        """
        for number, section in enumerate(self.sections):
            if section.flags & _ALLOC and not self._is_unwinding(section):
                zeros = section.kind == _NOBITS
                yield number, section, bytes(section.size) if zeros else self._bytes(section)

    def symbols_seen(self) -> Symbols:
        """Return the names that other objects can see."""
        defined: set[str] = set()
        undefined: set[str] = set()
        pointers: set[str] = set()
        for name, symbol in zip(self.names, self.symbols, strict=True):
            if symbol.is_local:
                continue
            (undefined if symbol.is_undefined else defined).add(name)
            if not symbol.is_undefined and self._holds_pointer(symbol):
                pointers.add(name)
        return Symbols(frozenset(defined), frozenset(undefined), frozenset(pointers))

    def _holds_pointer(self, symbol: Symbol) -> bool:
        if symbol.section == _COMMON:
            return symbol.size >= 8
        section = self.sections[symbol.section]
        return bool(section.flags & _WRITE) and symbol.value + 8 <= section.size

    def text(self, offset: int) -> str:
        """Return the name at `offset` of the string table."""
        if offset >= len(self.strings):
            raise ObjectFormatError(f"it has a name at {offset} of {len(self.strings)} bytes of names")
        return self.strings[offset : self.strings.index(b"\0", offset)].decode("ascii")

    def _strings(self, section: SectionRow) -> bytes:
        found = self._bytes(section)
        _require(found[:1] == b"\0" == found[-1:] and found.isascii(), "names that are none")
        return found

    def _bytes(self, section: SectionRow) -> bytes:
        end = section.offset + section.size
        _require(end <= len(self.content), f"a section that ends at {end} of {len(self.content)} bytes")
        return self.content[section.offset : end]

    def _only(self, kind: int) -> int:
        found = [number for number, section in enumerate(self.sections) if section.kind == kind]
        _require(len(found) == 1, f"{len(found)} sections of kind {kind}")
        return found[0]

    def _check_section(self, number: int, section: SectionRow) -> None:
        name = self.text(section.name)
        _require(section.kind in _FLAGS, f"section {name} of kind {section.kind:#x}")
        _require(not section.flags & ~_FLAGS[section.kind], f"section {name} with flags {section.flags:#x}")
        fits = section.address == 0 and _fits(name, section, self.machine.unwind)
        _require(fits, f"section {name} of kind {section.kind:#x}")
        _require(_is_alignment(section.alignment), f"section {name} aligned to {section.alignment}")
        if section.kind == _NOBITS:
            _require(section.size <= _LARGEST_ZEROS, f"{section.size} bytes of zeros")
        else:
            self._bytes(section)
        self._check_entries(name, section)

    def _check_entries(self, name: str, section: SectionRow) -> None:
        """Check the entry size of a section, and the two numbers whose meaning depends on its kind."""
        if section.kind in (_SYMTAB, _RELA):
            _require(
                section.entry == 24 and section.size % 24 == 0, f"entries of {section.entry} bytes in {name}"
            )
            return
        _require((section.link, section.info) == (0, 0), f"section {name} that refers to others")
        merged = section.flags & _MERGE
        _require(bool(merged) == bool(section.entry), f"entries of {section.entry} bytes in {name}")
        _require(not merged or section.size % section.entry == 0, f"a part of an entry in {name}")

    def _read_symbols(self) -> list[Symbol]:
        table = self.sections[self.table]
        strings = self.sections[table.link] if table.link < len(self.sections) else None
        _require(strings is not None and strings.kind == _STRTAB, "symbols without names")
        found = [Symbol._make(row) for row in _SYMBOL.iter_unpack(self._bytes(table))]
        _require(bool(found) and tuple(found[0]) == (0,) * 6, "a first symbol that is not empty")
        _require(1 <= table.info <= len(found), f"{table.info} local symbols of {len(found)}")
        for number, symbol in enumerate(found[1:], 1):
            self._check_symbol(symbol, number < table.info)
        return found

    def _read_names(self) -> list[str]:
        """Return the names of the symbols. LLVM looks up even local symbols by name, except sections and
        marks."""
        found = [self.text(symbol.name) for symbol in self.symbols]
        kinds = [symbol.info & 15 for symbol in self.symbols]
        named = [
            name
            for name, symbol in zip(found, self.symbols, strict=True)
            if symbol.info & 15 not in (_OF_SECTION, _OF_FILE) and not self._is_mark(name, symbol)
        ][1:]
        unnamed = [name for name, kind in zip(found, kinds, strict=True) if kind == _OF_SECTION]
        _require(all(named) and not any(unnamed), "a symbol without a name")
        _require(len(set(named)) == len(named), "two symbols of one name")
        return found

    def _is_unwinding(self, section: SectionRow) -> bool:
        return section.kind == self.machine.unwind and self.text(section.name) == _FRAMES

    def _is_mark(self, name: str, symbol: Symbol) -> bool:
        """Return True for a local symbol that says if code or data begin there; many have one name."""
        return name in self.machine.marks and symbol.info == _NO_TYPE and symbol.size == 0

    def _check_symbol(self, symbol: Symbol, is_local: bool) -> None:
        binding, kind = symbol.info >> 4, symbol.info & 15
        is_bound = binding == _LOCAL if is_local else binding in (_GLOBAL, _WEAK)
        is_known = kind <= _OF_FILE and symbol.other in (0, _HIDDEN)
        _require(is_bound and is_known and symbol.name < len(self.strings), "a symbol of another kind")
        if symbol.section == _UNDEFINED:
            is_plain = not is_local and kind == _NO_TYPE
            _require(is_plain and (symbol.value, symbol.size) == (0, 0), "an undefined symbol with a place")
        elif kind == _OF_FILE or symbol.section == _ABSOLUTE:
            is_file = kind == _OF_FILE and symbol.section == _ABSOLUTE and is_local
            _require(is_file and (symbol.value, symbol.size) == (0, 0), "an absolute symbol")
        elif symbol.section == _COMMON:
            is_plain = not is_local and kind == _OBJECT and 0 < symbol.size <= _LARGEST_ZEROS
            _require(is_plain and _is_alignment(symbol.value), "a common symbol of another form")
        else:
            self._check_place(symbol, kind)

    def _check_place(self, symbol: Symbol, kind: int) -> None:
        _require(symbol.section < len(self.sections), "a symbol in no section")
        section = self.sections[symbol.section]
        is_mark = self._is_mark(self.text(symbol.name), symbol)
        is_loaded = bool(section.flags & _ALLOC) and (is_mark or not self._is_unwinding(section))
        _require(is_loaded, "a symbol in what is not loaded")
        _require(symbol.value + symbol.size <= section.size, "a symbol beyond its section")
        if kind == _OF_SECTION:
            _require(
                symbol.info >> 4 == _LOCAL and (symbol.value, symbol.size) == (0, 0), "a section's symbol"
            )
        if kind == _FUNCTION:
            _require(bool(section.flags & _CODE), "a function among data")

    def _relocations(self, table: SectionRow) -> tuple[int, list[Relocation]]:
        """Return the number of the section that `table` relocates, and its relocations."""
        _require(table.link == self.table and table.info < len(self.sections), "relocations of nothing")
        target = self.sections[table.info]
        named = self.text(table.name) == f".rela{self.text(target.name)}"
        loaded = target.kind in (_PROGBITS, _UNWIND) and bool(target.flags & _ALLOC)
        _require(named and loaded and not target.flags & _MERGE, "relocations of what is not loaded")
        found = [Relocation._make(row) for row in _RELOCATION.iter_unpack(self._bytes(table))]
        self._check_relocations(found, self._bytes(target))
        return table.info, found

    def _check_relocations(self, found: Sequence[Relocation], content: bytes) -> None:
        """Refuse relocations that LLVM does not know, or cannot apply to `content`."""
        changes, reaches = (
            self.machine.changes,
            [self._reach(symbol, len(content)) for symbol in self.symbols],
        )
        empty = {4: bytes(4), 8: bytes(8)}
        for offset, kind, symbol, addend in found:
            change = changes.get(kind)
            if change is None or symbol >= len(reaches) or offset < change.before:
                raise ObjectFormatError(f"it has a relocation of kind {kind} at {offset}, to symbol {symbol}")
            low, high, is_here = reaches[symbol]
            if not low <= addend <= high or (change.is_near and not is_here):
                raise ObjectFormatError(f"it has a relocation at {offset} to {addend} beyond symbol {symbol}")
            place = content[offset : offset + change.size]
            if place != empty[change.size] and (change.is_empty or len(place) != change.size):
                raise ObjectFormatError(f"it has a relocation at {offset} of what holds {place.hex()}")

    def _reach(self, symbol: Symbol, size: int) -> tuple[int, int, bool]:
        """Return the lowest and highest offset from `symbol` that a relocation may use, and if the symbol is
        in this file."""
        if symbol.section == _UNDEFINED:
            return (-_SLACK, _SLACK, False) if symbol.name else (1, 0, False)
        if symbol.section == _ABSOLUTE:
            return 1, 0, False
        if symbol.section == _COMMON:
            return -_SLACK, symbol.size + _SLACK, True
        slack = _SLACK + size
        return -symbol.value - slack, self.sections[symbol.section].size - symbol.value + slack, True


def _header(content: bytes) -> tuple[_Machine, int, int, int]:
    """Return the processor, the offset and length of the section table, and the section with the names."""
    _require(len(content) >= _HEADER.size, f"{len(content)} bytes")
    found = _HEADER.unpack_from(content)
    identification, kind, machine, version, entry, segments, table, flags, size, *rest = found
    segment_size, segment_count, section_size, count, names = rest
    known = _MACHINES.get(machine)
    plain = (kind, version, entry, segments, flags, size, segment_size, segment_count, section_size)
    _require(identification == _MAGIC + b"\x01" + bytes(9), f"it begins with {identification.hex()}")
    _require(plain == (_RELOCATABLE, 1, 0, 0, 0, 64, 0, 0, 64), "a header of something else")
    _require(known is not None and known.name == platform.machine(), f"processor {machine}")
    _require(3 <= count <= _MOST_SECTIONS and table % 8 == 0, f"{count} sections at {table}")
    assert known is not None
    return known, table, count, names


def _is_alignment(number: int) -> bool:
    return 0 < number <= _LARGEST_ALIGNMENT and not number & (number - 1)


def _fits(name: str, section: SectionRow, unwind: int) -> bool:
    """Return True if a section of that name may be of that kind: LLVM gives some names a meaning of their
    own."""
    if section.kind == _RELA:
        return name.startswith(".rela.")
    if section.kind == _UNWIND or name == _FRAMES:
        return name == _FRAMES and (section.kind, section.flags) == (unwind, _ALLOC)
    if section.kind == _NOBITS or section.flags & _ALLOC:
        stem = name[1:].partition(".")[0]
        return f".{stem}" in _NAMES and bool(section.flags & _ALLOC)
    return name in _OTHER_NAMES


def _check_frames(found: ObjectFile, section: SectionRow, relocations: Sequence[Relocation]) -> None:
    """Refuse unwind tables that are not a chain of records, each describing some of the code."""
    content = found.content[section.offset : section.offset + section.size]
    by_offset = {relocation.offset: relocation for relocation in relocations}
    _require(len(by_offset) == len(relocations), "two relocations at one place")
    commons: dict[int, int] = {}
    position = described = 0
    while position < len(content):
        _require(position + 8 <= len(content), "a record of unwinding cut short")
        size, back = struct.unpack_from("<II", content, position)
        end = position + 4 + size
        is_whole = size >= 8 and size % 4 == 0 and end <= len(content)
        _require(is_whole, "a record of unwinding of another size")
        if back == 0:
            commons[position] = _pointer_size(found.machine, content[position + 8 : end])
        else:
            width = commons.get(position + 4 - back, 0)
            _check_description(found, content[position + 8 : end], width, by_offset.get(position + 8))
            described += 1
        position = end
    _require(described == len(by_offset), "relocations of something else in a record of unwinding")


def _pointer_size(machine: _Machine, common: bytes) -> int:
    """Return how many bytes a pointer has in the records that refer to `common`."""
    start = b"\x01zR\0" + machine.common + b"\x01"
    _require(common.startswith(start) and len(common) > len(start), "a record of unwinding of another form")
    encoding = common[len(start)]
    _require(encoding in _POINTER_SIZES, f"pointers encoded as {encoding:#x}")
    return _POINTER_SIZES[encoding]


def _check_description(found: ObjectFile, record: bytes, width: int, relocation: Relocation | None) -> None:
    """Refuse a record unless it describes code of this file, and contains nothing else."""
    _require(width > 0 and len(record) > 2 * width, "a record of unwinding that belongs to none")
    _require(relocation is not None, "a record of unwinding for no code")
    assert relocation is not None
    _require(found.machine.in_frames.get(relocation.kind) == width, "a relocation of another size")
    _require(not any(record[:width]) and record[2 * width] == 0, "a record of unwinding of another form")
    symbol = found.symbols[relocation.symbol]
    _require(_UNDEFINED < symbol.section < len(found.sections), "a record of unwinding for other code")
    section = found.sections[symbol.section]
    start = symbol.value + relocation.addend
    end = start + int.from_bytes(record[width : 2 * width], "little")
    inside = 0 <= start < end <= section.size and bool(section.flags & _CODE)
    _require(inside, "a record of unwinding beyond the code")


def _rows(layout: struct.Struct, content: bytes, offset: int, count: int) -> Iterator[tuple[int, ...]]:
    end = offset + layout.size * count
    _require(end <= len(content), f"a table that ends at {end} of {len(content)} bytes")
    return layout.iter_unpack(content[offset:end])


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise ObjectFormatError(f"it has {found}")
