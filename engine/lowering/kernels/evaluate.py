"""Kernels that are one call of a user's function on arrays, which gives a number.

Arguments: for each input its pointer and its lengths ("length", input, dim), then the output, one element. Inputs are C-contiguous.
"""

from __future__ import annotations

from engine.lowering.kernels.nest import KernelBuilder
from engine.lowering.loops import Elements, Evaluate, Kernel, Place, Write
from engine.scalar.embedded import Embedded


def evaluation(function: Embedded) -> Kernel:
    """Return the kernel that stores what `function` gives for its arrays."""
    signature = KernelBuilder()
    arrays = []
    for position, (dtype, rank) in enumerate(zip(function.arguments, function.ranks or (), strict=True)):
        pointer = signature.pointer(f"x{position}", dtype, ("input", position))
        lengths = [signature.integer(f"n{position}_{dim}", ("length", position, dim)) for dim in range(rank)]
        arrays.append(Elements(pointer, tuple(lengths)))
    result = signature.pointer("y", function.result, ("output", 0))
    body = (Evaluate("v", function, tuple(arrays)), Write(Place(result), "v"))
    return Kernel(tuple(signature.parameters), body, tuple(signature.arguments), f"function: {function}")
