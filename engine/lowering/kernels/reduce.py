"""Reductions over some dims of a nest, with scalar statements fused in front of them.

Arguments: inputs, extents, strides of strided inputs, and output 0, which is C-contiguous over the kept
dims. The order of the loops depends on the dim that is innermost in memory: it is reduced (row_*.py),
or kept (column_reduction.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.lowering.kernels.building import KernelBuilder
from engine.lowering.kernels.column_reduction import ColumnReduction
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import Fused, NestOperand, collapse, declare
from engine.lowering.kernels.reduction_nest import OPERATIONS
from engine.lowering.kernels.row_extremes import RowExtreme
from engine.lowering.kernels.row_products import RowProduct
from engine.lowering.kernels.row_reduction import RowReduction
from engine.lowering.kernels.row_sums import RowSum
from engine.lowering.loops import Kernel
from engine.lowering.operations import FLOATS
from engine.lowering.statements import Ref, ScalarRepeat, Statement
from engine.runtime.errors import InvalidKernel


def reduction(
    kind: str,
    inputs: Sequence[NestOperand],
    body: Sequence[Statement | ScalarRepeat],
    reduced: Ref,
    rank: int,
    dims: Sequence[int],
    accumulator: str,
    result: str,
    from_neutral: bool = False,
    is_short: bool = False,
) -> Kernel:
    """Return the kernel that reduces `reduced`, a value of `body`, over `dims` of a nest of `rank` dims.

    `kind` is sum, prod, max, min, all or any (the last two of bools). Each element is cast to the dtype
    `accumulator`, the outcome to the dtype `result`. max and min pass NaN on. Over no elements they
    return EMPTY_REDUCTION (even if the output is empty, as in numpy), unless they start `from_neutral`;
    the others give their neutral element. If the reduction `is_short`, over few elements, the kernel is the
    simplest: one element at a time. Raises InvalidKernel if the description contradicts itself.
    """
    checked = kind in ("max", "min") and not from_neutral
    over = frozenset(dims)
    return _reduction(
        kind, tuple(inputs), tuple(body), reduced, rank, over, accumulator, result, checked, is_short
    )


@lru_cache(maxsize=1024)
def _reduction(
    kind: str,
    inputs: tuple[NestOperand, ...],
    body: tuple[Statement | ScalarRepeat, ...],
    reduced: Ref,
    rank: int,
    over: frozenset[int],
    accumulator: str,
    result: str,
    refuses_empty: bool,
    is_short: bool,
) -> Kernel:
    if kind not in OPERATIONS or not over <= set(range(rank)):
        raise InvalidKernel(
            "building", f"a {kind} over dims {tuple(sorted(over))}", f"the nest has {rank} dims"
        )
    statements: list[Statement | ScalarRepeat] = [*body, Statement("cast", (reduced,), accumulator)]
    if not over:
        statements.append(Statement("cast", (("value", len(body)),), result))
        return elementwise(inputs, statements, [("value", len(statements) - 1)], rank)
    axes = collapse(inputs, rank, [dim in over for dim in range(rank)])
    kept = tuple(axis for axis in axes if axis.dims[0] not in over)
    gone = tuple(axis for axis in axes if axis.dims[0] in over)
    by_column = axes[-1] in kept
    order = (*kept[:-1], *gone, kept[-1]) if by_column else kept + gone
    fused = Fused(inputs, statements, order, axes)
    made: type[ColumnReduction | RowReduction] = (
        ColumnReduction if by_column else _along_rows(kind, accumulator, is_short)
    )
    plan = made(kind, fused, kept, gone, accumulator, result, is_short)
    builder = KernelBuilder()
    declare(builder, inputs, axes)
    builder.pointer("y", result, ("output", 0))
    loops = plan.loops()  # names the constants
    check = plan.empty_check() if refuses_empty else ()
    nodes = (*plan.constants(), *check, *loops)
    return builder.kernel(nodes, plan.summary())


def _along_rows(kind: str, accumulator: str, is_short: bool) -> type[RowReduction]:
    """Return the form of a reduction whose innermost axis is reduced."""
    if accumulator not in FLOATS or (is_short and kind in ("max", "min")):
        return RowReduction
    return {"sum": RowSum, "prod": RowProduct, "max": RowExtreme, "min": RowExtreme}.get(kind, RowReduction)
