"""The positions of what is true in a contiguous mask. The caller knows how many there are: as many as a sum counted."""

from __future__ import annotations

import struct

from engine.lowering.kernels.nest import KernelBuilder
from engine.lowering.loops import Carried, Compute, If, Kernel, Loop, Place, Read, ScalarConstant, Write


def positions() -> Kernel:
    """Return the kernel that writes to the output, int64s, the index of each element of input 0, bools, that is true."""
    signature = KernelBuilder()
    signature.pointer("mask", "bool", ("input", 0))
    signature.integer("n", ("extent", (0,)))
    signature.pointer("output", "int64", ("output", 0))
    body = (
        Read("is_true", Place("mask", (("i",),))),
        If("is_true", (Write(Place("output", (("found",),)), "i"),)),
        Compute("step", "cast", ("is_true",), "int64"),
        Compute("following", "add", ("found", "step"), "int64"),
    )
    nodes = (
        ScalarConstant("none", "int64", struct.pack("<q", 0)),
        Loop("i", 0, "n", 1, body, (Carried("found", "none", "following"),)),
    )
    return Kernel(tuple(signature.parameters), nodes, tuple(signature.arguments), "positions")
