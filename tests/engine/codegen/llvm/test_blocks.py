"""A loop that copies or fills adjacent elements is one call; every other loop stays a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import engine
import engine.tensor as pt
from engine.codegen.llvm.printer import print_kernel
from engine.lowering.loops import (
    Carried,
    Compute,
    Integer,
    Kernel,
    Loop,
    Number,
    Place,
    Pointer,
    ReadElement,
    WriteElement,
)

COPY = Loop(
    "i",
    0,
    "n",
    1,
    (ReadElement("a", Place("x", (("i",),))), WriteElement(Place("y", (("i",),)), "a")),
    independent=True,
)
FILL = replace(COPY, body=(WriteElement(Place("y", (("i",),)), "c"),))
DTYPES = ["float64", "float32", "complex128", "int64", "int32", "int16", "uint8", "bool"]


def called(*body: Any, x: str = "float64", y: str = "float64") -> list[str]:
    """Return the functions of C that a kernel calls, and "loop" if it has one."""
    parameters = (Pointer("x", x), Pointer("y", y), Integer("n"), Integer("s"))
    kernel = Kernel(parameters, body, tuple(("argument",) for _ in parameters), "a test's")
    text = print_kernel(kernel, "k_x").text
    return [name for name in ("memcpy", "memset") if name in text] + ["loop"] * (" phi " in text)


def number(value: bytes, dtype: str = "float64") -> Number:
    return Number("c", dtype, value)


def test_a_copy_of_adjacent_elements_is_a_call() -> None:
    assert called(COPY) == ["memcpy"]
    shifted = ReadElement("a", Place("x", (("i",), ("s",))))
    assert called(replace(COPY, body=(shifted, COPY.body[1]))) == ["memcpy"]


@pytest.mark.parametrize("value", [bytes(8), b"\xff" * 8, b"\x01" * 8])
def test_a_fill_with_equal_bytes_is_a_call(value: bytes) -> None:
    assert called(number(value), FILL) == ["memset"]


@pytest.mark.parametrize("value", [np.float64(1.0).tobytes(), np.float64(-0.0).tobytes()])
def test_a_fill_with_other_bytes_is_a_loop(value: bytes) -> None:
    assert called(number(value), FILL) == ["loop"]


@pytest.mark.parametrize(
    "loop",
    [
        replace(COPY, independent=False),
        replace(COPY, body=()),
        replace(COPY, step=2),
        replace(COPY, body=(ReadElement("a", Place("x", (("i", "s"),))), COPY.body[1])),
        replace(COPY, body=(ReadElement("a", Place("x", (("i",), ("i", "s")))), COPY.body[1])),
        replace(COPY, body=(ReadElement("a", Place("x", (("s",),))), COPY.body[1])),
        replace(COPY, body=(COPY.body[0], WriteElement(Place("y", (("i", "s"),)), "a"))),
        replace(COPY, body=(COPY.body[0], WriteElement(Place("y", (("s",),)), "a"))),
        replace(COPY, body=(*COPY.body, WriteElement(Place("y", (("i",), ("s",))), "a"))),
        replace(
            COPY,
            body=(COPY.body[0], Compute("b", "neg", ("a",), "float64"), replace(COPY.body[1], value="b")),
        ),
        replace(COPY, carried=(Carried("t", "c", "a"),)),
    ],
)
def test_every_other_loop_stays_a_loop(loop: Loop) -> None:
    assert called(number(bytes(8)), loop) == ["loop"]


def test_a_loop_in_a_loop_stays_one() -> None:
    assert called(replace(COPY, index="j", body=(COPY,))) == ["loop"]


def test_elements_of_other_dtypes_and_bools_are_copied_one_by_one() -> None:
    assert called(COPY, x="bool", y="bool") == ["loop"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [0, 1, 7, 1000])
def test_copies_and_fills_are_what_numpy_gives(dtype: str, length: int) -> None:
    x = pt.vector("x", dtype=dtype)
    n = pt.lscalar("n")
    outputs = [pt.concatenate([x, x[1:]]), pt.alloc(np.zeros((), dtype), n), pt.alloc(x[0], n)]
    f = engine.function([x, n], outputs)
    value = np.arange(length + 1).astype(dtype)
    joined, zeros, first = f(value, length)
    np.testing.assert_array_equal(joined, np.concatenate([value, value[1:]]), strict=True)
    np.testing.assert_array_equal(zeros, np.zeros(length, dtype), strict=True)
    np.testing.assert_array_equal(first, np.full(length, value[0], dtype), strict=True)


@pytest.mark.parametrize("value", [-1, 0, 1, 257])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint32"])
def test_constants_of_integers_fill(value: int, dtype: str) -> None:
    constant, n = np.array(value).astype(dtype), pt.lscalar("n")
    found = engine.function([n], pt.alloc(constant, n, 3))(5)
    np.testing.assert_array_equal(found, np.full((5, 3), constant), strict=True)


def test_nothing_is_written_where_there_is_no_pass() -> None:
    n = pt.lscalar("n")
    with pytest.raises(ValueError, match="negative"):
        engine.function([n], pt.alloc(0.0, n))(-1)
    assert engine.function([n], pt.alloc(0.0, n))(0).shape == (0,)
