"""Lowering of sorting along the last axis: rows are sorted one after the other, in scratch memory for one."""

from __future__ import annotations

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.lowering.kernels.sort import argsort
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule
from engine.tensor.ordering import ArgSortOp


def _lower_argsort(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    dims = lowering.dims[output] = lowering.dims_of(node.inputs[0])
    if not lowering.is_needed(output):
        return
    value = lowering.contiguous(lowering.value_of(node.inputs[0]))
    extents = (table.product(dims[:-1]), dims[-1])
    result = lowering.allocate(output, [value], dims, extents)
    scratch = table.buffer("int64", (dims[-1],), result.stage)
    table.call(argsort(value.dtype), [value], [result, scratch], str(node.op), extents)


RULES: dict[type[Op], OpRule] = {ArgSortOp: OpRule(_lower_argsort)}
