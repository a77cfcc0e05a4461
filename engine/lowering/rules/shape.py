"""Lowering of Ops that only rearrange: they become views, in registers, and copy only if they must."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, cast

from engine.graph.apply import Apply
from engine.graph.variables import Constant
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.steps import Check, Value
from engine.lowering.table import Table
from engine.tensor.copying import CpuContiguous
from engine.tensor.elemwise import DimShuffle
from engine.tensor.held_arrays import HeldArray, HeldValue
from engine.tensor.shape import Reshape, Shape_i
from engine.tensor.signs import is_non_negative
from engine.tensor.single_numbers import ScalarFromTensor, TensorFromScalar


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
    lowering.values[output] = permuted_view(lowering, value, op.new_order, lowering.dims[output])


def _lower_contiguous(lowering: Lowering, node: Apply) -> None:
    (x,), (output,) = node.inputs, node.outputs
    lowering.dims[output] = lowering.dims_of(x)
    if lowering.is_needed(output):
        lowering.values[output] = lowering.contiguous(lowering.value_of(x))


def permuted_view(lowering: Lowering, value: Value, order: tuple[Any, ...], dims: tuple[int, ...]) -> Value:
    """Return `value` with its dims in another order: strided, unless the dims longer than 1 keep theirs."""
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
    given = [lowering.scalar_of(length) for length in lengths]
    shapes = (lowering.dims_of(source), given)
    check = Check("reshape", str(node.op), tuple(",".join(map(str, shape)) for shape in shapes))
    may_be_free = [not is_non_negative(length) for length in lengths]
    is_free = [_is_minus_one(length) for length in lengths]
    if is_free == may_be_free:
        dims = _lengths_with_known_free(table, given, is_free, size, check)
    else:
        dims = _lengths_with_unknown_free(table, given, may_be_free, size, check)
    lowering.dims[output] = tuple(dims)
    if not lowering.is_needed(output):
        return
    value = lowering.value_of(source)
    if value.strides is not None:
        result = lowering.allocate(output, [value], dims, value.dims)
        target = Value(result.pointer, result.dtype, value.dims, result.stage, None, result.buffer)
        lowering.copy(value, target)
        return
    stage = max(value.stage, table.stage(dims))
    lowering.values[output] = Value(value.pointer, dtype(output), tuple(dims), stage, None, value.buffer)


def _lengths_with_known_free(
    table: Table, given: list[int], is_free: list[bool], size: int, check: Check
) -> list[int]:
    """Return the lengths `given`, of which the free one, if there is one, is the rest of `size`."""
    known = [register for register, free in zip(given, is_free, strict=True) if not free]
    for register in known:
        table.demand(register, Check("negative", check.op, ()))
    product = table.product(known)
    if not any(is_free):
        table.same(size, product, check)
        return given
    _check_divides(table, product, size, check)
    left = table.compute("FLOORDIV", size, product)
    return [left if free else register for register, free in zip(given, is_free, strict=True)]


def _lengths_with_unknown_free(
    table: Table, given: list[int], may_be_free: list[bool], size: int, check: Check
) -> list[int]:
    """Return the lengths `given`, of which one may be -1 at run time: it becomes the rest of `size`."""
    zero, one = table.constant(0), table.constant(1)
    frees, known = [], []
    for register, may_be in zip(given, may_be_free, strict=True):
        negative = table.compute("MIN", register, zero)
        least = table.compute("ADD", negative, one) if may_be else negative
        table.demand(least, Check("length", check.op, (str(register),)))
        frees.append(table.compute("SUB", zero, negative))
        known.append(table.compute("MAX", register, frees[-1]))
    product, free = table.product(known), reduce(partial(table.compute, "ADD"), frees)
    # At most one is free, and then no other is 0.
    for bound in (one, product):
        table.demand(table.compute("SUB", bound, free), check)
    left = table.compute("FLOORDIV", size, product)
    dims = [table.compute("MAX", r, table.compute("MUL", f, left)) for r, f in zip(given, frees, strict=True)]
    table.same(size, table.product(dims), check)
    return dims


def _check_divides(table: Table, divisor: int, size: int, check: Check) -> None:
    """Demand that the known lengths, whose product is `divisor`, leave one answer for the free one."""
    one = table.constant(1)
    if table.canonical(divisor) != one:
        table.same(table.compute("MIN", divisor, one), one, check)
        table.emit("DIVIDES", (divisor, size), table.stage((divisor, size)), check)


def _is_minus_one(variable: Any) -> bool:
    return isinstance(variable, Constant) and int(variable.data) == -1


def _lower_same(lowering: Lowering, node: Apply) -> None:
    """Take the array of the input for that of the output: memory holds numbers and tensors alike."""
    source, output = node.inputs[0], node.outputs[0]
    lowering.dims[output] = lowering.dims_of(source)
    if lowering.is_needed(output):
        lowering.values[output] = lowering.value_of(source)


RULES: Rules = {
    HeldArray: OpRule(_lower_same),
    HeldValue: OpRule(_lower_same),
    ScalarFromTensor: OpRule(_lower_same),
    TensorFromScalar: OpRule(_lower_same),
    Shape_i: OpRule(_lower_shape_i, lambda node: ()),
    DimShuffle: OpRule(_lower_dimshuffle),
    CpuContiguous: OpRule(_lower_contiguous),
    Reshape: OpRule(_lower_reshape, lambda node: node.inputs[:1], lambda node: node.inputs[1:]),
}
