"""The stored form of a program."""

from __future__ import annotations

import numpy as np
import pytest

import engine.tensor as pt
from engine.runtime.program import (
    FORMAT,
    MAGIC,
    ArrayInput,
    KernelUse,
    ProgramFormatError,
    check_interface,
    pack_program,
    unpack_program,
)
from tests.engine.lowering.lowered import program


@pytest.fixture(scope="module")
def made():
    x, m, k = pt.vector("x"), pt.tensor("m", "float32", (None, 3)), pt.lvector("k")
    outputs = [pt.dot(m, x[k]) + 0.5, m.T.reshape((pt.sum(k), -1)), x * pt.constant([1.0, 2.0]), x]
    return program([x, m, k], outputs, updated=[0])


def test_a_program_comes_back_as_it_was(made):
    assert unpack_program(pack_program(made)) == made


def test_the_same_program_is_the_same_bytes(made):
    assert pack_program(unpack_program(pack_program(made))) == pack_program(made)


def test_it_begins_with_what_it_is_and_its_format(made):
    assert pack_program(made)[:5] == MAGIC + bytes((FORMAT,))


def test_every_truncation_is_refused(made):
    content = pack_program(made)
    for length in range(len(content)):
        with pytest.raises(ProgramFormatError):
            unpack_program(content[:length])


def test_the_error_says_what_was_found(made):
    content = pack_program(made)
    for damaged, words in [
        (b"X" + content[1:], "other bytes"),
        (content[:4] + b"\x07" + content[5:], "format 7 where 8 is read"),
        (content + b"\0", "bytes where the sections end"),
    ]:
        with pytest.raises(ProgramFormatError, match=words) as caught:
            unpack_program(damaged)
        assert caught.value.found in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"kernels": ()},
        {"kernels": (KernelUse(0, "", ""),)},
        {"kernels": (KernelUse(0, "", ""), KernelUse(20, "", ""))},
        {"outputs": (17,)},
        {"yields": ()},
        {"registers": b""},
        {"updates": ((0, 99),)},
    ],
    ids=str,
)
def test_a_program_that_names_what_it_has_not_is_refused(made, change):
    with pytest.raises(ProgramFormatError):
        unpack_program(pack_program(made._replace(**change)))


def test_a_program_is_that_of_one_interface(made):
    inputs = [ArrayInput("float64", (None,)), ArrayInput("float32", (None, 3)), ArrayInput("int64", (None,))]
    check_interface(made, inputs, 3, [0])
    for wrong in [
        (inputs[:2], 3, [0]),
        ([inputs[0], ArrayInput("float64", (None, 3)), inputs[2]], 3, [0]),
        ([inputs[0], ArrayInput("float32", (None, 4)), inputs[2]], 3, [0]),
        (inputs, 2, [0]),
        (inputs, 3, []),
        (inputs, 3, [1]),
    ]:
        with pytest.raises(ProgramFormatError, match="other inputs, outputs or updates"):
            check_interface(made, *wrong)


def test_numbers_are_little_endian(made):
    words = np.frombuffer(made.code, "<i8")
    assert int.from_bytes(made.code[:8], "little") == words[0]
