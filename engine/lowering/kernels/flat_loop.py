"""One loop over arrays of one dim that stores elementwise results and computes reductions of others.

Sums of floats are computed in blocks, as those of `reduce`: both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import Axis, Fused, NestOperand, contiguous_terms, declare, end_of
from engine.lowering.kernels.reduce import BLOCK, OPERATIONS, neutral_element
from engine.lowering.loops import Carried, Compute, Kernel, Loop, Node, Number, Place, WriteElement
from engine.lowering.operations import FLOATS
from engine.lowering.statements import Ref, ScalarRepeat, Statement


def flat(
    inputs: Sequence[NestOperand],
    body: Sequence[Statement | ScalarRepeat],
    outputs: Sequence[Ref],
    reductions: Sequence[tuple[str, Ref, str, str]],
) -> Kernel:
    """Return the kernel of one loop that stores `outputs`, arrays, and computes `reductions`, numbers.

    Each reduction is a kind (sum, all, any, or prod of integers), the reduced value, the dtype that it is
    accumulated in and that of its result. Every input has one dim. The outputs come first.
    """
    if not reductions:
        return elementwise(inputs, body, outputs, 1)
    return _flat(tuple(inputs), tuple(body), tuple(outputs), tuple(reductions))


@lru_cache(maxsize=1024)
def _flat(
    inputs: tuple[NestOperand, ...],
    body: tuple[Statement | ScalarRepeat, ...],
    outputs: tuple[Ref, ...],
    reductions: tuple[tuple[str, Ref, str, str], ...],
) -> Kernel:
    casts = [Statement("cast", (ref,), accumulator) for _, ref, accumulator, _ in reductions]
    axes = (Axis((0,), "i0", "n0"),)
    fused = Fused(inputs, (*body, *casts), axes, axes)
    builder = KernelBuilder()
    declare(builder, inputs, axes)
    writes: list[Node] = []
    for number, ref in enumerate(outputs):
        pointer = builder.pointer(f"y{number}", fused.dtype(ref), ("output", number))
        writes.append(WriteElement(Place(pointer, contiguous_terms(axes)), fused.name(ref)))
    numbers, totals, sums, ends = [], [], [], []
    results: list[Node] = []
    for k, (kind, _, accumulator, result) in enumerate(reductions):
        pointer = builder.pointer(f"z{k}", result, ("output", len(outputs) + k))
        reduced = fused.name(("value", len(body) + k))
        op, in_any_order = OPERATIONS[kind], accumulator in FLOATS and kind == "sum"
        numbers.append(Number(f"neutral{k}", accumulator, neutral_element(kind, accumulator)))
        totals.append(Carried(f"total{k}", f"neutral{k}", f"total_next{k}"))
        sums.append(Carried(f"sum{k}", f"neutral{k}", f"sum_next{k}", in_any_order))
        writes.append(Compute(f"sum_next{k}", op, (f"sum{k}", reduced), accumulator))
        ends.append(Compute(f"total_next{k}", op, (f"total{k}", f"sum{k}"), accumulator))
        results.append(Compute(f"result{k}", "cast", (f"total{k}",), result))
        results.append(WriteElement(Place(pointer), f"result{k}"))
    each = (*fused.nodes(1), *writes)
    block = (
        *end_of("block", "block_size", "n0"),
        Loop("i0", "block", "block_end", 1, each, tuple(sums), independent=True),
        *ends,
    )
    nodes = (
        constant("block_size", "int64", BLOCK),
        *numbers,
        *fused.nodes(0),
        Loop("block", 0, "n0", BLOCK, block, tuple(totals)),
        *results,
    )
    kinds = ", ".join(kind for kind, *_ in reductions)
    operations = ", ".join(str(statement.op) for statement in body)
    types = ", ".join(operand.dtype + " strided" * operand.strided for operand in inputs)
    summary = f"{kinds} and {len(outputs)} arrays of {operations}: ({types})"
    return builder.kernel((*fused.constants(), *nodes), summary)
