"""Kernels of two vectors: the places of numbers in a sorted one, and their convolution.

They ask for the lengths of inputs 0 and 1 as the extents of the dims 0 and 1.
"""

from __future__ import annotations

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.loops import (
    Carried,
    Compute,
    Kernel,
    Loop,
    Node,
    Place,
    ReadElement,
    WriteElement,
)
from engine.lowering.operations import FLOATS


def search_sorted(dtype: str, side: str) -> Kernel:
    """Return the kernel of where each element of input 1 belongs in the sorted input 0, by bisection.

    Output 0 is the int64 number of smaller elements, with `side` "right" of smaller or equal ones. NaN comes
    last, as where numpy sorts.
    """
    builder = _builder(dtype, "int64")
    halved = (
        Compute("sum", "add", ("low", "high"), "int64"),
        Compute("middle", "floor_div", ("sum", "two"), "int64"),
        ReadElement("element", Place("x", (("middle",),))),
        *_is_before(dtype, side),
        Compute("behind", "add", ("middle", "one"), "int64"),
        Compute("next_low", "where", ("before", "behind", "low"), "int64"),
        Compute("next_high", "where", ("before", "high", "middle"), "int64"),
        Compute("found", "ge", ("next_low", "next_high"), "bool"),
    )
    bounds = (Carried("low", "zero", "next_low"), Carried("high", "n", "next_high"))
    each = (
        ReadElement("key", Place("y", (("at",),))),
        Loop("turn", 0, "n", 1, halved, bounds, until="found"),
        WriteElement(Place("result", (("at",),)), "low"),
    )
    numbers = (constant(name, "int64", value) for value, name in enumerate(("zero", "one", "two")))
    nodes: tuple[Node, ...] = (*numbers, Loop("at", 0, "m", 1, each))
    return builder.kernel(nodes, f"search sorted: {dtype} {side}")


def _is_before(dtype: str, side: str) -> tuple[Node, ...]:
    """Return the nodes of `before`: `element` comes before `key`, or, on the right side, not behind it."""
    left = side == "left"
    first, second = ("element", "key") if left else ("key", "element")
    is_less = Compute("is_less", "lt", (first, second), "bool")
    less: tuple[Node, ...] = (is_less,)
    if dtype in FLOATS:
        less = (
            is_less,
            Compute("second_nan", "isnan", (second,), "bool"),
            Compute("first_nan", "isnan", (first,), "bool"),
            Compute("first_number", "invert", ("first_nan",), "bool"),
            Compute("second_last", "and_", ("second_nan", "first_number"), "bool"),
            Compute("is_before", "or_", ("is_less", "second_last"), "bool"),
        )
    last = "is_before" if dtype in FLOATS else "is_less"
    return (*less, Compute("before", "identity" if left else "invert", (last,), "bool"))


def convolve(dtype: str) -> Kernel:
    """Return the kernel of the whole convolution of inputs 0 and 1, n + m - 1 elements in output 0.

    Its loop over input 0 is the inner one: the longer input should be that. The length of the output is asked
    for as the extent of dim 2.
    """
    builder = _builder(dtype, dtype)
    builder.integer("size", ("extent", (2,)))
    target = Place("result", (("i",), ("j",)))
    body = (
        ReadElement("element", Place("x", (("i",),))),
        ReadElement("before", target),
        Compute("product", "mul", ("element", "weight"), dtype),
        Compute("after", "add", ("before", "product"), dtype),
        WriteElement(target, "after"),
    )
    nodes = (
        constant("nothing", dtype, 0),
        Loop("k", 0, "size", 1, (WriteElement(Place("result", (("k",),)), "nothing"),), independent=True),
        Loop(
            "j",
            0,
            "m",
            1,
            (ReadElement("weight", Place("y", (("j",),))), Loop("i", 0, "n", 1, body, independent=True)),
        ),
    )
    return builder.kernel(nodes, f"convolve: {dtype}")


def _builder(dtype: str, result: str) -> KernelBuilder:
    builder = KernelBuilder()
    for position, (name, length) in enumerate((("x", "n"), ("y", "m"))):
        builder.pointer(name, dtype, ("input", position))
        builder.integer(length, ("extent", (position,)))
    builder.pointer("result", result, ("output", 0))
    return builder
