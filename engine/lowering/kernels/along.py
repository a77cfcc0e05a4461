"""Kernels along one axis of a contiguous array of `before` times `length` times `behind` elements.

They read input 0, write output 0, and ask for the three lengths as the extents of the dims 0, 1 and 2.
"""

from __future__ import annotations

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.kernels.nest import end_of
from engine.lowering.kernels.reduction_nest import neutral_element
from engine.lowering.loops import (
    Address,
    Array,
    Call,
    Carried,
    Compute,
    Fail,
    If,
    Kernel,
    Loop,
    Node,
    Number,
    Place,
    ReadElement,
    Word,
    WriteElement,
)
from engine.lowering.operations import FLOATS
from engine.runtime.kernel_interface import EMPTY_REDUCTION

TILE = 256
"""Columns whose extremes are found side by side."""


def cumulative(op: str, dtype: str) -> Kernel:
    """Return the kernel of the running `op` (add or mul) of elements of `dtype`."""
    kind = {"add": "sum", "mul": "prod"}[op]
    body = (
        ReadElement("element", _place("x")),
        Compute("following", op, ("total", "element"), dtype),
        WriteElement(_place("y"), "following"),
    )
    loop = Loop("at", 0, "length", 1, body, (Carried("total", "neutral", "following"),))
    nodes = (Number("neutral", dtype, neutral_element(kind, dtype)), *_nest((loop,)))
    return _kernel(dtype, dtype, nodes, f"cumulative {op}: {dtype}")


def position_of_extreme(kind: str, dtype: str, is_last: bool) -> Kernel:
    """Return the kernel of the position, an int64, of the first largest or smallest of elements of `dtype`.

    `kind` is max or min. The first NaN comes before everything. Of no elements the kernel returns
    EMPTY_REDUCTION. `is_last` says that the axis is the last: nothing is `behind` it.
    """
    inside = _along_rows(kind, dtype) if is_last else _along_columns(kind, dtype)
    nodes = (
        Number("neutral", dtype, neutral_element(kind, dtype)),
        constant("none", "int64", 0),
        constant("tile_size", "int64", TILE),
        Compute("is_empty", "eq", ("length", "none"), "bool"),
        If("is_empty", (Fail(EMPTY_REDUCTION),)),
        *inside,
    )
    return _kernel(dtype, "int64", nodes, f"position of {kind}: {dtype}{' in rows' * is_last}")


def _along_rows(kind: str, dtype: str) -> tuple[Node, ...]:
    """Return the nodes that have numpy find the place of the first extreme of each row."""
    row = (
        Address(Place("x", (("i", "length"),))),
        Word("length"),
        Address(Place("y", (("i",),))),
        Word("none"),
    )
    return (Loop("i", 0, "before", 1, (Call(f"numpy_arg{kind}_{dtype}", row),)),)


def _along_columns(kind: str, dtype: str) -> tuple[Node, ...]:
    """Return the nodes that go through the rows once, for TILE columns side by side."""
    best, best_at = Place("bests", (("column",),)), Place("places", (("column",),))
    step = (
        Compute("column", "sub", ("j", "tile"), "int64"),
        ReadElement("element", _place("x")),
        ReadElement("best", best),
        ReadElement("best_at", best_at),
        *_is_further(kind, dtype, "element"),
        Compute("next_best", "where", ("further", "element", "best"), dtype),
        Compute("next_at", "where", ("further", "at", "best_at"), "int64"),
        WriteElement(best, "next_best"),
        WriteElement(best_at, "next_at"),
    )
    clear = (
        WriteElement(Place("bests", (("cleared",),)), "neutral"),
        WriteElement(Place("places", (("cleared",),)), "none"),
    )
    finish = (
        Compute("finished", "sub", ("k", "tile"), "int64"),
        ReadElement("found", Place("places", (("finished",),))),
        WriteElement(Place("y", (("i", "behind"), ("k",))), "found"),
    )
    columns = (
        *end_of("tile", "tile_size", "behind"),
        Loop("cleared", 0, TILE, 1, clear, independent=True),
        Loop("at", 0, "length", 1, (Loop("j", "tile", "tile_end", 1, step, independent=True),)),
        Loop("k", "tile", "tile_end", 1, finish, independent=True),
    )
    return (
        Array("bests", dtype, TILE),
        Array("places", "int64", TILE),
        Loop("i", 0, "before", 1, (Loop("tile", 0, "behind", TILE, columns),)),
    )


def _is_further(kind: str, dtype: str, element: str) -> tuple[Node, ...]:
    """Return the nodes of `further`: `element` comes before `best`. Only the first NaN does before all."""
    compare = Compute("beyond", "gt" if kind == "max" else "lt", (element, "best"), "bool")
    if dtype not in FLOATS:
        return (compare, Compute("further", "identity", ("beyond",), "bool"))
    return (
        compare,
        Compute("element_nan", "isnan", (element,), "bool"),
        Compute("best_nan", "isnan", ("best",), "bool"),
        Compute("best_number", "invert", ("best_nan",), "bool"),
        Compute("first_nan", "and_", ("element_nan", "best_number"), "bool"),
        Compute("further", "or_", ("beyond", "first_nan"), "bool"),
    )


def _place(pointer: str) -> Place:
    return Place(pointer, (("i", "length", "behind"), ("at", "behind"), ("j",)))


def _nest(inside: tuple[Node, ...]) -> tuple[Node, ...]:
    return (Loop("i", 0, "before", 1, (Loop("j", 0, "behind", 1, inside),)),)


def _kernel(dtype: str, result: str, nodes: tuple[Node, ...], summary: str) -> Kernel:
    builder = KernelBuilder()
    builder.pointer("x", dtype, ("input", 0))
    for dim, name in enumerate(("before", "length", "behind")):
        builder.integer(name, ("extent", (dim,)))
    builder.pointer("y", result, ("output", 0))
    return builder.kernel(nodes, summary)
