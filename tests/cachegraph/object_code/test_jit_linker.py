"""Linked objects see each other and what they are given, nothing else, and are freed when nobody holds them."""

from __future__ import annotations

import ctypes
import gc
import weakref

import llvmlite.binding as llvm
import pytest

from cachegraph.object_code.jit_linker import JITLinker

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)


def compiled(source: str) -> bytes:
    """Return the object code of LLVM IR."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
    code: bytes = target.emit_object(llvm.parse_assembly(source))
    return code


FOUR = compiled("define i32 @four() { ret i32 4 }")
CALLS = compiled(
    "declare i32 @four()\ndefine i32 @more() { %a = call i32 @four() %b = add i32 %a, 1 ret i32 %b }"
)


def test_objects_are_linked_with_each_other() -> None:
    linked = JITLinker().link([FOUR, CALLS], {}, ["more", "four"])
    assert set(linked.addresses) == {"more", "four"}
    assert [FUNCTION(linked.addresses[name])() for name in ("more", "four")] == [5, 4]


def test_an_object_calls_what_it_is_given_an_address_of() -> None:
    other = FUNCTION(lambda: 8)
    address = ctypes.cast(other, ctypes.c_void_p).value
    assert address
    linked = JITLinker().link([CALLS], {"four": address}, ["more"])
    assert FUNCTION(linked.addresses["more"])() == 9


@pytest.mark.parametrize(
    ("objects", "exports", "message"),
    [
        ([CALLS], ["more"], "more"),
        ([FOUR, FOUR], ["four"], "four"),
        ([FOUR], ["other"], "other"),
        ([b"no object"], [], "."),
    ],
)
def test_what_cannot_be_linked_is_an_error_and_the_linker_goes_on(
    objects: list[bytes], exports: list[str], message: str
) -> None:
    linker = JITLinker()
    with pytest.raises(RuntimeError, match=message):
        linker.link(objects, {}, exports)
    linked = linker.link([FOUR], {}, ["four"])
    assert FUNCTION(linked.addresses["four"])() == 4


def test_code_outlives_its_linker_and_goes_with_its_holder() -> None:
    linker = JITLinker()
    linked = [linker.link([FOUR], {}, ["four"]) for _ in range(50)]
    gone = [weakref.ref(linker), *map(weakref.ref, linked[1:])]
    del linker, linked[1:]
    gc.collect()
    assert not any(found() for found in gone)
    assert FUNCTION(linked[0].addresses["four"])() == 4
