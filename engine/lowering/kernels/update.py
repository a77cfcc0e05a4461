"""Writing into a part of an array that is there already: setting its elements, or adding to them.

Input 0 is what is written, input 1 the part, which is both read and written; a part is strided.
"""

from __future__ import annotations

from engine.lowering.kernels.nest import Axis, Fused, KernelBuilder, NestOperand, collapse, declare
from engine.lowering.loops import Kernel, Loop, Node, Write
from engine.lowering.statements import Ref, Statement


def update(operand: NestOperand, adds: bool) -> Kernel:
    """Return the kernel of `part = operand`, or `part += operand` if it `adds`, over the dims of `operand`.

    The part has the dtype of the operand and no element of it occurs twice.
    """
    rank = len(operand.broadcast)
    operands = [operand, NestOperand(operand.dtype, (False,) * rank, strided=True)]
    axes = collapse(operands, rank)
    signature = KernelBuilder()
    declare(signature, operands, axes)
    body = [Statement("add", (("input", 1), ("input", 0)), operand.dtype)] if adds else []
    result: Ref = ("value", 0) if adds else ("input", 0)
    fused = Fused(operands, body, axes, axes)
    nodes = _nest(fused, axes, Write(fused.place(1), fused.name(result)))
    layout = "strided" if operand.strided else "contiguous"
    summary = f"{'add to' if adds else 'set'} a part: {layout} {operand.dtype}, {len(axes)} loops"
    return Kernel(tuple(signature.parameters), nodes, tuple(signature.arguments), summary)


def _nest(fused: Fused, axes: tuple[Axis, ...], store: Write) -> tuple[Node, ...]:
    nodes: tuple[Node, ...] = (*fused.nodes(len(axes)), store)
    for depth in reversed(range(len(axes))):
        nodes = (*fused.nodes(depth), Loop(axes[depth].index, 0, axes[depth].extent, 1, nodes))
    return nodes
