"""Lowering of basic indexing: a part of an array is a view, with its lengths and strides in registers.

Slices mean what `slice.indices` says. The sign of a number may be unknown until the program runs: a
choice is then arithmetic with a register that holds 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from cachegraph.named_tuples import NamedTuple
from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable
from engine.lowering.kernels.elementwise import elementwise, update
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.advanced_indexing import is_zeros
from engine.lowering.statements import Ref
from engine.lowering.steps import Check, Value
from engine.lowering.table import Table
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.tensor.index_entries import FULL, parts_of
from engine.tensor.slicing import IncSubtensor, Subtensor


class _Range(NamedTuple):
    """The part taken along one axis, in registers; `length` is None for an index, which drops the axis."""

    start: int
    step: int
    length: int | None
    is_full: bool


def _ranges_taken(
    lowering: Lowering, node: Apply, dims: Sequence[int], numbers: Sequence[Variable]
) -> list[_Range]:
    table, entries = lowering.table, cast(Subtensor, node.op).entries
    registers = [lowering.scalar_of(number) for number in numbers]
    zero, one = table.constant(0), table.constant(1)
    found = []
    for axis, (entry, parts) in enumerate(zip(entries, parts_of(entries, registers), strict=True)):
        index, start, stop, step = parts
        if index is not None:
            at = _index(table, index, dims[axis], (str(node.op), axis))
            found.append(_Range(at, one, None, False))
        elif entry == FULL:
            found.append(_Range(zero, one, dims[axis], True))
        else:
            found.append(_slice(table, dims[axis], (start, stop, step), str(node.op)))
    return found + [_Range(zero, one, length, True) for length in dims[len(entries) :]]


def _index(table: Table, index: int, length: int, where: tuple[str, int]) -> int:
    """Return the register of the index counted from the start; the program stops if it is out of range."""
    op, axis = where
    check = Check("index", op, (str(axis), str(index), str(length)))
    behind = table.compute("SUB", table.compute("SUB", length, table.constant(1)), index)
    from_end = table.compute("ADD", index, length)
    table.demand(behind, check)
    known = table.number(index)
    if known is not None:
        if known >= 0:
            return index
        table.demand(from_end, check)
        return from_end
    table.demand(from_end, check)
    return table.compute("MOD", index, length)


def _slice(table: Table, length: int, parts: tuple[int | None, int | None, int | None], op: str) -> _Range:
    zero, one = table.constant(0), table.constant(1)
    start, stop, step = parts
    if step is None:
        step = one
    size = table.compute("MAX", step, table.compute("NEG", step))
    table.demand(table.compute("SUB", size, one), Check("step", op, ("the step of a slice",)))
    positive = _sign(table, step)
    negative = table.compute("SUB", one, positive)
    lower = table.compute("SUB", zero, negative)
    upper = table.compute("ADD", length, lower)
    if start is None:
        first = table.compute("MUL", negative, upper)
    else:
        first = _clamp(table, start, length, (lower, upper))
    if stop is None:
        last = table.compute(
            "ADD", table.compute("MUL", positive, upper), table.compute("MUL", negative, lower)
        )
    else:
        last = _clamp(table, stop, length, (lower, upper))
    steps = table.compute("FLOORDIV", table.compute("SUB", first, last), step)
    return _Range(first, step, table.compute("MAX", table.compute("NEG", steps), zero), False)


def _sign(table: Table, register: int) -> int:
    """Return the register of 1 if `register` holds a positive number, else of 0."""
    return table.compute("MIN", table.compute("MAX", register, table.constant(0)), table.constant(1))


def _clamp(table: Table, register: int, length: int, bounds: tuple[int, int]) -> int:
    """Return the register of a start or stop counted from the start of the axis and within `bounds`."""
    is_negative = _sign(table, table.compute("NEG", register))
    counted = table.compute("ADD", register, table.compute("MUL", is_negative, length))
    return table.compute("MIN", table.compute("MAX", counted, bounds[0]), bounds[1])


def _view(table: Table, value: Value, ranges: Sequence[_Range]) -> Value:
    """Return the part of `value` that `ranges` choose."""
    strides = value.strides or table.strides(value.dims)
    offset = table.constant(0)
    for stride, taken in zip(strides, ranges, strict=True):
        offset = table.compute("ADD", offset, table.compute("MUL", taken.start, stride))
    kept = [
        (taken, stride) for stride, taken in zip(strides, ranges, strict=True) if taken.length is not None
    ]
    dims = [cast(int, taken.length) for taken, _ in kept]
    steps = tuple(table.compute("MUL", stride, taken.step) for taken, stride in kept)
    is_contiguous = not dims or (value.strides is None and _is_one_piece(table, ranges))
    return table.view(value, offset, dims, None if is_contiguous else steps)


def _is_one_piece(table: Table, ranges: Sequence[_Range]) -> bool:
    """Return True if the part is contiguous: indices, at most one slice of step 1, whole axes."""
    rest = [*ranges]
    while rest and rest[0].length is None:
        rest.pop(0)
    return table.number(rest[0].step) == 1 and all(taken.is_full for taken in rest[1:])


def _lower_subtensor(lowering: Lowering, node: Apply) -> None:
    source, *numbers = node.inputs
    output = node.outputs[0]
    ranges = _ranges_taken(lowering, node, lowering.dims_of(source), numbers)
    lowering.dims[output] = tuple(taken.length for taken in ranges if taken.length is not None)
    if lowering.is_needed(output):
        lowering.values[output] = _view(lowering.table, lowering.value_of(source), ranges)


def _lower_inc_subtensor(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    base, part, *numbers = node.inputs
    output = node.outputs[0]
    dims = lowering.dims[output] = lowering.dims_of(base)
    ranges = _ranges_taken(lowering, node, dims, numbers)
    broadcast = cast(Any, part.type).broadcastable
    lengths = [taken.length for taken in ranges if taken.length is not None]
    for dim, (due, found) in enumerate(zip(lengths, lowering.dims_of(part), strict=True)):
        if not broadcast[dim]:
            about = f"dim {dim} of what is given does not fit what is indexed"
            table.same(due, found, Check("rows", str(node.op), (about,)))
    if not lowering.is_needed(output):
        return
    given = lowering.value_of(part)
    target = _view(table, _array_with_base(lowering, node, given, ranges), ranges)
    adds = not cast(IncSubtensor, node.op).set_instead_of_inc
    write_part(lowering, given, broadcast, target, adds, str(node.op))


def _array_with_base(lowering: Lowering, node: Apply, given: Value, ranges: Sequence[_Range]) -> Value:
    """Return the array of the result of `node`, which holds the elements of its base."""
    base, output = node.inputs[0], node.outputs[0]
    dims = lowering.dims[output]
    needed = [
        register for taken in ranges for register in (taken.start, taken.step, taken.length or taken.start)
    ]
    if is_zeros(base):
        result = lowering.allocate(output, [given], dims, needed)
        fill_zeros(lowering, result)
        return result
    overwritten = lowering.overwrite(node, base, [given], needed)
    if overwritten is not None:
        return overwritten
    before = lowering.value_of(base)
    result = lowering.allocate(output, [given, before], dims, needed)
    lowering.copy(before, result)
    return result


def fill_zeros(lowering: Lowering, result: Value) -> None:
    """Set every element of `result` to 0."""
    zero: Ref = ("constant", result.dtype, bytes(ITEM_SIZES[result.dtype]))
    kernel = elementwise([], [], [zero], len(result.dims))
    lowering.table.call(kernel, [], [result], "zeros", result.dims)


def write_part(
    lowering: Lowering, given: Value, broadcast: tuple[bool, ...], target: Value, adds: bool, op: str
) -> None:
    """Set `target`, a view of a buffer, to `given`, which `broadcast` describes, or add it."""
    table = lowering.table
    kernel = update(lowering.operand(given, broadcast), adds)
    strides = table.strides(target.dims) if target.strides is None else target.strides
    part = Value(target.pointer, target.dtype, target.dims, target.stage, strides, target.buffer)
    table.call(kernel, [given], [part], op, target.dims)


def _read(node: Apply) -> list[Variable]:
    base, part = node.inputs[:2]
    return [part] if is_zeros(base) else [base, part]


def _skipped(node: Apply) -> int | None:
    """Return how many first rows `node` leaves out, if it takes all the others."""
    if cast(Subtensor, node.op).entries != ("a:",) or not isinstance(node.inputs[1], Constant):
        return None
    start = int(node.inputs[1].data)
    return start if start > 0 else None


RULES: Rules = {
    Subtensor: OpRule(
        _lower_subtensor, lambda node: node.inputs[:1], lambda node: node.inputs[1:], skipped=_skipped
    ),
    IncSubtensor: OpRule(_lower_inc_subtensor, _read, lambda node: node.inputs[2:]),
}
