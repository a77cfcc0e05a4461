"""Reading, setting and adding to rows of an array by an integer index.

An array has `size` rows of `row` elements, C-contiguous; the index has `count` integers. A negative
index counts from the end. If one is out of range, the kernel returns INDEX_OUT_OF_RANGE before it adds
anything to the output. Arguments besides those in building.py:

    ("count",)  the number of integers in the index
    ("size",)   the number of rows of the array
    ("row",)    the number of elements of a row; not asked for if the array is a vector (of rows of 1)
"""

from __future__ import annotations

from typing import Literal

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.loops import (
    Carried,
    Compute,
    Fail,
    If,
    Kernel,
    Loop,
    Node,
    Place,
    ReadElement,
    WriteElement,
)
from engine.lowering.operations import INTEGERS
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import INDEX_OUT_OF_RANGE

Base = Literal["copied", "zeros", "overwritten"]


def gather(dtype: str, index_dtype: str, vector: bool) -> Kernel:
    """Return the kernel of `output[i] = array[index[i]]`: input 0 is the array, input 1 the index.

    Raises InvalidKernel if `index_dtype` is no integer.
    """
    builder = KernelBuilder()
    builder.pointer("array", dtype, ("input", 0))
    _declare_index(builder, index_dtype, 1, vector)
    builder.pointer("output", dtype, ("output", 0))
    copy = _for_each_column(
        vector,
        (ReadElement("moved", _element("array", "wrapped", vector)), _store("output", "i", "moved", vector)),
    )
    nodes = (constant("none", "int64", 0), Loop("i", 0, "count", 1, (*_wrapped_index(index_dtype), *copy)))
    summary = f"gather: {dtype} by {index_dtype}" + (" from a vector" if vector else " in rows")
    return builder.kernel(nodes, summary)


def wrap(index_dtype: str) -> Kernel:
    """Return the kernel of `output[i] = index[i]`, an int64 counted from the start: input 0 is the index.

    Raises InvalidKernel if `index_dtype` is no integer.
    """
    builder = KernelBuilder()
    _declare_index(builder, index_dtype, 0, True)
    builder.pointer("output", "int64", ("output", 0))
    body = (*_wrapped_index(index_dtype), _store("output", "i", "wrapped", True))
    nodes = (constant("none", "int64", 0), Loop("i", 0, "count", 1, body))
    return builder.kernel(nodes, f"wrap: {index_dtype}")


def positions() -> Kernel:
    """Return the kernel that writes the position of each true element of input 0 to the output, int64s.

    The caller knows how many there are.
    """
    builder = KernelBuilder()
    builder.pointer("mask", "bool", ("input", 0))
    builder.integer("n", ("extent", (0,)))
    builder.pointer("output", "int64", ("output", 0))
    body = (
        ReadElement("is_true", Place("mask", (("i",),))),
        If("is_true", (WriteElement(Place("output", (("found",),)), "i"),)),
        Compute("step", "cast", ("is_true",), "int64"),
        Compute("following", "add", ("found", "step"), "int64"),
    )
    loop = Loop("i", 0, "n", 1, body, (Carried("found", "none", "following"),))
    return builder.kernel((constant("none", "int64", 0), loop), "positions")


def scatter_add(dtype: str, index_dtype: str, vector: bool, base: Base) -> Kernel:
    """Return the kernel of `output = base; output[index[i]] += values[i]` for each i, in turn.

    Input 0 is the index, input 1 the values, input 2 the base if it is "copied"; the output has its
    shape. A base that is "overwritten" is in the output already; it may also be "zeros". The whole
    index is checked first. Raises InvalidKernel if `index_dtype` is no integer.
    """
    add = (
        ReadElement("before", _element("output", "wrapped", vector)),
        ReadElement("value", _element("values", "i", vector)),
        Compute("after", "add", ("before", "value"), dtype),
        _store("output", "wrapped", "after", vector),
    )
    return _scatter("scatter_add", dtype, index_dtype, vector, base, add)


