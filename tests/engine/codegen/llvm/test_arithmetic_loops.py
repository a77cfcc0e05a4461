"""Loops of plain arithmetic have vectors as wide as a register; what no width suits is left to LLVM."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from engine.codegen.llvm.arithmetic_loops import width_of_arithmetic
from engine.codegen.llvm.ir_text import WIDTH_OF_32_BITS, WIDTH_OF_64_BITS
from engine.lowering.loops import Carried, Compute, Loop, Number, Place, ReadElement, WriteElement

READ = ReadElement("a", Place("x", (("i",),)))
WRITE = WriteElement(Place("y", (("i",), ("s",))), "b")
DOUBLE = {"x": "float64", "y": "float64"}
FLOAT = {"x": "float32", "y": "float32"}


def loop(*body: Any, **changes: Any) -> Loop:
    return Loop("i", 0, "n", 1, body, **{"independent": True} | changes)


def added(dtype: str) -> Loop:
    return loop(READ, Compute("b", "add", ("a", "a"), dtype), WRITE)


def test_the_width_is_that_of_the_widest_numbers() -> None:
    assert width_of_arithmetic(added("float64"), DOUBLE) == WIDTH_OF_64_BITS
    assert width_of_arithmetic(added("float32"), FLOAT) == WIDTH_OF_32_BITS
    widened = loop(READ, Compute("b", "cast", ("a",), "float64"), WRITE)
    assert width_of_arithmetic(widened, FLOAT | {"y": "float64"}) == WIDTH_OF_64_BITS
    assert width_of_arithmetic(loop(READ, replace(WRITE, value="a")), DOUBLE) == WIDTH_OF_64_BITS


@pytest.mark.parametrize(
    "terms", [(("position",),), (("position",), ("s", "t")), (("t", "s"),), (("moved",), ("s",)), ()]
)
def test_elements_side_by_side_have_a_width(terms: tuple[tuple[str, ...], ...]) -> None:
    position = Compute("position", "sub", ("i", "begin"), "int64")
    moved = Compute("moved", "add", ("begin", "position"), "int64")
    body = position, moved, replace(READ, place=Place("x", terms)), replace(WRITE, value="a")
    assert width_of_arithmetic(loop(*body), DOUBLE) == WIDTH_OF_64_BITS


@pytest.mark.parametrize(
    "terms", [(("i", "s"),), (("i",), ("i",)), (("from_end",),), (("double",),), (("both",),), (("found",),)]
)
def test_elements_apart_have_none(terms: tuple[tuple[str, ...], ...]) -> None:
    body = (
        Compute("from_end", "sub", ("n", "i"), "int64"),
        Compute("double", "add", ("i", "i"), "int64"),
        ReadElement("found", Place("index", (("i",),))),
        Compute("both", "add", ("found", "i"), "int64"),
        replace(READ, place=Place("x", terms)),
        replace(WRITE, value="a"),
    )
    assert width_of_arithmetic(loop(*body), DOUBLE | {"index": "int64"}) == ""


@pytest.mark.parametrize(
    ("op", "dtype"), [("floor_div", "int64"), ("mod", "float64"), ("exp", "float64"), ("pow", "float32")]
)
def test_other_operations_have_none(op: str, dtype: str) -> None:
    assert width_of_arithmetic(loop(READ, Compute("b", op, ("a", "a"), dtype), WRITE), DOUBLE) == ""


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int64", "complex128", "float16"])
def test_what_moves_no_floats_has_none(dtype: str) -> None:
    """A width of floats would be another part of a register for them."""
    copied = loop(READ, replace(WRITE, value="a"))
    assert width_of_arithmetic(copied, {"x": dtype, "y": dtype}) == ""
    assert width_of_arithmetic(copied, DOUBLE | {"x": dtype}) == ("" if dtype != "bool" else WIDTH_OF_64_BITS)


def test_a_loop_in_steps_has_none() -> None:
    assert width_of_arithmetic(replace(added("float64"), step=2), DOUBLE) == ""


def test_a_loop_whose_passes_may_need_each_other_has_none() -> None:
    assert width_of_arithmetic(replace(added("float64"), independent=False), DOUBLE) == ""
    assert width_of_arithmetic(replace(added("float64"), until="b"), DOUBLE) == ""
    assert width_of_arithmetic(loop(added("float64")), DOUBLE) == ""


@pytest.mark.parametrize(
    ("op", "dtype", "unordered", "expected"),
    [
        ("add", "float64", True, WIDTH_OF_64_BITS),
        ("add", "float64", False, ""),
        ("mul", "float64", False, ""),
        ("maximum_of_numbers", "float64", False, WIDTH_OF_64_BITS),
        ("minimum_of_numbers", "float64", False, WIDTH_OF_64_BITS),
        ("maximum", "float64", False, ""),
        ("or_", "int64", False, WIDTH_OF_64_BITS),
    ],
)
def test_floats_are_added_up_in_their_order_unless_the_loop_says_otherwise(
    op: str, dtype: str, unordered: bool, expected: str
) -> None:
    zero = Number("zero", "float64", bytes(8))
    carried = (Carried("t", "zero", "b", unordered),)
    summed = loop(zero, READ, Compute("b", op, ("t", "a"), dtype), independent=False, carried=carried)
    assert width_of_arithmetic(summed, DOUBLE) == expected


PROGRAM = """
import numpy as np, engine, engine.tensor as pt
x, y, n = pt.matrix("x"), pt.matrix("y", dtype="float32"), pt.lvector("n")
first = (x * x + 1.0) / (2.0 + pt.sqrt(x * x)) - pt.maximum(x, x[::-1])
results = [first + pt.where(x > 0, x.T, x[:, ::2].sum()), x.max(axis=1), x.sum(axis=0)]
results += [y.max(axis=0), y.prod(axis=1), x.min(), y.mean(axis=1)]
results += [pt.isnan(x).any(axis=1), n // 3 + n % 2, x[n], pt.cast(y, "int32"), pt.cumsum(x, axis=1)]
results += [pt.set_subtensor(x[n, n], 0.0), pt.switch(pt.eq(n, 2), 1.0, n), pt.all(x > 0)]
results += [pt.argmax(x, axis=1), *(pt.cast(x, dtype)[n] for dtype in ("uint8", "complex128", "float16"))]
f = engine.function([x, y, n], results)
f(np.ones((9, 9)), np.ones((9, 9), "float32"), np.arange(9))
print(f.cache_info.compilations)
"""


def test_llvm_has_nothing_to_remark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(done.stdout) > 10
    assert done.stderr == ""
