"""Lowering of what runs along one axis: running sums and products, positions of extremes, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine.graph.apply import Apply
from engine.lowering.kernels.along import cumulative, position_of_extreme
from engine.lowering.kernels.sort import argsort, sort
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.shape import permuted_view
from engine.lowering.steps import Value
from engine.tensor.ordering import Argmax, Argmin, ArgSortOp, SortOp
from engine.tensor.reduction import CumOp


def _lower_cumulative(lowering: Lowering, node: Apply) -> None:
    source, output = node.inputs[0], node.outputs[0]
    lowering.dims[output] = lowering.dims_of(source)
    if lowering.is_needed(output):
        op = cast(CumOp, node.op)
        value = lowering.contiguous(lowering.value_of(source))
        _call(lowering, node, value, range(op.axis, op.axis + 1), cumulative(op.mode, dtype(source)))


def _lower_extreme(lowering: Lowering, node: Apply) -> None:
    source, output = node.inputs[0], node.outputs[0]
    axes: Sequence[int] = cast(Any, node.op).axis
    lengths = lowering.dims_of(source)
    kept = [axis for axis in range(len(lengths)) if axis not in axes]
    lowering.dims[output] = tuple([lengths[axis] for axis in kept])
    if not lowering.is_needed(output):
        return
    value = lowering.value_of(source)
    along = range(axes[0], axes[0] + 1) if len(axes) == 1 else range(len(kept), len(lengths))
    if len(axes) > 1:  # numpy's function for a row is faster than few columns side by side
        order = (*kept, *axes)
        value = permuted_view(lowering, value, order, tuple([lengths[axis] for axis in order]))
    kind = "max" if isinstance(node.op, Argmax) else "min"
    kernel = position_of_extreme(kind, dtype(source), along.stop == len(lengths))
    _call(lowering, node, lowering.contiguous(value), along, kernel)


def _call(lowering: Lowering, node: Apply, value: Value, along: range, kernel: Kernel) -> None:
    """Call `kernel` for the output of `node`, with what is before, in and behind the axes `along`."""
    table, output, lengths = lowering.table, node.outputs[0], value.dims
    parts = (lengths[: along.start], lengths[along.start : along.stop], lengths[along.stop :])
    extents = tuple([table.product(part) for part in parts])
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
