"""Lowering of what runs along one axis: running sums and products, positions of extremes, sorting."""

from __future__ import annotations

from typing import Any, cast

from engine.graph.apply import Apply
from engine.lowering.kernels.along import cumulative, position_of_extreme
from engine.lowering.kernels.sort import argsort, sort
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.tensor.ordering import Argmax, Argmin, ArgSortOp, SortOp
from engine.tensor.reduction import CumOp


def _lower_cumulative(lowering: Lowering, node: Apply) -> None:
    source, output = node.inputs[0], node.outputs[0]
    lowering.dims[output] = lowering.dims_of(source)
    if lowering.is_needed(output):
        _call(lowering, node, cumulative(cast(CumOp, node.op).mode, dtype(source)))


def _lower_extreme(lowering: Lowering, node: Apply) -> None:
    source, output = node.inputs[0], node.outputs[0]
    axis = cast(Any, node.op).axis
    lengths = lowering.dims_of(source)
    lowering.dims[output] = (*lengths[:axis], *lengths[axis + 1 :])
    if lowering.is_needed(output):
        kind = "max" if isinstance(node.op, Argmax) else "min"
        is_last = axis == len(lengths) - 1
        _call(lowering, node, position_of_extreme(kind, dtype(source), is_last))


def _call(lowering: Lowering, node: Apply, kernel: Kernel) -> None:
    table, output = lowering.table, node.outputs[0]
    axis = cast(Any, node.op).axis
    value = lowering.contiguous(lowering.value_of(node.inputs[0]))
    lengths = value.dims
    extents = (table.product(lengths[:axis]), lengths[axis], table.product(lengths[axis + 1 :]))
    result = lowering.allocate(output, [value], lowering.dims[output], extents)
    table.call(kernel, [value], [result], str(node.op), extents)


def _lower_argsort(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    dims = lowering.dims[output] = lowering.dims_of(node.inputs[0])
    if not lowering.is_needed(output):
        return
    value = lowering.contiguous(lowering.value_of(node.inputs[0]))
    extents = (table.product(dims[:-1]), dims[-1])
    result = lowering.allocate(output, [value], dims, extents)
    table.call(
        argsort(value.dtype, cast(ArgSortOp, node.op).stable), [value], [result], str(node.op), extents
    )


def _lower_sort(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    dims = lowering.dims[output] = lowering.dims_of(node.inputs[0])
    if not lowering.is_needed(output):
        return
    value = lowering.value_of(node.inputs[0])
    extents = (table.product(dims[:-1]), dims[-1])
    result = lowering.allocate(output, [value], dims, extents)
    lowering.copy(value, result)
    table.call(sort(value.dtype), [], [result], str(node.op), extents)


RULES: Rules = {
    CumOp: OpRule(_lower_cumulative),
    Argmax: OpRule(_lower_extreme),
    Argmin: OpRule(_lower_extreme),
    ArgSortOp: OpRule(_lower_argsort),
    SortOp: OpRule(_lower_sort),
}
