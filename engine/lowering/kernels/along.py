"""Kernels along one axis of a contiguous array of `before` times `length` times `behind` elements.

They read input 0, write output 0, and ask for the three lengths as the extents of the dims 0, 1 and 2.
"""

from __future__ import annotations

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.kernels.reduce import neutral_element
from engine.lowering.loops import (
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
    WriteElement,
)
from engine.lowering.operations import FLOATS
from engine.runtime.kernel_interface import EMPTY_REDUCTION


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


def position_of_extreme(kind: str, dtype: str) -> Kernel:
    """Return the kernel of the position, an int64, of the first largest or smallest of elements of `dtype`.

    `kind` is max or min. The first NaN comes before everything. Of no elements the kernel returns
    EMPTY_REDUCTION.
    """
    first = Place("x", (("i", "length", "behind"), ("j",)))
    body = (
        ReadElement("element", _place("x")),
        *_is_further(kind, dtype),
        Compute("following", "where", ("further", "element", "best"), dtype),
        Compute("following_at", "where", ("further", "at", "best_at"), "int64"),
    )
    carried = (Carried("best", "first", "following"), Carried("best_at", "none", "following_at"))
    loop = Loop("at", 1, "length", 1, body, carried)
    result = WriteElement(Place("y", (("i", "behind"), ("j",))), "best_at")
    nodes = (
        constant("none", "int64", 0),
        Compute("is_empty", "eq", ("length", "none"), "bool"),
        If("is_empty", (Fail(EMPTY_REDUCTION),)),
        *_nest((ReadElement("first", first), loop, result)),
    )
    return _kernel(dtype, "int64", nodes, f"position of {kind}: {dtype}")


def _is_further(kind: str, dtype: str) -> tuple[Node, ...]:
    """Return the nodes of `further`: the element comes before `best`. Only the first NaN does before all."""
    compare = Compute("beyond", "gt" if kind == "max" else "lt", ("element", "best"), "bool")
    if dtype not in FLOATS:
        return (compare, Compute("further", "identity", ("beyond",), "bool"))
    return (
        compare,
        Compute("element_nan", "isnan", ("element",), "bool"),
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
