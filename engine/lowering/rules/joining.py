"""Lowering of what is put together from parts: each part is written to its place in the result."""

from __future__ import annotations

from functools import reduce
from typing import cast

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule
from engine.lowering.rules.slicing import write_part
from engine.lowering.steps import Check
from engine.tensor.joining import Join
from engine.tensor.shape import MakeVector


def _lower_make_vector(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    dims = lowering.dims[output] = (table.constant(len(node.inputs)),)
    if not lowering.is_needed(output):
        return
    values = [lowering.value_of(variable) for variable in node.inputs]
    result = lowering.allocate(output, values, dims)
    for position, value in enumerate(values):
        lowering.copy(value, table.view(result, table.constant(position), (), None))


def _lower_join(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    axis = cast(Join, node.op).axis
    shapes = [lowering.dims_of(variable) for variable in node.inputs]
    dims = list(shapes[0])
    for shape in shapes[1:]:
        for dim in range(len(dims)):
            if dim != axis:
                about = f"dim {dim} of what is joined must have one length"
                dims[dim] = table.same(dims[dim], shape[dim], Check("rows", str(node.op), (about,)))
    dims[axis] = reduce(
        lambda total, shape: table.compute("ADDSAT", total, shape[axis]), shapes[1:], dims[axis]
    )
    lowering.dims[output] = tuple(dims)
    if not lowering.is_needed(output):
        return
    values = [lowering.value_of(variable) for variable in node.inputs]
    result = lowering.allocate(output, values, dims)
    strides = table.strides(dims)
    start = table.constant(0)
    for shape, value in zip(shapes, values, strict=True):
        offset = table.compute("MUL", start, strides[axis])
        start = table.compute("ADDSAT", start, shape[axis])
        part = table.view(
            result, offset, (*dims[:axis], shape[axis], *dims[axis + 1 :]), None if axis == 0 else strides
        )
        if axis == 0:
            lowering.copy(value, part)
        else:
            write_part(lowering, value, (False,) * len(dims), part, False, str(node.op))


RULES: dict[type[Op], OpRule] = {MakeVector: OpRule(_lower_make_vector), Join: OpRule(_lower_join)}
