"""Numbers in steps. Beside the arguments in kernels/__init__.py: ("start",) and ("step",), int64."""

from __future__ import annotations

from engine.lowering.kernels.nest import KernelBuilder
from engine.lowering.loops import Compute, Kernel, Loop, Place, Write


def arange() -> Kernel:
    """Return the kernel of `output[i] = start + i * step`, of int64."""
    signature = KernelBuilder()
    signature.integer("n", ("extent", (0,)))
    signature.integer("start", ("start",))
    signature.integer("step", ("step",))
    signature.pointer("output", "int64", ("output", 0))
    body = (
        Compute("distance", "mul", ("i", "step"), "int64"),
        Compute("number", "add", ("start", "distance"), "int64"),
        Write(Place("output", (("i",),)), "number"),
    )
    nodes = (Loop("i", 0, "n", 1, body),)
    return Kernel(tuple(signature.parameters), nodes, tuple(signature.arguments), "arange: int64")
