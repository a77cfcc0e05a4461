"""Linked objects see each other and what they are given, nothing else, and are freed when nobody holds them.

On x86-64 by our linker, and by LLVM's, which other processors have.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from cachegraph.errors import ObjectFormatError, ObjectLinkError
from cachegraph.object_code import code_memory
from cachegraph.object_code.elf import ObjectFile
from cachegraph.object_code.jit_linker import link_by_llvm
from cachegraph.object_code.linked import LinkedObjects
from cachegraph.object_code.linking import link

Link = Callable[[Sequence[ObjectFile], Mapping[str, int], Sequence[str]], LinkedObjects]
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)
on_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="others are linked by LLVM")


def compiled(source: str) -> ObjectFile:
    """Return the object code of LLVM IR."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
    return ObjectFile(target.emit_object(llvm.parse_assembly(source)))


FOUR = compiled("define i32 @four() { ret i32 4 }")
CALLS = compiled(
    "declare i32 @four()\ndefine i32 @more() { %a = call i32 @four() %b = add i32 %a, 1 ret i32 %b }"
)
READS = """
@number = {kind} global i32 {value}
define i32 @{name}() {{ %a = load i32, ptr @number ret i32 %a }}
"""


@pytest.fixture(
    params=[pytest.param(link, id="ours", marks=on_x86_64), pytest.param(link_by_llvm, id="llvm")]
)
def linked_by(request: pytest.FixtureRequest) -> Link:
    found: Link = request.param
    return found


def called(linked: LinkedObjects, name: str) -> int:
    result: int = FUNCTION(linked.addresses[name])()
    return result


def test_objects_are_linked_with_each_other(linked_by: Link) -> None:
    linked = linked_by([FOUR, CALLS], {}, ["more", "four"])
    assert set(linked.addresses) == {"more", "four"}
    assert [called(linked, name) for name in ("more", "four")] == [5, 4]


def test_an_object_calls_what_it_is_given_an_address_of(linked_by: Link) -> None:
    other = FUNCTION(lambda: 8)
    address = ctypes.cast(other, ctypes.c_void_p).value
    assert address
    linked = linked_by(
        [CALLS, compiled("declare i32 @four() define ptr @where() { ret ptr @four }")],
        {"four": address},
        ["more", "where"],
    )
    assert called(linked, "more") == 9
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(linked.addresses["where"])() == address


def test_data_is_written_in_place_and_constants_are_read(linked_by: Link) -> None:
    linked = linked_by(
        [
            compiled("""
@count = global i32 5
@zero = internal global [1000 x i32] zeroinitializer
@primes = internal constant [8 x i32] [i32 2, i32 3, i32 5, i32 7, i32 11, i32 13, i32 17, i32 19]
@table = global [2 x ptr] [ptr @primes, ptr getelementptr (i8, ptr @primes, i64 28)]
define i32 @next() {
  %a = load i32, ptr @count  %b = add i32 %a, 1  store i32 %b, ptr @count
  %z = load i32, ptr getelementptr (i8, ptr @zero, i64 3996)
  %p = load ptr, ptr getelementptr (i8, ptr @table, i64 8)  %last = load i32, ptr %p
  %s = mul i32 %b, 100  %t = add i32 %s, %last  %u = add i32 %t, %z  ret i32 %u
}
""")
        ],
        {},
        ["next", "count", "table"],
    )
    assert [called(linked, "next") for _ in range(2)] == [619, 719]
    assert ctypes.c_int.from_address(linked.addresses["count"]).value == 7
    first, last = (ctypes.c_void_p * 2).from_address(linked.addresses["table"])
    assert last - first == 28


def test_a_weak_definition_counts_where_there_is_no_other(linked_by: Link) -> None:
    weak = [compiled(READS.format(kind="weak", value=n, name=f"read{n}")) for n in (1, 2)]
    strong = compiled(READS.format(kind="", value=3, name="read3"))
    linked = linked_by(weak, {}, ["read1", "read2"])
    assert [called(linked, name) for name in ("read1", "read2")] == [1, 1]
    linked = linked_by([*weak, strong], {}, ["read1", "read2", "read3"])
    assert [called(linked, f"read{n}") for n in (1, 2, 3)] == [3, 3, 3]


def test_common_symbols_are_one_place(linked_by: Link) -> None:
    def common(name: str) -> ObjectFile:
        return compiled(f"""
@shared = common global ptr null, align 8
define i32 @{name}() {{
  %a = load i32, ptr @shared  %b = add i32 %a, 1  store i32 %b, ptr @shared  ret i32 %b
}}
""")

    linked = linked_by([common("one"), common("two")], {}, ["one", "two", "shared"])
    assert [called(linked, name) for name in ("one", "two", "one")] == [1, 2, 3]
    assert ctypes.c_int.from_address(linked.addresses["shared"]).value == 3


@pytest.mark.parametrize(
    ("objects", "exports", "message"),
    [([CALLS], ["more"], "four|more"), ([FOUR, FOUR], ["four"], "four"), ([FOUR], ["other"], "other")],
)
def test_what_cannot_be_linked_is_an_error_and_linking_goes_on(
    objects: list[ObjectFile], exports: list[str], message: str, linked_by: Link
) -> None:
    with pytest.raises(ObjectLinkError, match=message):
        linked_by(objects, {}, exports)
    assert called(linked_by([FOUR], {}, ["four"]), "four") == 4


def test_what_is_no_object_is_refused_before() -> None:
    with pytest.raises(ObjectFormatError):
        ObjectFile(b"no object")


def test_code_goes_with_its_holder(linked_by: Link) -> None:
    linked = [linked_by([FOUR], {}, ["four"]) for _ in range(50)]
    gone = [weakref.ref(found) for found in linked[1:]]
    del linked[1:]
    gc.collect()
    assert not any(found() for found in gone)
    assert called(linked[0], "four") == 4


def mapping_at(address: int) -> str:
    """Return the permissions of the memory at `address`; "" if there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = [int(number, 16) for number in line.split()[0].split("-")]
        if low <= address < high:
            return line.split()[1]
    return ""


@on_x86_64
def test_no_memory_is_both_written_and_executed_and_all_of_it_is_given_back() -> None:
    source = READS.format(kind="", value=1, name="read") + "@fixed = constant i32 6"
    linked = link([compiled(source)], {}, ["read", "number", "fixed"])
    addresses = dict(linked.addresses)
    found = [mapping_at(addresses[name]) for name in ("read", "number", "fixed")]
    assert found == ["r-xp", "rw-p", "r--p"]
    del linked
    gc.collect()
    assert [mapping_at(address) for address in addresses.values()] == ["", "", ""]


@on_x86_64
@pytest.mark.parametrize("refused", ["mmap", "mprotect"])
def test_memory_that_the_system_refuses_is_an_error(refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    libc = code_memory._libc()

    class Refusing:
        def __getattr__(self, name: str) -> object:
            failed = {"mmap": lambda *_: ctypes.c_void_p(-1).value, "mprotect": lambda *_: -1}
            return failed[name] if name == refused else getattr(libc, name)

    monkeypatch.setattr(code_memory, "_libc", Refusing)
    with pytest.raises(ObjectLinkError, match="allow this process to have executable memory"):
        link([FOUR], {}, ["four"])
