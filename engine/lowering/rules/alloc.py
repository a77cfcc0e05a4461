"""Lowering of new arrays: filled with one value, numbers in steps, and arrays put together from parts."""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

from engine.graph.apply import Apply
from engine.graph.variables import Variable
from engine.lowering.kernels.elementwise import arange, elementwise
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.elementwise import Loops, inlined_constant, is_inlined_constant, stored_work
from engine.lowering.rules.slicing import write_part
from engine.lowering.statements import Ref
from engine.lowering.steps import Check
from engine.lowering.table import Table
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.tensor.creation import LONGEST_RANGE, Alloc, ARange
from engine.tensor.joining import Join
from engine.tensor.shape import MakeVector


def _lower_alloc(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    source, *lengths = node.inputs
    output = node.outputs[0]
    dims = [lowering.scalar_of(length) for length in lengths]
    for dim, register in enumerate(dims):
        table.demand(register, Check("negative", str(node.op), (str(len(dims)),)))
        if not cast(Any, source.type).broadcastable[dim]:
            about = f"dim {dim} of the value is not that of the result (Runtime broadcasting not allowed)"
            found = lowering.dims_of(source)[dim]
            dims[dim] = table.same(register, found, Check("rows", str(node.op), (about,)))
    _demand_memory(lowering, dims, node)
    lowering.dims[output] = tuple(dims)
    if not lowering.is_needed(output):
        return
    values = [lowering.value_of(variable) for variable in _read(node)]
    operands = [lowering.operand(value, cast(Any, source.type).broadcastable) for value in values]
    filled: Ref = ("input", 0) if values else inlined_constant(source)
    kernel = elementwise(operands, [], [filled], len(dims))
    result = lowering.allocate(output, values, dims)
    loops = Loops(tuple(values), tuple(operands), (), (filled,), tuple(dims))
    table.call(kernel, values, [result], str(node.op), dims, work=stored_work(table, loops, [result]))


def _read(node: Apply) -> list[Variable]:
    return [] if is_inlined_constant(node.inputs[0]) else [node.inputs[0]]


def _demand_memory(lowering: Lowering, dims: list[int], node: Apply) -> None:
    """Demand that an int64 can count the bytes of an array of these lengths."""
    table = lowering.table
    left = table.constant((2**63 - 1) // ITEM_SIZES[dtype(node.outputs[0])])
    for register in dims:
        left = table.compute("FLOORDIV", left, table.compute("MAX", register, table.constant(1)))
    about = tuple(str(table.canonical(register)) for register in dims)
    table.demand(table.compute("SUB", left, table.constant(1)), Check("too-big", str(node.op), about))


def _lower_arange(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    start, stop, step = (lowering.scalar_of(variable) for variable in node.inputs)
    dims = lowering.dims[output] = (_count_steps(table, node, start, stop, step),)
    if not lowering.is_needed(output):
        return
    result = lowering.allocate(output, [], dims, (start, step))
    table.call(arange(), [], [result], str(node.op), dims, {"start": start, "step": step})


def _count_steps(table: Table, node: Apply, start: int, stop: int, step: int) -> int:
    """Return the register of the number of int64s from `start`, in steps of `step`, to before `stop`.

    Nothing computed on the way exceeds an int64, whatever the bounds are: each bound is divided, not
    their distance.
    """
    one, two = table.constant(1), table.constant(2)
    about = tuple(str(table.canonical(register)) for register in (start, stop, step))
    size = table.compute("MAX", step, table.compute("NEG", step))
    # -2**63 is its own negative.
    table.demand(
        table.compute("SUB", table.compute("MAX", size, table.constant(0)), one),
        Check("step", str(node.op), about),
    )
    first, last = (_mirrored_if_downwards(table, bound, step) for bound in (start, stop))
    before, behind = (table.compute("FLOORDIV", bound, size) for bound in (first, last))
    if table.canonical(size) != table.canonical(one):
        rests = [table.compute("MOD", bound, size) for bound in (last, first)]
        more = table.compute("MAX", table.compute("SUB", *rests), table.constant(0))
        behind = table.compute("ADD", behind, table.compute("MIN", more, one))
    behind = table.compute("MAX", behind, before)
    halves = [table.compute("FLOORDIV", register, two) for register in (behind, before)]
    half = table.compute("SUB", *halves)
    left = table.compute("SUB", table.constant(LONGEST_RANGE // 2), half)
    table.demand(left, Check("range", str(node.op), about))
    return table.compute("SUB", behind, before)


def _mirrored_if_downwards(table: Table, bound: int, step: int) -> int:
    """Return the register of `bound`, or of -1 - `bound` for negative steps: all go upwards."""
    one, zero = table.constant(1), table.constant(0)
    is_up = table.compute("MAX", table.compute("MIN", step, one), zero)
    is_down = table.compute("SUB", one, is_up)
    mirrored = table.compute("SUB", table.constant(-1), bound)
    return table.compute("ADD", table.compute("MUL", is_up, bound), table.compute("MUL", is_down, mirrored))


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


RULES: Rules = {
    Alloc: OpRule(_lower_alloc, _read, lambda node: node.inputs[1:]),
    ARange: OpRule(_lower_arange, lambda node: (), lambda node: node.inputs),
    MakeVector: OpRule(_lower_make_vector),
    Join: OpRule(_lower_join),
}
