"""Elementwise kernels: any number of scalar statements fused into one loop nest, and copying as the least of them.

Arguments: inputs, extents, strides of strided inputs, outputs. Outputs are C-contiguous over all dims; none may
overlap an input unless it is the same memory element for element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.lowering.kernels.nest import (
    Axis,
    Fused,
    KernelBuilder,
    NestOperand,
    collapse,
    contiguous_terms,
    declare,
)
from engine.lowering.loops import Kernel, Loop, Node, Place, Write
from engine.lowering.statements import Ref, Repeat, Statement


def elementwise(
    inputs: Sequence[NestOperand], body: Sequence[Statement | Repeat], outputs: Sequence[Ref], rank: int
) -> Kernel:
    """Return the kernel that computes `body` for each element of a nest of `rank` dims and stores `outputs`.

    A kernel with an integer `pow` may return NEGATIVE_POWER. Raises InvalidKernel if a ref names nothing or a pattern
    does not have `rank` dims.
    """
    return _elementwise(tuple(inputs), tuple(body), tuple(outputs), rank)


@lru_cache(maxsize=1024)
def _elementwise(
    inputs: tuple[NestOperand, ...], body: tuple[Statement | Repeat, ...], outputs: tuple[Ref, ...], rank: int
) -> Kernel:
    axes = collapse(inputs, rank)
    signature = KernelBuilder()
    declare(signature, inputs, axes)
    fused = Fused(inputs, body, axes, axes)
    stores: list[Node] = []
    for position, ref in enumerate(outputs):
        pointer = signature.pointer(f"y{position}", fused.dtype(ref), ("output", position))
        stores.append(Write(Place(pointer, contiguous_terms(axes)), fused.name(ref)))
    nest = _nest(fused, axes, tuple(stores))
    nodes = fused.constants() + nest
    return Kernel(tuple(signature.parameters), nodes, tuple(signature.arguments), _summary(fused, outputs))


def copy(dtype: str, broadcast: tuple[bool, ...], strided: bool) -> Kernel:
    """Return the kernel that writes one input, broadcast or strided, as a C-contiguous array."""
    return elementwise([NestOperand(dtype, broadcast, strided)], [], [("input", 0)], len(broadcast))


def _nest(fused: Fused, axes: Sequence[Axis], innermost: tuple[Node, ...]) -> tuple[Node, ...]:
    nodes = fused.nodes(len(axes)) + innermost
    for depth in reversed(range(len(axes))):
        axis = axes[depth]
        nodes = (*fused.nodes(depth), Loop(axis.index, 0, axis.extent, 1, nodes))
    return nodes


def _summary(fused: Fused, outputs: Sequence[Ref]) -> str:
    operations = ", ".join(str(statement.op) for statement in fused.statements) or "copy"
    inputs = ", ".join(operand.dtype + " strided" * operand.strided for operand in fused.operands)
    results = ", ".join(fused.dtype(ref) for ref in outputs)
    return f"elementwise {operations}: ({inputs}) -> ({results}), {fused.depth} loops"
