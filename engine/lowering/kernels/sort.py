"""The sorting order of each row of a contiguous matrix: a stable merge sort from the bottom up.

Each pass merges neighbouring runs of `width` sorted elements (Knuth, "The Art of Computer Programming",
volume 3, 5.2.4), which move with their positions. Input 0 is the matrix, output 0 the positions. The
others are scratch memory for one row: output 1 for its positions, outputs 2 and 3 for its elements. The
extents of the dims 0 and 1 are asked for. NaNs come last.
"""

from __future__ import annotations

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.loops import Carried, Compute, Kernel, Loop, Node, Place, ReadElement, WriteElement
from engine.lowering.operations import FLOATS

_PASSES = 63


def argsort(dtype: str) -> Kernel:
    """Return the kernel of the positions, int64s, that sort each row of elements of `dtype`."""
    builder = KernelBuilder()
    builder.pointer("x", dtype, ("input", 0))
    builder.integer("rows", ("extent", (0,)))
    builder.integer("length", ("extent", (1,)))
    builder.pointer("order", "int64", ("output", 0))
    builder.pointer("merged", "int64", ("output", 1))
    builder.pointer("keys", dtype, ("output", 2))
    builder.pointer("merged_keys", dtype, ("output", 3))
    start = (
        WriteElement(_place("order", "k"), "k"),
        ReadElement("element", _place("x", "k")),
        WriteElement(Place("keys", (("k",),)), "element"),
    )
    passes = Loop("n", 0, _PASSES, 1, _merge(dtype), (Carried("width", "one", "double"),), "is_sorted")
    nodes = (
        constant("zero", "int64", 0),
        constant("one", "int64", 1),
        Compute("last_or_less", "sub", ("length", "one"), "int64"),
        Compute("last", "maximum", ("last_or_less", "zero"), "int64"),
        Loop("row", 0, "rows", 1, (Loop("k", 0, "length", 1, start, independent=True), passes)),
    )
    return builder.kernel(nodes, f"argsort: {dtype}")


def _place(pointer: str, index: str) -> Place:
    return Place(pointer, (("row", "length"), (index,)))


def _merge(dtype: str) -> tuple[Node, ...]:
    """Return the nodes of one pass: each two runs of `width` become one of `double`."""
    body = (
        *_candidate("left"),
        *_candidate("right"),
        *_takes_right(dtype),
        Compute("taken", "where", ("takes_right", "right_at", "left_at"), "int64"),
        ReadElement("taken_position", _place("order", "taken")),
        WriteElement(Place("merged", (("at",),)), "taken_position"),
        # Read again: LLVM makes a branch of a choice between two floats.
        ReadElement("taken_key", Place("keys", (("taken",),))),
        WriteElement(Place("merged_keys", (("at",),)), "taken_key"),
        Compute("right_step", "cast", ("takes_right",), "int64"),
        Compute("left_step", "sub", ("one", "right_step"), "int64"),
        Compute("left_next", "add", ("left", "left_step"), "int64"),
        Compute("right_next", "add", ("right", "right_step"), "int64"),
    )
    carried = (Carried("left", "begin", "left_next"), Carried("right", "middle", "right_next"))
    back = (
        ReadElement("moved", Place("merged", (("m",),))),
        WriteElement(_place("order", "m"), "moved"),
        ReadElement("moved_key", Place("merged_keys", (("m",),))),
        WriteElement(Place("keys", (("m",),)), "moved_key"),
    )
    return (
        Compute("double", "add", ("width", "width"), "int64"),
        Compute("double_less", "sub", ("double", "one"), "int64"),
        Compute("length_and_more", "add", ("length", "double_less"), "int64"),
        Compute("runs", "floor_div", ("length_and_more", "double"), "int64"),
        Loop("run", 0, "runs", 1, (*_bounds(), Loop("at", "begin", "end", 1, body, carried))),
        Loop("m", 0, "length", 1, back, independent=True),
        Compute("is_sorted", "ge", ("double", "length"), "bool"),
    )


def _bounds() -> tuple[Node, ...]:
    """Return the nodes of the bounds of two runs."""
    return (
        Compute("begin", "mul", ("run", "double"), "int64"),
        Compute("full_middle", "add", ("begin", "width"), "int64"),
        Compute("middle", "minimum", ("full_middle", "length"), "int64"),
        Compute("full_end", "add", ("begin", "double"), "int64"),
        Compute("end", "minimum", ("full_end", "length"), "int64"),
    )


def _candidate(side: str) -> tuple[Node, ...]:
    """Return the nodes of the next element of a run; of a used-up run, of any."""
    return (
        Compute(f"{side}_at", "minimum", (side, "last"), "int64"),
        ReadElement(f"{side}_key", Place("keys", ((f"{side}_at",),))),
    )


def _takes_right(dtype: str) -> tuple[Node, ...]:
    """Return the nodes of `takes_right`: the right element is less, or the left run is used up."""
    less: tuple[Node, ...] = (Compute("is_below", "lt", ("right_key", "left_key"), "bool"),)
    name = "is_below"
    if dtype in FLOATS:
        less += (
            Compute("left_nan", "isnan", ("left_key",), "bool"),
            Compute("right_nan", "isnan", ("right_key",), "bool"),
            Compute("right_number", "invert", ("right_nan",), "bool"),
            Compute("before_nan", "and_", ("left_nan", "right_number"), "bool"),
            Compute("is_before", "or_", ("is_below", "before_nan"), "bool"),
        )
        name = "is_before"
    return (
        *less,
        Compute("left_is_used", "ge", ("left", "middle"), "bool"),
        Compute("right_is_left", "lt", ("right", "end"), "bool"),
        Compute("is_next", "or_", ("left_is_used", name), "bool"),
        Compute("takes_right", "and_", ("is_next", "right_is_left"), "bool"),
    )
