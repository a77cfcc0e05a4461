"""Lowering of elementwise Ops: one kernel over a loop nest, or registers for arithmetic on int64 scalars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from engine.graph.apply import Apply
from engine.graph.user_ops import needs_python
from engine.graph.variables import Constant, Variable
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand, collapse
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.statements import (
    Ref,
    ScalarBody,
    ScalarRepeat,
    Statement,
    constant_ref,
    scalar_statements,
)
from engine.lowering.steps import Check, FlatOperand, FlatStore, FlatWork, Value
from engine.lowering.table import Table
from engine.scalar import ScalarOp, embedded
from engine.tensor.elemwise import Elemwise
from engine.tensor.type import is_data

_IN_REGISTERS = {"add": "ADD", "sub": "SUB", "mul": "MUL", "maximum": "MAX", "minimum": "MIN"}


class Loops(Struct, frozen=True):
    """An elementwise computation ready for a nest of lengths `dims`: operands, statements and outputs."""

    values: tuple[Value, ...]
    operands: tuple[NestOperand, ...]
    statements: tuple[Statement | ScalarRepeat, ...]
    outputs: tuple[Ref, ...]
    dims: tuple[int, ...]


def has_loops(node: Apply) -> bool:
    """Return True if `node` is elementwise and a kernel computes it, not Python."""
    return isinstance(node.op, Elemwise) and embedded.has_loops(node)


def elementwise_dims(lowering: Lowering, node: Apply) -> tuple[int, ...]:
    """Return the lengths of the output of `node`; those that are not statically 1 must be equal."""
    table = lowering.table
    rank = node.outputs[0].type.ndim
    dims = []
    for dim in range(rank):
        length: int | None = None
        for position, variable in enumerate(node.inputs):
            if variable.type.shape[dim] == 1:
                continue
            found = lowering.dims_of(variable)[dim]
            if length is None:
                length = found
            elif table.are_same(length, found):
                length = table.canonical(length)
            else:
                check = Check("broadcast", str(node.op), (str(position), str(dim)))
                length = table.same(length, found, check)
        dims.append(table.constant(1) if length is None else length)
    return tuple(dims)


def read_inputs(node: Apply) -> list[Variable]:
    """Return the inputs that an elementwise node reads; constants of one element are part of the kernel."""
    return _read(node, elementwise_body(node))


def _read(node: Apply, body: ScalarBody) -> list[Variable]:
    used = body.read
    return [v for position, v in enumerate(node.inputs) if position in used and not is_inlined_constant(v)]


def loops_of(lowering: Lowering, node: Apply) -> Loops:
    """Return the loops that compute `node`, over only the operands that they read."""
    body = elementwise_body(node)
    read = list(dict.fromkeys(_read(node, body)))
    values = tuple([lowering.value_of(v) for v in read])
    if len(read) < len(node.inputs):
        body = _of_read_inputs(node, body, read)
    return Loops(
        values,
        tuple([lowering.operand(value, v.type.broadcastable) for v, value in zip(read, values, strict=True)]),
        body.statements,
        body.outputs,
        lowering.dims[node.outputs[0]],
    )


def _of_read_inputs(node: Apply, body: ScalarBody, read: list[Variable]) -> ScalarBody:
    """Return `body` for the inputs `read` alone; constants of one element are in its statements."""
    places = {position: read.index(v) for position, v in enumerate(node.inputs) if v in read}
    numbers = {
        position: inlined_constant(v) for position, v in enumerate(node.inputs) if is_inlined_constant(v)
    }

    def ref(argument: Any) -> Ref:
        if argument[0] != "input":
            return cast(Ref, argument)
        return numbers.get(argument[1]) or ("input", places[argument[1]])

    statements = tuple([replace(s, arguments=tuple(map(ref, s.arguments))) for s in body.statements])
    return ScalarBody(statements, tuple(map(ref, body.outputs)), frozenset(range(len(read))))


def elementwise_body(node: Apply) -> ScalarBody:
    """Return the statements of an elementwise node."""
    scalar_op = node.op if isinstance(node.op, ScalarOp) else cast(Elemwise, node.op).scalar_op
    # A user function may read something else the next time.
    find = scalar_statements if needs_python(scalar_op) else _statements
    return find(scalar_op, tuple([v.type.dtype for v in node.inputs]))


@lru_cache(maxsize=1024)
def _statements(scalar_op: ScalarOp, dtypes: tuple[str, ...]) -> ScalarBody:
    return scalar_statements(scalar_op, dtypes)


def is_inlined_constant(variable: Variable) -> bool:
    """Return True if `variable` is a constant of one element, which becomes a part of kernels."""
    return isinstance(variable, Constant) and not is_data(variable) and variable.data.size == 1


def inlined_constant(variable: Variable) -> Ref:
    """Return the reference to the number that `variable` is."""
    return constant_ref(cast(Constant, variable).data)


def _lower_elementwise(lowering: Lowering, node: Apply) -> None:
    dims = elementwise_dims(lowering, node)
    lowering.dims.update(dict.fromkeys(node.outputs, dims))
    if not dims and _lower_in_registers(lowering, node):
        return
    if not any(map(lowering.is_needed, node.outputs)):
        return
    if len(node.outputs) == 1 and node.outputs[0] in lowering.analysis.fused:
        return
    loops = loops_of(lowering, node)
    kernel = elementwise(loops.operands, loops.statements, loops.outputs, len(dims))
    outputs = [lowering.allocate(variable, loops.values, dims) for variable in node.outputs]
    work = stored_work(lowering.table, loops, outputs)
    lowering.table.call(kernel, loops.values, outputs, str(node.op), dims, work=work)


def stored_work(table: Table, loops: Loops, outputs: Sequence[Value]) -> FlatWork | None:
    """Return the work of `loops` that store `outputs` if it is one loop that cannot fail, else None."""
    stores = [
        FlatStore(ref, value.pointer, value.dtype, value.buffer)
        for ref, value in zip(loops.outputs, outputs, strict=True)
        if value.buffer is not None and value.strides is None
    ]
    work = flat_work(table, loops)
    return replace(work, stores=tuple(stores)) if work and len(stores) == len(outputs) else None


def flat_work(table: Table, loops: Loops) -> FlatWork | None:
    """Return `loops` as work in one loop that cannot fail, without results; None if it is not that."""
    if not loops.dims or any(statement.may_fail for statement in loops.statements):
        return None
    if len(loops.dims) > 1 and len(collapse(loops.operands, len(loops.dims))) > 1:
        return None
    operands = []
    for value, operand in zip(loops.values, loops.operands, strict=True):
        is_repeated = operand.broadcast[0]
        stride = value.stride_in(0, 1) if operand.strided and not is_repeated else None
        pointer, buffer = value.pointer, value.buffer
        operands.append(FlatOperand(pointer, value.dtype, is_repeated, stride, buffer, operand.is_indexed))
    return FlatWork(table.product(loops.dims), tuple(operands), loops.statements)


def _lower_in_registers(lowering: Lowering, node: Apply) -> bool:
    """Lower arithmetic on int64 scalars to registers; return False if `node` is not that."""
    known = [v in lowering.scalars or is_inlined_constant(v) for v in node.inputs]
    if not all(known) or any(dtype(v) != "int64" for v in (*node.inputs, *node.outputs)):
        return False
    body = elementwise_body(node)
    if any(s.op not in _IN_REGISTERS or getattr(s, "dtype", "") != "int64" for s in body.statements):
        return False
    results: list[int] = []

    def register(argument: Any) -> int:
        if argument[0] == "constant":
            return lowering.table.constant(int.from_bytes(argument[2], "little", signed=True))
        return (
            results[argument[1]] if argument[0] == "value" else lowering.scalar_of(node.inputs[argument[1]])
        )

    for statement in body.statements:
        operands = map(register, statement.arguments)
        results.append(lowering.table.compute(_IN_REGISTERS[cast(str, statement.op)], *operands))
    for variable, argument in zip(node.outputs, body.outputs, strict=True):
        lowering.scalars[variable] = register(argument)
    return True


RULES: Rules = {Elemwise: OpRule(_lower_elementwise, read_inputs)}
