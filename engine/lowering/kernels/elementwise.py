"""Elementwise kernels: statements fused into one loop nest, copies, changes of a part, ranges.

Operands whose elements lie side by side along another dim than the last are read in tiles of TILE by TILE
elements: the lines of memory that hold a tile are in the cache until all of them is read.

Arguments: inputs, extents, strides of strided inputs, outputs. Outputs are C-contiguous over all dims.
None may overlap an input, unless it is the same memory element for element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.kernels.nest import (
    Axis,
    Fused,
    NestOperand,
    collapse,
    contiguous_terms,
    declare,
    end_of,
)
from engine.lowering.loops import Compute, Kernel, Loop, Node, Place, WriteElement
from engine.lowering.statements import Ref, ScalarRepeat, Statement

TILE = 64
"""Elements along one side of a tile. In tiles of 32 a copy takes 1.1 times as long, in tiles of 8 1.5."""


def elementwise(
    inputs: Sequence[NestOperand], body: Sequence[Statement | ScalarRepeat], outputs: Sequence[Ref], rank: int
) -> Kernel:
    """Return the kernel that computes `body` for each element of a nest of `rank` dims and stores `outputs`.

    A kernel with an integer `pow` may return NEGATIVE_POWER. Raises InvalidKernel if a ref names
    nothing or a pattern does not have `rank` dims.
    """
    return _elementwise(tuple(inputs), tuple(body), tuple(outputs), rank)


@lru_cache(maxsize=1024)
def _elementwise(
    inputs: tuple[NestOperand, ...],
    body: tuple[Statement | ScalarRepeat, ...],
    outputs: tuple[Ref, ...],
    rank: int,
) -> Kernel:
    axes = collapse(inputs, rank)
    builder = KernelBuilder()
    declare(builder, inputs, axes)
    tiled = _tiled_axis(inputs, axes)
    loops = axes if tiled is None else (*(a for a in axes[:-1] if a != tiled), tiled, axes[-1])
    fused = Fused(inputs, body, loops, axes)
    writes: list[Node] = []
    for position, ref in enumerate(outputs):
        pointer = builder.pointer(f"y{position}", fused.dtype(ref), ("output", position))
        writes.append(WriteElement(Place(pointer, contiguous_terms(axes)), fused.name(ref)))
    nest = _nest(fused, tuple(writes)) if tiled is None else _tiled_nest(fused, tuple(writes))
    return builder.kernel(fused.constants() + nest, _summary(fused, outputs))


def _tiled_axis(inputs: Sequence[NestOperand], axes: Sequence[Axis]) -> Axis | None:
    """Return the axis along which an operand's elements lie side by side, if it is not the last."""
    units = {operand.unit for operand in inputs}
    return next((axis for axis in axes[:-1] if axis.dims[0] in units), None)


def copy(operand: NestOperand) -> Kernel:
    """Return the kernel that writes one input as a C-contiguous array."""
    return elementwise([operand], [], [("input", 0)], len(operand.broadcast))


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
    nodes = _nest(fused, (WriteElement(fused.place(1), fused.name(result)),))
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


def _nest(fused: Fused, innermost: tuple[Node, ...]) -> tuple[Node, ...]:
    axis = fused.axes[-1] if fused.axes else None
    nodes = fused.nodes(fused.depth) + innermost
    if axis is None:
        return nodes
    return _around(fused, fused.depth - 1, Loop(axis.index, 0, axis.extent, 1, nodes, independent=True))


def _tiled_nest(fused: Fused, innermost: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nest whose two innermost axes are run through in tiles."""
    depth, (rows, columns) = fused.depth, fused.axes[-2:]
    nodes = fused.nodes(depth) + innermost
    row = Loop(columns.index, "column_tile", "column_tile_end", 1, nodes, independent=True)
    tile = Loop(rows.index, "row_tile", "row_tile_end", 1, (*fused.nodes(depth - 1), row))
    column_end = end_of("column_tile", "tile_size", columns.extent)
    tiles = Loop("column_tile", 0, columns.extent, TILE, (*column_end, tile))
    row_end = end_of("row_tile", "tile_size", rows.extent)
    bands = Loop("row_tile", 0, rows.extent, TILE, (*row_end, tiles))
    return (constant("tile_size", "int64", TILE), *_around(fused, depth - 2, bands))


def _around(fused: Fused, depth: int, loop: Loop) -> tuple[Node, ...]:
    """Return the loops around `loop`, which is at `depth`."""
    nodes: tuple[Node, ...] = (*fused.nodes(depth), loop)
    for outer in reversed(range(depth)):
        axis = fused.axes[outer]
        nodes = (*fused.nodes(outer), Loop(axis.index, 0, axis.extent, 1, nodes))
    return nodes


def _summary(fused: Fused, outputs: Sequence[Ref]) -> str:
    operations = ", ".join(str(statement.op) for statement in fused.statements) or "copy"
    inputs = ", ".join(operand.dtype + " strided" * operand.strided for operand in fused.operands)
    results = ", ".join(fused.dtype(ref) for ref in outputs)
    return f"elementwise {operations}: ({inputs}) -> ({results}), {fused.depth} loops"
