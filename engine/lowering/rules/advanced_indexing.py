"""Lowering of indexing by vectors of integers and by masks, and of setting and adding to what is indexed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.flat import Addition, flat
from engine.lowering.kernels.gather import Base, check, gather, positions, scatter_add, scatter_set, wrap
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.elementwise import Loops, elementwise_body, has_loops, stored_work
from engine.lowering.statements import Ref, Statement
from engine.lowering.steps import Check, FlatAddition, FlatOperand, FlatWork, Value
from engine.lowering.table import Table
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.runtime.registers import ADDRESS_OF_DETAILS
from engine.tensor.gathering import SpreadIndex, WrapIndex
from engine.tensor.masks import FlatNonzero
from engine.tensor.reduction import Sum
from engine.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor
from engine.tensor.type import is_data

MANY = 32
"""Elements from which on a gather or a scatter is worth a check of the index before, and a joined loop."""


def _lower_gather(lowering: Lowering, node: Apply) -> None:
    source, index = node.inputs
    output = node.outputs[0]
    rows, *rest = lowering.dims_of(source)
    count = lowering.dims_of(index)[0]
    lowering.dims[output] = (count, *rest)
    if not lowering.is_needed(output):
        return
    reads = [lowering.contiguous(lowering.value_of(variable)) for variable in (source, index)]
    if not rest and _may_run_in_loops(lowering, output):
        _lower_take(lowering, node, reads, rows)
        return
    kernel = gather(dtype(source), dtype(index), not rest)
    result = lowering.allocate(output, reads, lowering.dims[output], (rows,))
    _call_with_index(lowering, kernel, reads, result, (count, rows, rest), node)


def _may_run_in_loops(lowering: Lowering, output: Variable) -> bool:
    """Return True if a gather of many elements is read only by loops that it may become a part of."""
    if output in lowering.outputs or not _is_many(lowering, lowering.dims[output][0]):
        return False
    readers = lowering.analysis.readers.get(output, ())
    return all(has_loops(reader) or isinstance(reader.op, Sum) for reader in readers)


def _is_many(lowering: Lowering, count: int) -> bool:
    """Return True if an index of `count` integers (a register) is to be checked before it is used."""
    number = lowering.table.number(count)
    return not lowering.table.floor and (number is None or number >= MANY)


def _lower_take(lowering: Lowering, node: Apply, reads: list[Value], rows: int) -> None:
    """Lower a gather from a vector to a check of the index, and a loop that cannot fail."""
    table, output, (source, index) = lowering.table, node.outputs[0], reads
    operands = (
        NestOperand(source.dtype, (True,), is_indexed=True),
        NestOperand(index.dtype, (False,)),
        NestOperand("int64", (True,)),
    )
    statements = (
        Statement("cast", (("input", 1),), "int64"),
        Statement("take", (("input", 0), ("value", 0), ("input", 2)), source.dtype),
    )
    values = source, index, _checked(lowering, node, node.inputs[1], index, rows)
    loops = Loops(values, operands, statements, (("value", 1),), lowering.dims[output])
    result = lowering.allocate(output, values, loops.dims, (rows,))
    kernel = elementwise(operands, statements, loops.outputs, 1)
    work = stored_work(table, loops, [result])
    table.call(kernel, values, [result], str(node.op), loops.dims, work=work)


def _checked(lowering: Lowering, node: Apply, variable: Variable, index: Value, rows: int) -> Value:
    """Return an array with what to add to negative integers, written when `index` is found in range.

    `index` has the elements of `variable`.
    """
    table, key = lowering.table, (variable, lowering.table.canonical(rows))
    found = lowering.checked.get(key)
    if found is None:
        found = table.buffer("int64", (), max(index.stage, table.stage((rows, *index.dims))))
        named = {"count": index.dims[0], "size": rows, "details": ADDRESS_OF_DETAILS}
        table.call(check(index.dtype), [index], [found], str(node.op), named=named)
        lowering.checked[key] = found
    return found


def _lower_scatter(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    base, values, index = node.inputs
    output = node.outputs[0]
    rows, *rest = lowering.dims_of(base)
    count = lowering.dims_of(index)[0]
    lowering.dims[output] = lowering.dims_of(base)
    for dim, (due, found) in enumerate(zip((count, *rest), lowering.dims_of(values), strict=True)):
        table.same(
            due,
            found,
            Check("rows", str(node.op), (f"dim {dim} of what is added does not fit what is indexed",)),
        )
    if not lowering.is_needed(output):
        return
    reads = [lowering.contiguous(lowering.value_of(index)), lowering.contiguous(lowering.value_of(values))]
    if not rest and _may_add_in_loops(lowering, node, count):
        _lower_addition(lowering, node, reads, rows)
        return
    kind, result = _array_with_base(lowering, node, reads, count)
    scatter = scatter_set if cast(AdvancedIncSubtensor, node.op).set_instead_of_inc else scatter_add
    kernel = scatter(dtype(base), dtype(index), not rest, kind)
    _call_with_index(lowering, kernel, reads, result, (count, rows, rest), node)


def _may_add_in_loops(lowering: Lowering, node: Apply, count: int) -> bool:
    """Return True if many computed values are added to a vector: by the loop that computes them."""
    base, values, _ = node.inputs
    if cast(AdvancedIncSubtensor, node.op).set_instead_of_inc or dtype(values) != dtype(base):
        return False
    return _is_many(lowering, count) and values.owner is not None and has_loops(values.owner)


def _lower_addition(lowering: Lowering, node: Apply, reads: list[Value], rows: int) -> None:
    """Lower a scatter to a vector to a check of the index, its base, and a loop that cannot fail."""
    table, (index, values) = lowering.table, reads
    operands = (
        NestOperand(values.dtype, (False,)),
        NestOperand(index.dtype, (False,)),
        NestOperand("int64", (True,)),
    )
    reads = [values, index, _checked(lowering, node, node.inputs[2], index, rows)]
    result = _base_to_add_to(lowering, node, reads)
    kernel = flat(operands, [], [], [], [Addition(("input", 0), 1, 2, values.dtype)])
    flat_operands = [
        FlatOperand(value.pointer, value.dtype, operand.broadcast[0], None, value.buffer)
        for value, operand in zip(reads, operands, strict=True)
    ]
    assert result.buffer is not None
    addition = FlatAddition(("input", 0), 1, 2, result.pointer, result.dtype, result.buffer)
    work = FlatWork(index.dims[0], tuple(flat_operands), (), additions=(addition,))
    table.call(kernel, reads, [result], str(node.op), index.dims, work=work)


def _base_to_add_to(lowering: Lowering, node: Apply, reads: list[Value]) -> Value:
    """Return the array of the result, with the base in it."""
    copied: list[Value] = list(reads)
    kind, result = _array_with_base(lowering, node, copied, reads[1].dims[0])
    if kind == "zeros":
        zero: Ref = ("constant", result.dtype, bytes(ITEM_SIZES[result.dtype]))
        kernel = elementwise([], [], [zero], 1)
        work = stored_work(lowering.table, Loops((), (), (), (zero,), result.dims), [result])
        lowering.table.call(kernel, [], [result], str(node.op), result.dims, work=work)
    elif kind == "copied":
        lowering.copy(copied[-1], result)
    return result


def _array_with_base(lowering: Lowering, node: Apply, reads: list[Value], count: int) -> tuple[Base, Value]:
    """Return the initial state of the result, and the result; `reads` gets a base to copy."""
    base, output = node.inputs[0], node.outputs[0]
    if is_zeros(base):
        return "zeros", lowering.allocate(output, reads, lowering.dims[output], (count,))
    if lowering.value_of(base).strides is None:
        result = lowering.overwrite(node, base, reads, (count,))
        if result is not None:
            return "overwritten", result
    reads.append(lowering.contiguous(lowering.value_of(base)))
    return "copied", lowering.allocate(output, reads, lowering.dims[output], (count,))


def _lower_wrap(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    index, length = node.inputs
    output, op = node.outputs[0], cast(WrapIndex, node.op)
    dims = lowering.dims[output] = lowering.dims_of(index)
    size = lowering.scalar_of(length)
    if not lowering.is_needed(output):
        return
    value = lowering.contiguous(lowering.value_of(index))
    count = table.product(dims)
    result = lowering.allocate(output, [value], dims, (count, size))
    named = {"count": count, "size": size, "details": ADDRESS_OF_DETAILS}
    table.call(wrap(dtype(index)), [value], [result], str(op), named=named, about=(str(op.axis),))


def _lower_spread(lowering: Lowering, node: Apply) -> None:
    """Lower to a view: the stride of an axis is multiplied by 0 where its length is 1, else by 1."""
    table, (index, *lengths) = lowering.table, node.inputs
    output, one = node.outputs[0], table.constant(1)
    dims, kept = [], []
    for found, length in zip(lowering.dims_of(index), lengths, strict=True):
        due = table.canonical(lowering.scalar_of(length))
        keeps = one if table.are_same(found, due) else _is_no_one(table, found)
        behind = table.compute("MUL", keeps, table.compute("SUB", due, one))
        table.same(found, table.compute("ADD", one, behind), Check("spread", str(node.op), (str(due),)))
        dims.append(due)
        kept.append(keeps)
    lowering.dims[output] = tuple(dims)
    if not lowering.is_needed(output):
        return
    value = lowering.value_of(index)
    if all(table.number(keeps) == 1 for keeps in kept):
        strides = value.strides
    else:
        given = value.strides or table.strides(value.dims)
        strides = tuple([table.compute("MUL", *pair) for pair in zip(given, kept, strict=True)])
    lowering.values[output] = table.view(value, table.constant(0), dims, strides)


def _is_no_one(table: Table, length: int) -> int:
    """Return the register of 0 if `length` is 1, else of 1."""
    rest = table.compute("SUB", length, table.constant(1))
    return table.compute("MIN", table.compute("MUL", rest, rest), table.constant(1))


def _call_with_index(
    lowering: Lowering,
    kernel: Kernel,
    reads: Sequence[Value],
    result: Value,
    lengths: tuple[int, int, Sequence[int]],
    node: Apply,
) -> None:
    count, rows, rest = lengths
    named = {"count": count, "size": rows, "row": lowering.table.product(rest), "details": ADDRESS_OF_DETAILS}
    lowering.table.call(kernel, reads, [result], str(node.op), named=named)


def is_zeros(variable: Variable) -> bool:
    """Return True if every element is known to be 0 (and not -0.0), so that nothing has to be copied."""
    if isinstance(variable, Constant):
        return not is_data(variable) and not any(variable.data.tobytes())
    node = variable.owner
    if node is None or not has_loops(node):
        return False
    body = elementwise_body(node)
    computed = body.outputs[variable.index or 0]
    if computed[0] == "input":
        operand = node.inputs[computed[1]]
        return isinstance(operand, Constant) and operand.data.size == 1 and is_zeros(operand)
    return computed[0] == "constant" and not any(computed[2])


def _read(node: Apply) -> list[Variable]:
    base, values, index = node.inputs
    return [values, index] if is_zeros(base) else [base, values, index]


def _lower_flat_nonzero(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    mask, *lengths = node.inputs
    for axis, (found, length) in enumerate(zip(lowering.dims_of(mask), lengths, strict=True)):
        table.same(found, lowering.scalar_of(length), Check("mask", str(node.op), (str(axis),)))
    value = lowering.contiguous(lowering.value_of(mask))
    size = table.product(value.dims)
    dims = lowering.dims[output] = (table.load(_count_true(lowering, value, size), False),)
    if not lowering.is_needed(output):
        return
    result = lowering.allocate(output, [value], dims, (size,))
    table.call(positions(), [value], [result], str(node.op), (size,), {"count": dims[0]})


def _count_true(lowering: Lowering, mask: Value, size: int) -> Value:
    """Return the array with the number of true elements of `mask`."""
    table = lowering.table
    result = table.buffer("int64", (), max(mask.stage, table.stage((size,))))
    as_number = Statement("cast", (("input", 0),), "int64")
    kernel = reduction(
        "sum", [NestOperand("bool", (False,))], [as_number], ("value", 0), 1, (0,), "int64", "int64"
    )
    table.call(kernel, [mask], [result], "count", (size,))
    return result


RULES: Rules = {
    AdvancedSubtensor: OpRule(_lower_gather),
    AdvancedIncSubtensor: OpRule(_lower_scatter, _read),
    SpreadIndex: OpRule(_lower_spread, lambda node: node.inputs[:1], lambda node: node.inputs[1:]),
    WrapIndex: OpRule(_lower_wrap, lambda node: node.inputs[:1], lambda node: node.inputs[1:]),
    FlatNonzero: OpRule(_lower_flat_nonzero, lambda node: node.inputs[:1], lambda node: node.inputs),
}
