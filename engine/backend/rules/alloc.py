"""Lowering of tensors of a given shape: filled with a value, or with numbers in steps."""

from __future__ import annotations

from typing import Any, cast

from engine.backend.kernels.arange import arange
from engine.backend.kernels.elementwise import copy, elementwise
from engine.backend.lower import Lowering, OpRule, dtype, kernel_arguments
from engine.backend.rules.elementwise import baked, is_baked
from engine.backend.steps import Check
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.tensor.alloc import Alloc, ARange


def _lower_alloc(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    source, *lengths = node.inputs
    output = node.outputs[0]
    dims = [lowering.scalar_of(length) for length in lengths]
    for dim, register in enumerate(dims):
        table.demand(register, Check("negative", str(node.op), (str(len(dims)),)))
        if not cast(Any, source.type).broadcastable[dim]:
            about = f"dim {dim} of the value is not that of the result"
            found = lowering.dims_of(source)[dim]
            dims[dim] = table.same(register, found, Check("rows", str(node.op), (about,)))
    lowering.dims[output] = tuple(dims)
    if not lowering.is_needed(output):
        return
    values = [lowering.value_of(variable) for variable in _read(node)]
    if values:
        kernel = copy(dtype(source), cast(Any, source.type).broadcastable, values[0].strides is not None)
    else:
        kernel = elementwise([], [], [baked(source)], len(dims))
    result = lowering.allocate(output, values, dims)
    arguments = kernel_arguments(table, kernel.arguments, values, [result], dims)
    table.call(kernel, arguments, values, [result], str(node.op))


def _read(node: Apply) -> list[Variable]:
    return [] if is_baked(node.inputs[0]) else [node.inputs[0]]


def _lower_arange(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    start, stop, step = (lowering.scalar_of(variable) for variable in node.inputs)
    size = table.compute("MAX", step, table.compute("NEG", step))
    apart = table.compute("SUB", size, table.constant(1))
    table.demand(apart, Check("step", str(node.op), ("the step of a range",)))
    steps = table.compute("FLOORDIV", table.compute("SUB", start, stop), step)
    dims = lowering.dims[output] = (table.compute("MAX", table.compute("NEG", steps), table.constant(0)),)
    if not lowering.is_needed(output):
        return
    kernel = arange()
    result = lowering.allocate(output, [], dims, (start, step))
    named = {"start": start, "step": step}
    arguments = kernel_arguments(table, kernel.arguments, [], [result], dims, named)
    table.call(kernel, arguments, [], [result], str(node.op))


RULES: dict[type[Op], OpRule] = {
    Alloc: OpRule(_lower_alloc, _read, lambda node: node.inputs[1:]),
    ARange: OpRule(_lower_arange, lambda node: (), lambda node: node.inputs),
}
