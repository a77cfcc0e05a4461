"""A stored kernel comes back as it was; any damage is refused before LLVM sees a byte."""

import random

import pytest

from engine.runtime.container import StoredKernel, pack_kernel, unpack_kernel
from engine.runtime.errors import KernelFormatError

CODE = b"object code" * 20


@pytest.fixture(scope="module")
def packed():
    return pack_kernel("k_abc", "x86_64-unknown-linux-gnu", "x86-64-v3", CODE)


def test_a_stored_kernel_is_read_back(packed):
    found = StoredKernel("x86_64-unknown-linux-gnu", "x86-64-v3", "k_abc", CODE)
    assert unpack_kernel(packed) == found


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
            unpack_kernel(bytes(damaged))


def test_a_header_that_lies_is_refused(packed):
    for written in (packed.replace(b"\x02\x00\x01\x00", b"\x01\x00\x01\x00", 1), bytes(8) + packed[8:], b""):
        with pytest.raises(KernelFormatError):
            unpack_kernel(written)