def scatter_set(dtype: str, index_dtype: str, vector: bool, base: Base) -> Kernel:
    """Return the kernel of `output = base; output[index[i]] = values[i]` (see `scatter_add`)."""
    change = (
        ReadElement("value", _element("values", "i", vector)),
        _store("output", "wrapped", "value", vector),
    )
    return _scatter("scatter_set", dtype, index_dtype, vector, base, change)


def _scatter(
    name: str, dtype: str, index_dtype: str, vector: bool, base: Base, change: tuple[Node, ...]
) -> Kernel:
    builder = KernelBuilder()
    _declare_index(builder, index_dtype, 0, vector)
    builder.pointer("values", dtype, ("input", 1))
    if base == "copied":
        builder.pointer("base", dtype, ("input", 2))
    builder.pointer("output", dtype, ("output", 0))
    each = (*_wrapped_index(index_dtype, checked=False), *_for_each_column(vector, change))
    nodes = (
        constant("none", "int64", 0),
        Loop("c", 0, "count", 1, _wrapped_index(index_dtype, "c", "_checked")),
        *(() if base == "overwritten" else _copy_base(dtype, vector, base == "zeros")),
        Loop("i", 0, "count", 1, each),
    )
    summary = f"{name}: {dtype} by {index_dtype}, {'to a vector' if vector else 'in rows'}, base {base}"
    return builder.kernel(nodes, summary)


def _declare_index(builder: KernelBuilder, index_dtype: str, position: int, vector: bool) -> None:
    if index_dtype not in INTEGERS:
        raise InvalidKernel(
            "building", "a kernel with an index", f"the index is {index_dtype}, not an integer"
        )
    builder.pointer("index", index_dtype, ("input", position))
    builder.integer("count", ("count",))
    builder.integer("size", ("size",))
    if not vector:
        builder.integer("row", ("row",))
    builder.pointer("details", "int64", ("details",))


def _wrapped_index(
    index_dtype: str, at: str = "i", suffix: str = "", checked: bool = True
) -> tuple[Node, ...]:
    """Return the nodes of `wrapped`, the row that the index at `at` means; `checked` ones may fail."""
    index, negative, wrapped = f"wanted{suffix}", f"negative{suffix}", f"wrapped{suffix}"
    nodes = (
        ReadElement(f"loaded{suffix}", Place("index", ((at,),))),
        Compute(index, "cast", (f"loaded{suffix}",), "int64"),
        Compute(negative, "lt", (index, "none"), "bool"),
        Compute(f"from_end{suffix}", "add", (index, "size"), "int64"),
        Compute(wrapped, "where", (negative, f"from_end{suffix}", index), "int64"),
    )
    if not checked:
        return nodes
    return (
        *nodes,
        Compute("too_low", "lt", (wrapped, "none"), "bool"),
        Compute("too_high", "ge", (wrapped, "size"), "bool"),
        Compute("outside", "or_", ("too_low", "too_high"), "bool"),
        If("outside", (Fail(INDEX_OUT_OF_RANGE, "details", (at, index, "size")),)),
    )


def _copy_base(dtype: str, vector: bool, onto_zeros: bool) -> tuple[Node, ...]:
    """Return the nodes that make the output equal to the base."""
    rows = "size"
    if onto_zeros:
        zero = constant("zero", dtype, 0)
        body: tuple[Node, ...] = (WriteElement(_element("output", "r", vector, "e"), "zero"),)
        before: tuple[Node, ...] = (zero,)
    else:
        before = ()
        body = (
            ReadElement("kept", _element("base", "r", vector, "e")),
            WriteElement(_element("output", "r", vector, "e"), "kept"),
        )
    inner = body if vector else (Loop("e", 0, "row", 1, body),)
    return (*before, Loop("r", 0, rows, 1, inner))


def _for_each_column(vector: bool, body: tuple[Node, ...]) -> tuple[Node, ...]:
    return body if vector else (Loop("j", 0, "row", 1, body),)


def _element(pointer: str, row: str, vector: bool, column: str = "j") -> Place:
    return Place(pointer, ((row,),) if vector else ((row, "row"), (column,)))


def _store(pointer: str, row: str, value: str, vector: bool) -> WriteElement:
    return WriteElement(_element(pointer, row, vector), value)
