"""Symbols are read from object code; damage raises one kind of error and nothing else."""

import random
import struct

import llvmlite.binding as llvm
import pytest

from cachegraph.errors import ObjectFormatError
from cachegraph.object_code.elf import read_symbols

SOURCE = """
declare double @sin(double)
declare double @a_function_with_a_name_too_long_for_eight_bytes(double)
define internal double @hidden(double %x) noinline { ret double %x }
define double @entry(double %x) {
  %a = call double @sin(double %x)
  %b = call double @a_function_with_a_name_too_long_for_eight_bytes(double %a)
  %c = call double @hidden(double %b)
  ret double %c
}
"""


@pytest.fixture(scope="module")
def code():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(SOURCE)
    target = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
    return target.emit_object(module)


def test_what_an_object_defines_and_wants_is_read_from_itself(code):
    symbols = read_symbols(code)
    assert symbols.defined == {"entry"}
    assert symbols.undefined - {"_fltused"} == {"sin", "a_function_with_a_name_too_long_for_eight_bytes"}


def test_an_object_cut_short_anywhere_raises_only_the_format_error(code):
    outcomes = [refused(code[:size]) for size in range(0, len(code), 3)]
    assert outcomes[0]
    assert sum(outcomes) > len(outcomes) // 2


def test_a_damaged_object_raises_only_the_format_error(code):
    source = random.Random(5)
    outcomes = []
    for _ in range(3000):
        damaged = bytearray(code)
        for _ in range(source.randrange(1, 4)):
            damaged[source.randrange(len(code))] = source.choice((0, 1, 127, 128, 255, source.randrange(256)))
        outcomes.append(refused(bytes(damaged)))
    assert any(outcomes)
    assert not all(outcomes)


def test_huge_counts_and_offsets_are_refused_at_once(code):
    for position in range(0, min(len(code) - 8, 400), 4):
        refused(code[:position] + struct.pack("<Q", 2**63 - 1) + code[position + 8 :])
        refused(code[:position] + struct.pack("<I", 2**31) + code[position + 4 :])


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"MZ" + bytes(64), bytes(100), b"#!/bin/sh\n"])
def test_what_is_no_object_is_refused(content):
    with pytest.raises(ObjectFormatError):
        read_symbols(content)


def refused(content):
    try:
        read_symbols(content)
    except ObjectFormatError:
        return True
    return False
