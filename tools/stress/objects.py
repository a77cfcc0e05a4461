"""Object code that somebody tampered with, in containers whose sums are right: it is refused, or
linked; no process dies of it.

    python tools/stress/objects.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

A round forks a child that links a few hundred mutants of compiled kernels, as a hit does, and tells
which it is at. A mutant has some fields of its ELF changed, to values that are odd or near others:
in the header, the sections, the symbols, the relocations, the unwind tables, or anywhere. Nothing
of it is called: what linked code does is its writer's (docs/hpc.md).
"""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
from rounds import run

from cachegraph.errors import CachegraphError
from cachegraph.object_code.elf import read_symbols
from engine.runtime.container import pack_kernel
from engine.runtime.errors import BackendError
from engine.runtime.load import Loader
from engine.runtime.target import process_level, process_triple

MUTANTS = 300
LONGEST = 60
"""Seconds after which a child is not working but hanging."""

SYMBOL = "k_attacked"
SOURCE = """
declare double @exp(double)
declare double @pow(double, double)
declare ptr @memcpy(ptr, ptr, i64)
@table = internal constant [8 x ptr] [ptr @hidden, ptr @hidden, ptr @hidden, ptr @hidden,
                                      ptr @hidden, ptr @hidden, ptr @hidden, ptr @hidden]
@kept = internal global i64 7
define internal double @hidden(double %x) noinline uwtable {
  %y = call double @pow(double %x, double 2.5)
  ret double %y
}
define i32 @k_attacked(ptr %words) uwtable {
  %place = load ptr, ptr %words
  %x = load double, ptr %place
  %index = load i64, ptr @kept
  store volatile i64 %index, ptr @kept
  switch i64 %index, label %other [
    i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %other
  ]
a:
  %ya = call double @exp(double %x)
  br label %end
b:
  store volatile ptr @exp, ptr %words
  %yb = fmul double %x, 1.25
  br label %end
c:
  %slot = getelementptr [8 x ptr], ptr @table, i64 0, i64 %index
  %function = load ptr, ptr %slot
  %yc = call double %function(double %x)
  br label %end
d:
  %copied = call ptr @memcpy(ptr %place, ptr %words, i64 4096)
  br label %end
other:
  %yo = call double @hidden(double %x)
  br label %end
end:
  %y = phi double [%ya, %a], [%yb, %b], [%yc, %c], [%x, %d], [%yo, %other]
  store double %y, ptr %place
  ret i32 0
}
"""

_ODD = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    24,
    63,
    64,
    127,
    128,
    255,
    256,
    0xFF00,
    0xFFF1,
    0xFFF2,
    0xFFFF,
    2**31 - 1,
    2**31,
)
_ODDER = (2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1)


def attack(source: random.Random, directory: Path) -> str | None:
    """Link mutants in a child; if it dies or hangs, return the mutant's name and keep its file."""
    reader, writer = os.pipe()
    seed = source.getrandbits(64)
    child = os.fork()
    if child == 0:
        _link_mutants(random.Random(seed), writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return None
    at = len(said) - 1
    died = (
        signal.Signals(os.WTERMSIG(status)).name
        if os.WIFSIGNALED(status)
        else f"code {os.WEXITSTATUS(status)}"
    )
    changes = _changes_of(random.Random(seed), at)
    return f"mutant {at} ended the process ({died}): {changes}"


def _link_mutants(source: random.Random, writer: int) -> None:
    """Link mutants in the child and end it: with 0 if each was linked or refused with our error."""
    signal.alarm(LONGEST)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    code = 1
    try:
        for mutant, _ in _mutants(source):
            os.write(writer, b".")
            with suppress(CachegraphError, BackendError):
                Loader().load(pack_kernel(SYMBOL, process_triple(), process_level(), mutant), SYMBOL)
        code = 0
    finally:
        os._exit(code)


def _changes_of(source: random.Random, which: int) -> str:
    for number, (_, changes) in enumerate(_mutants(source)):
        if number == which:
            return ", ".join(f"byte {place}: {size} bytes are {value:#x}" for place, size, value in changes)
    return "before the first"


def _mutants(source: random.Random) -> Iterator[tuple[bytes, list[tuple[int, int, int]]]]:
    originals = _originals()
    for _ in range(MUTANTS):
        original = source.choice(originals)
        fields = _fields(original)
        mutant = bytearray(original)
        changes = []
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            place, size = source.choice(fields)
            value = _value(
                source, int.from_bytes(mutant[place : place + size], "little"), size, len(original)
            )
            mutant[place : place + size] = value.to_bytes(size, "little")
            changes.append((place, size, value))
        yield bytes(mutant), changes


def _value(source: random.Random, before: int, size: int, length: int) -> int:
    kind = source.randrange(5)
    if kind == 0:
        found = before + source.choice((-64, -24, -8, -4, -1, 1, 4, 8, 24, 64))
    elif kind == 1:
        found = before ^ 1 << source.randrange(8 * size)
    elif kind == 2:
        found = source.randrange(length + 64)
    else:
        found = source.choice(_ODD if kind == 3 else _ODD + _ODDER)
    return int(found % (1 << 8 * size))


@cache
def _originals() -> tuple[bytes, ...]:
    """Return objects with every kind of section that kernels have, of the small and the large code model."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machines = (
        target.create_target_machine(reloc=reloc, codemodel=model, jit=True)
        for reloc, model in (("pic", "default"), ("static", "jitdefault"))
    )
    found = tuple(machine.emit_object(llvm.parse_assembly(SOURCE)) for machine in machines)
    assert all(read_symbols(code).defined == {SYMBOL} for code in found), "the originals must pass"
    return found


@cache
def _fields(code: bytes) -> tuple[tuple[int, int], ...]:
    """Return (offset, size) of the fields a mutant may change; each part of the file about equally often."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    (count,) = struct.unpack_from("<H", code, 0x3C)
    parts = [_layout("HHIQQQIHHHHHH", 16), [(place, 1) for place in range(16)]]
    for number in range(count):
        header = table + 64 * number
        parts.append(_layout("IIQQQQIIQQ", header))
        kind, _, _, place, size = struct.unpack_from("<IQQQQ", code, header + 4)
        if kind == 2:
            parts += [_layout("IBBHQQ", at) for at in range(place, place + size, 24)]
        elif kind == 4:
            parts += [_layout("QIIQ", at) for at in range(place, place + size, 24)]
        elif kind not in (0, 8) and size:
            parts.append([(at, 4) for at in range(place, place + size - 3, 4)])
    return tuple(field for part in parts for field in part * (1 + 20 // len(part)))


def _layout(fields: str, place: int) -> list[tuple[int, int]]:
    found = []
    for field in fields:
        size = struct.calcsize(f"<{field}")
        found.append((place, size))
        place += size
    return found


if __name__ == "__main__":
    if process_triple().split("-")[0] != "x86_64" or not hasattr(os, "fork"):
        print("objects.py: its mutants are of x86-64's ELF, which this machine does not link")
        sys.exit()
    sys.exit(run(__doc__, attack))
