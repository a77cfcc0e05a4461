"""Elementwise kernels: statements fused into one loop nest, copies, changes of a part, ranges.

Arguments: inputs, extents, strides of strided inputs, outputs. Outputs are C-contiguous over all dims.
None may overlap an input, unless it is the same memory element for element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.lowering.kernels.building import KernelBuilder
from engine.lowering.kernels.nest import Axis, Fused, NestOperand, collapse, contiguous_terms, declare
from engine.lowering.loops import Compute, Kernel, Loop, Node, Place, WriteElement
from engine.lowering.statements import Ref, Repeat, Statement


def elementwise(
    inputs: Sequence[NestOperand], body: Sequence[Statement | Repeat], outputs: Sequence[Ref], rank: int
) -> Kernel:
    """Return the kernel that computes `body` for each element of a nest of `rank` dims and stores `outputs`.

    A kernel with an integer `pow` may return NEGATIVE_POWER. Raises InvalidKernel if a ref names
    nothing or a pattern does not have `rank` dims.
    """
    return _elementwise(tuple(inputs), tuple(body), tuple(outputs), rank)


@lru_cache(maxsize=1024)
def _elementwise(
    inputs: tuple[NestOperand, ...],
    body: tuple[Statement | Repeat, ...],
    outputs: tuple[Ref, ...],
    rank: int,
) -> Kernel:
    axes = collapse(inputs, rank)
    builder = KernelBuilder()
    declare(builder, inputs, axes)
    fused = Fused(inputs, body, axes, axes)
    writes: list[Node] = []
    for position, ref in enumerate(outputs):
        pointer = builder.pointer(f"y{position}", fused.dtype(ref), ("output", position))
        writes.append(WriteElement(Place(pointer, contiguous_terms(axes)), fused.name(ref)))
    nest = _nest(fused, axes, tuple(writes))
    return builder.kernel(fused.constants() + nest, _summary(fused, outputs))


def copy(dtype: str, broadcast: tuple[bool, ...], strided: bool) -> Kernel:
    """Return the kernel that writes one input, broadcast or strided, as a C-contiguous array."""
    return elementwise([NestOperand(dtype, broadcast, strided)], [], [("input", 0)], len(broadcast))


def update(operand: NestOperand, adds: bool) -> Kernel:
    """Return the kernel of `part = operand`, or `part += operand` if it `adds`, over the dims of `operand`.

    Input 0 is the operand. Input 1 is the part, which is read and written: strided, of the operand's
    dtype, and without an element that occurs twice.
    """
    rank = len(operand.broadcast)
    operands = [operand, NestOperand(operand.dtype, (False,) * rank, strided=True)]
    axes = collapse(operands, rank)
    builder = KernelBuilder()
    declare(builder, operands, axes)
    body = [Statement("add", (("input", 1), ("input", 0)), operand.dtype)] if adds else []
    result: Ref = ("value", 0) if adds else ("input", 0)
    fused = Fused(operands, body, axes, axes)
    nodes = _nest(fused, axes, (WriteElement(fused.place(1), fused.name(result)),))
    layout = "strided" if operand.strided else "contiguous"
    summary = f"{'add to' if adds else 'set'} a part: {layout} {operand.dtype}, {len(axes)} loops"
    return builder.kernel(nodes, summary)


def arange() -> Kernel:
    """Return the kernel of `output[i] = start + i * step`, of int64, with arguments ("start",) and
    ("step",).
    """
    builder = KernelBuilder()
    builder.integer("n", ("extent", (0,)))
    builder.integer("start", ("start",))
    builder.integer("step", ("step",))
    builder.pointer("output", "int64", ("output", 0))
    body = (
        Compute("distance", "mul", ("i", "step"), "int64"),
        Compute("number", "add", ("start", "distance"), "int64"),
        WriteElement(Place("output", (("i",),)), "number"),
    )
    return builder.kernel((Loop("i", 0, "n", 1, body, independent=True),), "arange: int64")


def _nest(fused: Fused, axes: Sequence[Axis], innermost: tuple[Node, ...]) -> tuple[Node, ...]:
    nodes = fused.nodes(len(axes)) + innermost
    for depth in reversed(range(len(axes))):
        axis = axes[depth]
        loop = Loop(axis.index, 0, axis.extent, 1, nodes, independent=depth == len(axes) - 1)
        nodes = (*fused.nodes(depth), loop)
    return nodes


def _summary(fused: Fused, outputs: Sequence[Ref]) -> str:
    operations = ", ".join(str(statement.op) for statement in fused.statements) or "copy"
    inputs = ", ".join(operand.dtype + " strided" * operand.strided for operand in fused.operands)
    results = ", ".join(fused.dtype(ref) for ref in outputs)
    return f"elementwise {operations}: ({inputs}) -> ({results}), {fused.depth} loops"
