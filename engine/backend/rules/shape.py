"""Lowering of Ops that only rearrange: views are registers, and nothing is copied unless it must be."""

from __future__ import annotations

from typing import Any, cast

from engine.backend.lower import Lowering, OpRule, dtype
from engine.backend.steps import Check, Value
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant
from engine.tensor.elemwise import DimShuffle
from engine.tensor.shape import Reshape, Shape_i


def _lower_shape_i(lowering: Lowering, node: Apply) -> None:
    output = node.outputs[0]
    lowering.dims[output] = ()
    lowering.scalars[output] = lowering.dims_of(node.inputs[0])[cast(Shape_i, node.op).i]


def _lower_dimshuffle(lowering: Lowering, node: Apply) -> None:
    table, op = lowering.table, cast(DimShuffle, node.op)
    source, output = node.inputs[0], node.outputs[0]
    dims = lowering.dims_of(source)
    one = table.constant(1)
    kept = [dim for dim in op.new_order if not isinstance(dim, str)]
    for dim in range(len(dims)):
        if dim not in kept:
            table.same(dims[dim], one, Check("dropped-dim", str(op), (str(dim),)))
    lowering.dims[output] = tuple(one if isinstance(dim, str) else dims[dim] for dim in op.new_order)
    if not lowering.is_needed(output):
        return
    value = lowering.value_of(source)
    lowering.values[output] = _rearranged(lowering, value, op.new_order, lowering.dims[output])


def _rearranged(lowering: Lowering, value: Value, order: tuple[Any, ...], dims: tuple[int, ...]) -> Value:
    """`value` with its dims in another order: strided, unless the dims longer than 1 keep theirs."""
    table = lowering.table
    one = table.constant(1)
    moved = [dim for dim in order if dim != "x" and table.canonical(value.dims[dim]) != one]
    if value.strides is None and moved == sorted(moved):
        return Value(value.pointer, value.dtype, dims, value.stage, None, value.buffer)
    strides = value.strides or table.strides(value.dims)
    chosen = tuple(table.constant(0) if dim == "x" else strides[dim] for dim in order)
    stage = max(value.stage, table.stage(chosen))
    return Value(value.pointer, value.dtype, dims, stage, chosen, value.buffer)


def _lower_reshape(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    source, *lengths = node.inputs
    output = node.outputs[0]
    size = table.product(lowering.dims_of(source))
    free = [position for position, length in enumerate(lengths) if _is_minus_one(length)]
    dims = [table.constant(-1) if p in free else lowering.scalar_of(v) for p, v in enumerate(lengths)]
    known = [register for position, register in enumerate(dims) if position not in free]
    for register in known:
        table.demand(register, Check("negative", str(node.op), ()))
    product = table.product(known)
    shapes = (lowering.dims_of(source), dims)
    check = Check("reshape", str(node.op), tuple(",".join(map(str, shape)) for shape in shapes))
    if free:
        _check_divides(lowering, product, size, check)
        dims[free[0]] = table.compute("FLOORDIV", size, product)
    else:
        table.same(size, product, check)
    lowering.dims[output] = tuple(dims)
    if not lowering.is_needed(output):
        return
    value = lowering.contiguous(lowering.value_of(source))
    stage = max(value.stage, table.stage(dims))
    lowering.values[output] = Value(value.pointer, dtype(output), tuple(dims), stage, None, value.buffer)


def _check_divides(lowering: Lowering, divisor: int, size: int, check: Check) -> None:
    """Demand that the known lengths, which multiply to `divisor`, leave one answer for the free one."""
    table = lowering.table
    one = table.constant(1)
    if table.canonical(divisor) != one:
        table.same(table.compute("MIN", divisor, one), one, check)
        table.emit("DIVIDES", (divisor, size), table.stage((divisor, size)), check)


def _is_minus_one(variable: Any) -> bool:
    return isinstance(variable, Constant) and int(variable.data) == -1


RULES: dict[type[Op], OpRule] = {
    Shape_i: OpRule(_lower_shape_i, lambda node: ()),
    DimShuffle: OpRule(_lower_dimshuffle),
    Reshape: OpRule(_lower_reshape, lambda node: node.inputs[:1], lambda node: node.inputs[1:]),
}
