"""Which kernels can be run in parts."""

from __future__ import annotations

import pytest

from engine.lowering.kernels.along import position_of_extreme
from engine.lowering.kernels.dot import matrix_vector
from engine.lowering.kernels.elementwise import arange, copy, elementwise, update
from engine.lowering.kernels.gather import gather, positions, scatter_add, scatter_set, wrap
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.kernels.sort import argsort, sort
from engine.lowering.loops import (
    Array,
    Compute,
    If,
    Integer,
    Kernel,
    Loop,
    Place,
    Pointer,
    ReadElement,
    WriteElement,
)
from engine.lowering.parallel import in_parts
from engine.lowering.statements import Statement

VECTOR = NestOperand("float64", (False,))
MATRIX = NestOperand("float64", (False, False))
ROW = NestOperand("float64", (True, False))
EXP = Statement("exp", (("input", 0),), "float64")


def sum_over(dims, rank=2):
    return reduction(
        "sum", [NestOperand("float64", (False,) * rank)], [], ("input", 0), rank, dims, "float64", "float64"
    )


@pytest.mark.parametrize(
    "kernel",
    [
        elementwise([VECTOR], [EXP], [("value", 0)], 1),
        elementwise(
            [MATRIX, ROW], [Statement("add", (("input", 0), ("input", 1)), "float64")], [("value", 0)], 2
        ),
        copy(NestOperand("float64", (False, False), strided=True)),
        update(NestOperand("float64", (False, False)), adds=True),
        arange(),
        gather("float64", "int64", vector=True),
        gather("float64", "int64", vector=False),
        wrap("int64"),
        copy(NestOperand("float64", (False, False), strided=True, unit=0)),
        sum_over((0,)),
        reduction("max", [MATRIX], [EXP], ("value", 0), 2, (0,), "float64", "float64", True),
        sort("float64"),
        argsort("float32", True),
        position_of_extreme("max", "int64", True),
    ],
    ids=lambda kernel: kernel.summary,
)
def test_passes_that_do_not_need_each_other_run_in_parts(kernel):
    found = in_parts(kernel)
    assert found is not None
    assert found.kernel.parameters[:-2] == kernel.parameters
    assert kernel.arguments[found.stop][0] in ("extent", "count")
    assert found.step == next(node.step for node in kernel.body if isinstance(node, Loop))
    assert found.kernel.encoding() != kernel.encoding()


@pytest.mark.parametrize(
    "kernel",
    [
        sum_over((0, 1)),
        sum_over((0,), rank=1),
        reduction("prod", [MATRIX], [], ("input", 0), 2, (1,), "float64", "float64"),
        matrix_vector("float64", False),
        positions(),
        scatter_add("float64", "int64", vector=True, base="overwritten"),
        scatter_set("float64", "int64", vector=False, base="overwritten"),
        scatter_add("float64", "int64", vector=True, base="copied"),
    ],
    ids=lambda kernel: kernel.summary,
)
def test_a_loop_whose_passes_meet_is_never_split(kernel):
    assert in_parts(kernel) is None


def kernel_of(*body, before=()):
    parameters = (Pointer("x", "float64"), Pointer("y", "float64"), Integer("n"), Integer("m"))
    arguments = (("input", 0), ("output", 0), ("extent", (0,)), ("extent", (1,)))
    return Kernel(parameters, (*before, Loop("i", 0, "n", 1, body)), arguments, "made by hand")


X, Y = Place("x", (("i",),)), Place("y", (("i",),))


def test_writing_to_a_place_that_does_not_move_is_not_split():
    assert in_parts(kernel_of(ReadElement("a", X), WriteElement(Place("y"), "a"))) is None


def test_reading_what_a_neighbouring_pass_writes_is_not_split():
    body = (
        ReadElement("a", Place("y", (("i",), ("m",)))),
        WriteElement(Y, "a"),
    )
    assert in_parts(kernel_of(*body)) is None


def test_two_places_of_one_row_are_split():
    row, column = (
        ("i", "m"),
        Loop(
            "j",
            0,
            "m",
            1,
            (
                ReadElement("a", Place("y", (("i", "m"),))),
                WriteElement(Place("y", (("i", "m"), ("j",))), "a"),
            ),
        ),
    )
    assert row in column.body[1].place.terms
    assert in_parts(kernel_of(column)) is not None


def test_memory_that_outlasts_a_pass_is_not_split():
    before = (Array("kept", "float64", 4),)
    body = (ReadElement("a", Place("kept")), WriteElement(Y, "a"))
    assert in_parts(kernel_of(*body, before=before)) is None
    inside = (
        Array("own", "float64", 4),
        ReadElement("a", X),
        WriteElement(Place("own"), "a"),
        WriteElement(Y, "a"),
    )
    assert in_parts(kernel_of(*inside)) is not None


def test_a_write_before_the_loop_is_not_split():
    before = (ReadElement("first", Place("x")), WriteElement(Place("y"), "first"))
    assert in_parts(kernel_of(ReadElement("a", X), WriteElement(Y, "a"), before=before)) is None


def test_branches_are_looked_into():
    condition = (ReadElement("a", X), Compute("is_nan", "isnan", ("a",), "bool"))
    assert in_parts(kernel_of(*condition, If("is_nan", (WriteElement(Place("y"), "a"),)))) is None
    assert in_parts(kernel_of(*condition, If("is_nan", (WriteElement(Y, "a"),)))) is not None
