"""Reading, setting and adding to rows of an array by an integer index.

An array has `size` rows of `row` elements, C-contiguous; the index has `count` integers. A negative
index counts from the end. If one is out of range, the kernel returns INDEX_OUT_OF_RANGE, before it changes
an output that it overwrites. Arguments besides those in building.py:

    ("count",)  the number of integers in the index
    ("size",)   the number of rows of the array
    ("row",)    the number of elements of a row; not asked for if the array is a vector (of rows of 1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.kernels.nest import end_of
from engine.lowering.loops import (
    Bound,
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
Change = Callable[[str, str], tuple[Node, ...]]
"""Returns the nodes that change a row by the value at a place, given the names of both."""
BLOCK = 2048
"""Integers of an index that are checked, and used, before the next are read."""


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
    summary = f"gather: {dtype} by {index_dtype}" + (" from a vector" if vector else " in rows")
    return builder.kernel(_for_each_checked(index_dtype, copy), summary)


def wrap(index_dtype: str) -> Kernel:
    """Return the kernel of `output[i] = index[i]`, an int64 counted from the start: input 0 is the index.

    Raises InvalidKernel if `index_dtype` is no integer.
    """
    builder = KernelBuilder()
    _declare_index(builder, index_dtype, 0, True)
    builder.pointer("output", "int64", ("output", 0))
    store = (_store("output", "i", "wrapped", True),)
    return builder.kernel(_for_each_checked(index_dtype, store), f"wrap: {index_dtype}")


def check(index_dtype: str) -> Kernel:
    """Return the kernel that checks an index, input 0, and writes what to add to negative numbers.

    That is ("size",), or 0 if none is negative, an int64.

    Raises InvalidKernel if `index_dtype` is no integer.
    """
    builder = KernelBuilder()
    _declare_index(builder, index_dtype, 0, True)
    builder.pointer("output", "int64", ("output", 0))
    store = (
        Compute("from_end", "where", ("are_negative", "size", "none"), "int64"),
        WriteElement(Place("output"), "from_end"),
    )
    nodes = (*_constants(), *_check(index_dtype, finds_negative=True), *store)
    return builder.kernel(nodes, f"check: {index_dtype}")


def positions() -> Kernel:
    """Return the kernel that writes the position of each true element of input 0 to the output, int64s.

    The caller says how many there are:

        ("count",)  the number of true elements

    Each position is written where the next true one belongs, and stays there only if it is that: no branch
    depends on an element.
    """
    builder = KernelBuilder()
    builder.pointer("mask", "bool", ("input", 0))
    builder.integer("n", ("extent", (0,)))
    builder.integer("count", ("count",))
    builder.pointer("output", "int64", ("output", 0))
    body = (
        WriteElement(Place("output", (("found",),)), "i"),
        ReadElement("is_true", Place("mask", (("i",),))),
        Compute("step", "cast", ("is_true",), "int64"),
        Compute("following", "add", ("found", "step"), "int64"),
        Compute("is_last", "eq", ("following", "count"), "bool"),
    )
    loop = Loop("i", 0, "n", 1, body, (Carried("found", "none", "following"),), "is_last")
    nodes = (constant("none", "int64", 0), Compute("are_some", "gt", ("count", "none"), "bool"))
    return builder.kernel((*nodes, If("are_some", (loop,))), "positions")


def scatter_add(dtype: str, index_dtype: str, vector: bool, base: Base) -> Kernel:
    """Return the kernel of `output = base; output[index[i]] += values[i]` for each i, in turn.

    Input 0 is the index, input 1 the values, input 2 the base if it is "copied"; the output has its
    shape. A base that is "overwritten" is in the output already, and the whole index is checked first; it
    may also be "zeros". Raises InvalidKernel if `index_dtype` is no integer.
    """

    def add(at: str, row: str) -> tuple[Node, ...]:
        return (
            ReadElement(f"before_{at}", _element("output", row, vector)),
            ReadElement(f"value_{at}", _element("values", at, vector)),
            Compute(f"after_{at}", "add", (f"before_{at}", f"value_{at}"), dtype),
            _store("output", row, f"after_{at}", vector),
        )

    return _scatter("scatter_add", dtype, index_dtype, vector, base, add)


def scatter_set(dtype: str, index_dtype: str, vector: bool, base: Base) -> Kernel:
    """Return the kernel of `output = base; output[index[i]] = values[i]` (see `scatter_add`)."""

    def change(at: str, row: str) -> tuple[Node, ...]:
        value = ReadElement(f"value_{at}", _element("values", at, vector))
        return (value, _store("output", row, f"value_{at}", vector))

    return _scatter("scatter_set", dtype, index_dtype, vector, base, change)


def _scatter(name: str, dtype: str, index_dtype: str, vector: bool, base: Base, change: Change) -> Kernel:
    builder = KernelBuilder()
    _declare_index(builder, index_dtype, 0, vector)
    builder.pointer("values", dtype, ("input", 1))
    if base == "copied":
        builder.pointer("base", dtype, ("input", 2))
    builder.pointer("output", dtype, ("output", 0))
    each = (*_wrapped_index(index_dtype, "i"), *_for_each_column(vector, change("i", "wrapped")))
    if base == "overwritten":
        nodes = (*_constants(), *_check(index_dtype), Loop("i", 0, "count", 1, each))
    else:
        plain = (*_wanted(index_dtype, "k", "_k"), *change("k", "wanted_k")) if vector else ()
        blocks = _in_blocks(index_dtype, each, plain)
        nodes = (*_constants(), *_copy_base(dtype, vector, base == "zeros"), *blocks)
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


def _constants() -> tuple[Node, ...]:
    return (
        constant("none", "int64", 0),
        constant("one", "int64", 1),
        Compute("last", "sub", ("size", "one"), "int64"),
    )


def _for_each_checked(index_dtype: str, each: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes that do `each` for every i, whose row is `wrapped`, after a check of it."""
    nodes = (*_wrapped_index(index_dtype, "i"), *_fail_if_outside("i"), *each)
    return (*_constants(), Loop("i", 0, "count", 1, nodes))


