"""Sorting the rows of a contiguous matrix, by numpy's functions. NaNs come last.

The extents of the dims 0 and 1 are asked for: the number of rows, and their length. numpy's functions
read the first element of a row before they look at its length, so rows without elements are left out.
"""

from __future__ import annotations

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.loops import (
    Address,
    Call,
    Carried,
    Compute,
    If,
    Kernel,
    Loop,
    Node,
    Place,
    ReadElement,
    Word,
    WriteElement,
)
from engine.lowering.operations import FLOATS


def sort(dtype: str) -> Kernel:
    """Return the kernel that sorts the rows of output 0, elements of `dtype`, where they are."""
    builder = KernelBuilder()
    _declare(builder, "x", dtype, ("output", 0))
    arguments = (Address(_row("x")), Word("length"), Word("zero"))
    row = (Call(f"numpy_sort_{dtype}", arguments),)
    nodes = (constant("zero", "int64", 0), *_for_each_row(row))
    return builder.kernel(nodes, f"sort: {dtype}")


def argsort(dtype: str, stable: bool) -> Kernel:
    """Return the kernel of the positions, int64s in output 0, that sort each row of input 0.

    numpy's fast function leaves the order of equal elements open: if the sort is to be `stable`, the
    positions of each run of equal elements are sorted then.
    """
    builder = KernelBuilder()
    _declare(builder, "x", dtype, ("input", 0))
    builder.pointer("order", "int64", ("output", 0))
    arguments = (Address(_row("x")), Address(_row("order")), Word("length"), Word("zero"))
    row: tuple[Node, ...] = (
        Loop("k", 0, "length", 1, (WriteElement(_element("order", "k"), "k"),), independent=True),
        Call(f"numpy_argsort_{dtype}", arguments),
    )
    if stable:
        row += (Loop("at", 0, "length", 1, _run(dtype), (Carried("begin", "zero", "next_begin"),)),)
    nodes = (
        constant("zero", "int64", 0),
        constant("one", "int64", 1),
        Compute("last", "sub", ("length", "one"), "int64"),
        *_for_each_row(row),
    )
    return builder.kernel(nodes, f"argsort: {dtype}{' stable' * stable}")


def _declare(builder: KernelBuilder, name: str, dtype: str, argument: tuple[str, int]) -> None:
    builder.pointer(name, dtype, argument)
    builder.integer("rows", ("extent", (0,)))
    builder.integer("length", ("extent", (1,)))


def _for_each_row(row: tuple[Node, ...]) -> tuple[Node, ...]:
    return (
        Compute("has_elements", "gt", ("length", "zero"), "bool"),
        Loop("row", 0, "rows", 1, (If("has_elements", row),)),
    )


def _row(pointer: str) -> Place:
    return Place(pointer, (("row", "length"),))


def _element(pointer: str, index: str) -> Place:
    return Place(pointer, (("row", "length"), (index,)))


def _run(dtype: str) -> tuple[Node, ...]:
    """Return the nodes that sort the positions since `begin` if the next element is another one."""
    positions = (Address(_element("order", "begin")), Word("count"), Word("zero"))
    return (
        Compute("following", "add", ("at", "one"), "int64"),
        Compute("next_at", "minimum", ("following", "last"), "int64"),
        *_read("here", "at"),
        *_read("next", "next_at"),
        *_differ(dtype),
        Compute("is_last", "eq", ("at", "last"), "bool"),
        Compute("ends", "or_", ("differ", "is_last"), "bool"),
        Compute("count", "sub", ("following", "begin"), "int64"),
        Compute("are_several", "gt", ("count", "one"), "bool"),
        Compute("is_run", "and_", ("ends", "are_several"), "bool"),
        If("is_run", (Call("numpy_sort_int64", positions),)),
        Compute("next_begin", "where", ("ends", "following", "begin"), "int64"),
    )


def _read(name: str, index: str) -> tuple[Node, ...]:
    return (
        ReadElement(f"{name}_position", _element("order", index)),
        ReadElement(f"{name}_element", _element("x", f"{name}_position")),
    )


def _differ(dtype: str) -> tuple[Node, ...]:
    """Return the nodes of `differ`: two elements are not equal, and not both NaN."""
    unequal = Compute("unequal", "neq", ("here_element", "next_element"), "bool")
    if dtype not in FLOATS:
        return (unequal, Compute("differ", "identity", ("unequal",), "bool"))
    return (
        unequal,
        Compute("here_nan", "isnan", ("here_element",), "bool"),
        Compute("here_number", "invert", ("here_nan",), "bool"),
        Compute("differ", "and_", ("unequal", "here_number"), "bool"),
    )
