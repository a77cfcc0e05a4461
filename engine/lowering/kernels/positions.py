"""The positions of what is true in a contiguous mask. The caller knows how many there are: as many as a sum counted."""

from __future__ import annotations

import struct

from engine.lowering.kernels.nest import Signature
from engine.lowering.loops import Carried, Compute, Constant, If, Kernel, Load, Loop, Place, Store


def positions() -> Kernel:
    """Return the kernel that writes to the output, int64s, the index of each element of input 0, bools, that is true."""
    signature = Signature()
    signature.pointer("mask", "bool", ("input", 0))
    signature.integer("n", ("extent", (0,)))
    signature.pointer("output", "int64", ("output", 0))
    body = (
        Load("is_true", Place("mask", (("i",),))),
        If("is_true", (Store(Place("output", (("found",),)), "i"),)),
        Compute("step", "cast", ("is_true",), "int64"),
        Compute("following", "add", ("found", "step"), "int64"),
    )
    nodes = (
        Constant("none", "int64", struct.pack("<q", 0)),
        Loop("i", 0, "n", 1, body, (Carried("found", "none", "following"),)),
    )
    return Kernel(tuple(signature.parameters), nodes, tuple(signature.arguments), "positions")
