"""The sorting order of each row of a contiguous matrix: a stable merge sort from the bottom up.

Each pass merges neighbouring runs of `width` sorted positions (Knuth, "The Art of Computer
Programming", volume 3, 5.2.4). Input 0 is the matrix, output 0 the positions, output 1 scratch memory
for those of one row. The extents of the dims 0 and 1 are asked for. NaNs come last.
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
    start = Loop("k", 0, "length", 1, (WriteElement(_place("order", "k"), "k"),))
    passes = Loop("n", 0, _PASSES, 1, _merge(dtype), (Carried("width", "one", "double"),), "is_sorted")
    nodes = (
        constant("zero", "int64", 0),
        constant("one", "int64", 1),
        Compute("last_or_less", "sub", ("length", "one"), "int64"),
        Compute("last", "maximum", ("last_or_less", "zero"), "int64"),
        Loop("row", 0, "rows", 1, (start, passes)),
    )
    return builder.kernel(nodes, f"argsort: {dtype}")


def _place(pointer: str, index: str) -> Place:
    return Place(pointer, (("row", "length"), (index,)))


def _merge(dtype: str) -> tuple[Node, ...]:
    """Return the nodes of one pass: each two runs of `width` become one of `double`."""
    body = (
        *_bounds(),
        *_candidate("left"),
        *_candidate("right"),
        *_takes_right(dtype),
        Compute("taken", "where", ("takes_right", "right_position", "left_position"), "int64"),
        WriteElement(Place("merged", (("at",),)), "taken"),
        Compute("right_step", "cast", ("takes_right",), "int64"),
        Compute("left_step", "sub", ("one", "right_step"), "int64"),
        Compute("left_next", "add", ("left", "left_step"), "int64"),
        Compute("right_next", "add", ("right", "right_step"), "int64"),
    )
    carried = (Carried("left_before", "zero", "left_next"), Carried("right_before", "zero", "right_next"))
    back = (ReadElement("moved", Place("merged", (("m",),))), WriteElement(_place("order", "m"), "moved"))
    return (
        Compute("double", "add", ("width", "width"), "int64"),
        Loop("at", 0, "length", 1, body, carried),
        Loop("m", 0, "length", 1, back),
        Compute("is_sorted", "ge", ("double", "length"), "bool"),
    )


def _bounds() -> tuple[Node, ...]:
    """Return the nodes of the bounds of the two runs, and of the merge's positions in them."""
    return (
        Compute("behind_start", "mod", ("at", "double"), "int64"),
        Compute("begin", "sub", ("at", "behind_start"), "int64"),
        Compute("full_middle", "add", ("begin", "width"), "int64"),
        Compute("middle", "minimum", ("full_middle", "length"), "int64"),
        Compute("full_end", "add", ("begin", "double"), "int64"),
        Compute("end", "minimum", ("full_end", "length"), "int64"),
        Compute("is_start", "eq", ("behind_start", "zero"), "bool"),
        Compute("left", "where", ("is_start", "begin", "left_before"), "int64"),
        Compute("right", "where", ("is_start", "middle", "right_before"), "int64"),
    )


def _candidate(side: str) -> tuple[Node, ...]:
    """Return the nodes of the next position and element of a run; of a used-up run, of any."""
    return (
        Compute(f"{side}_at", "minimum", (side, "last"), "int64"),
        ReadElement(f"{side}_position", _place("order", f"{side}_at")),
        ReadElement(f"{side}_element", _place("x", f"{side}_position")),
    )


def _takes_right(dtype: str) -> tuple[Node, ...]:
    """Return the nodes of `takes_right`: the right element is less, or the left run is used up."""
    less: tuple[Node, ...] = (Compute("is_below", "lt", ("right_element", "left_element"), "bool"),)
    name = "is_below"
    if dtype in FLOATS:
        less += (
            Compute("left_nan", "isnan", ("left_element",), "bool"),
            Compute("right_nan", "isnan", ("right_element",), "bool"),
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
