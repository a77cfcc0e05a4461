"""Lowering of masks: what is true is counted first; how many places there are is read back in the next stage."""

from __future__ import annotations

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.lowering.kernels.gather import positions
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule
from engine.lowering.statements import Statement
from engine.lowering.steps import Check, Value
from engine.tensor.masks import FlatNonzero


def _lower_flat_nonzero(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    mask, *lengths = node.inputs
    for axis, (found, length) in enumerate(zip(lowering.dims_of(mask), lengths, strict=True)):
        table.same(found, lowering.scalar_of(length), Check("mask", str(node.op), (str(axis),)))
    value = lowering.contiguous(lowering.value_of(mask))
    size = table.product(value.dims)
    dims = lowering.dims[output] = (table.load(_count(lowering, value, size), False),)
    if not lowering.is_needed(output):
        return
    result = lowering.allocate(output, [value], dims, (size,))
    table.call(positions(), [value], [result], str(node.op), (size,))


def _count(lowering: Lowering, mask: Value, size: int) -> Value:
    """Where the number of what is true is written."""
    table = lowering.table
    result = table.buffer("int64", (), max(mask.stage, table.stage((size,))))
    as_number = Statement("cast", (("input", 0),), "int64")
    kernel = reduction(
        "sum", [NestOperand("bool", (False,))], [as_number], ("value", 0), 1, (0,), "int64", "int64"
    )
    table.call(kernel, [mask], [result], "count", (size,))
    return result


RULES: dict[type[Op], OpRule] = {
    FlatNonzero: OpRule(_lower_flat_nonzero, lambda node: node.inputs[:1], lambda node: node.inputs),
}
