"""A stored kernel comes back as it was; any damage is refused before LLVM sees a byte."""

import random

import pytest

from engine.runtime.container import pack_kernel, unpack_kernel
from engine.runtime.errors import ForeignTarget, KernelFormatError

OBJECTS = {"x86-64": b"weak" * 20, "x86-64-v3": b"strong" * 20}


@pytest.fixture(scope="module")
def packed():
    return pack_kernel("k_abc", "x86_64-unknown-linux-gnu", OBJECTS)


def test_a_stored_kernel_is_read_back(packed):
    stored = unpack_kernel(packed)
    assert (stored.symbol, stored.triple) == ("k_abc", "x86_64-unknown-linux-gnu")
    assert [variant.level for variant in stored.variants] == list(OBJECTS)


@pytest.mark.parametrize(
    ("levels", "chosen"),
    [
        (("x86-64-v3", "x86-64"), "x86-64-v3"),
        (("x86-64",), "x86-64"),
        (("x86-64-v9", "x86-64"), "x86-64"),
    ],
)
def test_the_best_level_of_the_machine_is_chosen(packed, levels, chosen):
    assert unpack_kernel(packed).object_for(levels) == OBJECTS[chosen]


def test_a_kernel_for_other_levels_is_foreign(packed):
    with pytest.raises(ForeignTarget) as caught:
        unpack_kernel(packed).object_for(("generic",))
    assert "x86-64-v3" in str(caught.value)
    assert "generic" in str(caught.value)


def test_a_kernel_cut_short_or_prolonged_is_refused(packed):
    for size in range(len(packed)):
        with pytest.raises(KernelFormatError):
            unpack_kernel(packed[:size])
    with pytest.raises(KernelFormatError):
        unpack_kernel(packed + b"\0")


def test_any_flipped_bit_is_refused(packed):
    for position in range(len(packed)):
        damaged = bytearray(packed)
        damaged[position] ^= 1 << random.Random(position).randrange(8)
        with pytest.raises(KernelFormatError):
            every_object(bytes(damaged))


def test_a_header_that_lies_is_refused(packed):
    for written in (packed.replace(b"\x01\x00\x01\x00", b"\x02\x00\x01\x00", 1), bytes(8) + packed[8:], b""):
        with pytest.raises(KernelFormatError):
            unpack_kernel(written)


def every_object(content):
    stored = unpack_kernel(content)
    return [stored.object_for((variant.level,)) for variant in stored.variants]
