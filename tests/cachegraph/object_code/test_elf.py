"""ELF that LLVM's linker would end the process on is refused before; what LLVM writes of our code passes."""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable

import llvmlite.binding as llvm
import pytest

from cachegraph.errors import ObjectFormatError
from cachegraph.object_code.elf import read_symbols

SOURCE = """
declare double @exp(double)
@table = internal constant [2 x ptr] [ptr @hidden, ptr @hidden]
@kept = internal global i64 7
@environment = common global ptr null
@constant_environment = constant ptr null
define internal double @hidden(double %x) noinline uwtable {
  %y = fadd double %x, 2.5
  ret double %y
}
define double @entry(double %x, i64 %i) uwtable {
  %slot = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
  %function = load ptr, ptr %slot
  %index = load i64, ptr @kept
  store volatile i64 %i, ptr @kept
  %y = call double %function(double %x)
  %z = call double @exp(double %y)
  ret double %z
}
"""
SECTION = "<IIQQQQIIQQ"
PC32 = 2

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the relocations are those of x86-64"
)


def compiled(reloc: str, model: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(reloc=reloc, codemodel=model, jit=True)
    return bytes(machine.emit_object(llvm.parse_assembly(SOURCE)))


@pytest.fixture(scope="module")
def code() -> bytes:
    return compiled("pic", "default")


class Mutant:
    """An object that is changed field by field."""

    def __init__(self, code: bytes) -> None:
        self.code = bytearray(code)
        (self.table,) = struct.unpack_from("<Q", code, 0x28)
        (count,) = struct.unpack_from("<H", code, 0x3C)
        self.sections = [struct.unpack_from(SECTION, code, self.table + 64 * n) for n in range(count)]

    def find(self, name: str) -> int:
        """The number of the section of that name."""
        strings = next(section[4] for section in self.sections if section[1] == 3)
        wanted = name.encode() + b"\0"
        return next(n for n, s in enumerate(self.sections) if self.code.startswith(wanted, strings + s[0]))

    def place(self, name: str) -> int:
        return int(self.sections[self.find(name)][4])

    def set(self, layout: str, place: int, value: int) -> None:
        struct.pack_into(f"<{layout}", self.code, place, value)

    def set_header(self, name: str, offset: int, layout: str, value: int) -> None:
        self.set(layout, self.table + 64 * self.find(name) + offset, value)

    def relocation(self, name: str, kind: int) -> int:
        """Where the first relocation of that kind is written in the table of that name."""
        _, _, _, _, start, size, *_ = self.sections[self.find(name)]
        found = range(start, start + size, 24)
        return next(at for at in found if struct.unpack_from("<I", self.code, at + 8) == (kind,))

    def symbol(self, name: str) -> int:
        """Where the symbol of that name is written."""
        strings = next(section[4] for section in self.sections if section[1] == 3)
        _, _, _, _, start, size, *_ = self.sections[self.find(".symtab")]
        for at in range(start, start + size, 24):
            (offset,) = struct.unpack_from("<I", self.code, at)
            if self.code.startswith(name.encode() + b"\0", strings + offset):
                return at
        raise LookupError(name)


CHANGES: dict[str, Callable[[Mutant], None]] = {
    "a section's name beyond all names": lambda m: m.set_header(".text", 0, "I", 2**20),
    "a section of a kind that is treated in its own way": lambda m: m.set_header(".data", 4, "I", 17),
    "a section for each thread": lambda m: m.set_header(".data", 8, "Q", 0x403),
    "a section that is compressed": lambda m: m.set_header(".rodata.cst8", 8, "Q", 0x802),
    "a section beyond the file": lambda m: m.set_header(".text", 32, "Q", 2**40),
    "zeros without end": lambda m: (
        m.set_header(".data", 4, "I", 8),
        m.set_header(".data", 32, "Q", 2**45),
    ),
    "an alignment that no memory has": lambda m: m.set_header(".text", 48, "Q", 2**40),
    "an alignment that is none": lambda m: m.set_header(".text", 48, "Q", 24),
    "entries of no size": lambda m: m.set_header(".symtab", 56, "Q", 0),
    "more local symbols than symbols": lambda m: m.set_header(".symtab", 44, "I", 99),
    "relocations of a section that is not there": lambda m: m.set_header(".rela.text", 44, "I", 99),
    "relocations by symbols that are none": lambda m: m.set_header(".rela.text", 40, "I", 1),
    "a symbol in a section that is not there": lambda m: m.set("H", m.symbol("entry") + 6, 99),
    "a symbol beyond its section": lambda m: m.set("Q", m.symbol("entry") + 8, 2**40),
    "a symbol of a kind that is called to find it": lambda m: m.set("B", m.symbol("entry") + 4, 0x1A),
    "a local symbol without a name": lambda m: m.set("I", m.symbol("kept"), 0),
    "two symbols of one name": lambda m: m.set(
        "I", m.symbol("kept"), struct.unpack_from("<I", m.code, m.symbol("hidden"))[0]
    ),
    "a relocation of an unknown kind": lambda m: m.set("I", m.relocation(".rela.text", PC32) + 8, 99),
    "a relocation beyond its section": lambda m: m.set("Q", m.relocation(".rela.text", PC32), 2**40),
    "a relocation across its section's end": lambda m: m.set(
        "Q", m.relocation(".rela.text", PC32), m.sections[m.find(".text")][5] - 2
    ),
    "a relocation to a symbol that is not there": lambda m: m.set(
        "I", m.relocation(".rela.text", PC32) + 12, 99
    ),
    "a relocation to far away": lambda m: m.set("q", m.relocation(".rela.text", PC32) + 16, 2**40),
    "a near relocation to another library": lambda m: m.set(
        "I", m.relocation(".rela.text", PC32) + 12, (m.symbol("exp") - m.place(".symtab")) // 24
    ),
    "a relocation of what is not empty": lambda m: m.set(
        "I",
        m.place(".text") + struct.unpack_from("<Q", m.code, m.relocation(".rela.text", PC32))[0],
        0x7FFFFFF0,
    ),
    "a record of unwinding beyond its section": lambda m: m.set("I", m.place(".eh_frame"), 2**20),
    "a record of unwinding of another form": lambda m: m.set("B", m.place(".eh_frame") + 9, ord("P")),
    "a record of unwinding for more than the code": lambda m: m.set("I", m.place(".eh_frame") + 36, 2**20),
    "unwinding without its relocations": lambda m: m.set_header(".rela.eh_frame", 32, "Q", 0),
    "code of another processor": lambda m: m.set("H", 18, 183),
    "a program, not an object": lambda m: m.set("H", 16, 2),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_llvm_would_end_the_process_on_is_refused(what: str, code: bytes) -> None:
    mutant = Mutant(code)
    CHANGES[what](mutant)
    assert mutant.code != code
    with pytest.raises(ObjectFormatError):
        read_symbols(bytes(mutant.code))


@pytest.mark.parametrize(("reloc", "model"), [("pic", "default"), ("static", "jitdefault")])
def test_what_llvm_writes_passes(reloc: str, model: str) -> None:
    symbols = read_symbols(compiled(reloc, model))
    assert symbols.defined == {"entry", "environment", "constant_environment"}
    assert symbols.undefined == {"exp"}
    assert "environment" in symbols.pointers
    assert "entry" not in symbols.pointers