def _in_blocks(index_dtype: str, each: tuple[Node, ...], plain: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes that do `each` for every i: a block of the index is in the cache from its check on.

    A block without negative numbers does `plain`, if there are such nodes, for every k instead.
    """
    use = Loop("i", "block", "block_end", 1, each)
    block = (
        *end_of("block", "block_size", "count"),
        *_check(index_dtype, "block", "block_end", bool(plain)),
        If("are_negative", (use,), (Loop("k", "block", "block_end", 1, plain),)) if plain else use,
    )
    return (constant("block_size", "int64", BLOCK), Loop("block", 0, "count", BLOCK, block))


def _check(
    index_dtype: str, start: Bound = 0, stop: Bound = "count", finds_negative: bool = False
) -> tuple[Node, ...]:
    """Return the nodes that fail if any index from `start` to `stop` is out of range.

    If it `finds_negative` numbers, `are_negative` says whether there are any.

    An index i is in range if neither i + size nor the last row - i is negative: the sign of all of them or-ed
    together says if one is not, without a branch for each.
    """
    signs = (
        *_wanted(index_dtype, "s", "_s"),
        Compute("above", "add", ("wanted_s", "size"), "int64"),
        Compute("behind", "sub", ("last", "wanted_s"), "int64"),
        Compute("sign", "or_", ("above", "behind"), "int64"),
        Compute("next_signs", "or_", ("signs", "sign"), "int64"),
    )
    search = (*_wrapped_index(index_dtype, "w", "_w"), *_fail_if_outside("w", "_w"))
    carried = [Carried("signs", "none", "next_signs")]
    found: tuple[Node, ...] = ()
    if finds_negative:
        signs += (Compute("next_negatives", "or_", ("negatives", "wanted_s"), "int64"),)
        carried.append(Carried("negatives", "none", "next_negatives"))
        found = (Compute("are_negative", "lt", ("negatives", "none"), "bool"),)
    return (
        Loop("s", start, stop, 1, signs, tuple(carried), interleaved=False),
        Compute("is_wrong", "lt", ("signs", "none"), "bool"),
        If("is_wrong", (Loop("w", start, stop, 1, search),)),
        *found,
    )


def _fail_if_outside(at: str, suffix: str = "") -> tuple[Node, ...]:
    return (
        Compute("too_low", "lt", (f"wrapped{suffix}", "none"), "bool"),
        Compute("too_high", "gt", (f"wrapped{suffix}", "last"), "bool"),
        Compute("outside", "or_", ("too_low", "too_high"), "bool"),
        If("outside", (Fail(INDEX_OUT_OF_RANGE, "details", (at, f"wanted{suffix}", "size")),)),
    )


def _wrapped_index(index_dtype: str, at: str, suffix: str = "") -> tuple[Node, ...]:
    """Return the nodes of `wrapped`, the row that the index at `at` means."""
    index, negative = f"wanted{suffix}", f"negative{suffix}"
    return (
        *_wanted(index_dtype, at, suffix),
        Compute(negative, "lt", (index, "none"), "bool"),
        Compute(f"from_end{suffix}", "add", (index, "size"), "int64"),
        Compute(f"wrapped{suffix}", "where", (negative, f"from_end{suffix}", index), "int64"),
    )


def _wanted(index_dtype: str, at: str, suffix: str) -> tuple[Node, ...]:
    """Return the nodes of `wanted`, the index at `at`."""
    return (
        ReadElement(f"loaded{suffix}", Place("index", ((at,),))),
        Compute(f"wanted{suffix}", "cast", (f"loaded{suffix}",), "int64"),
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
    inner = body if vector else (Loop("e", 0, "row", 1, body, independent=True),)
    return (*before, Loop("r", 0, rows, 1, inner, independent=vector))


def _for_each_column(vector: bool, body: tuple[Node, ...]) -> tuple[Node, ...]:
    return body if vector else (Loop("j", 0, "row", 1, body, independent=True),)


def _element(pointer: str, row: str, vector: bool, column: str = "j") -> Place:
    return Place(pointer, ((row,),) if vector else ((row, "row"), (column,)))


def _store(pointer: str, row: str, value: str, vector: bool) -> WriteElement:
    return WriteElement(_element(pointer, row, vector), value)
