"""Lowering of checks: values pass as views; Python raises the exception of a condition that is false."""

from __future__ import annotations

from typing import cast

from engine.graph.apply import Apply
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.callbacks import callback_of
from engine.lowering.steps import Check, Value
from engine.tensor.checks import Assert, CheckAndRaise, SpecifyShape


def _lower_check(lowering: Lowering, node: Apply) -> None:
    """Have Python look at the conditions, and let the value pass behind that."""
    value, output = node.inputs[0], node.outputs[0]
    lowering.dims[output] = lowering.dims_of(value)
    if not lowering.is_needed(output):
        return
    asked = node.op.make_node(True, *node.inputs[1:])
    lowering.invoke(asked, callback_of(lowering, asked), [[]])
    answer = lowering.values[asked.outputs[0]]
    lowering.values[output] = _view(lowering.value_of(value), answer.stage)


def _lower_specify_shape(lowering: Lowering, node: Apply) -> None:
    table, op = lowering.table, cast(SpecifyShape, node.op)
    x, *lengths = node.inputs
    output = node.outputs[0]
    dims = list(lowering.dims_of(x))
    due = ["" for _ in dims]
    registers = [lowering.scalar_of(length) for length in lengths]
    for axis, register in zip(op.axes, registers, strict=True):
        due[axis] = str(register)
    check = Check("specified", str(op), (",".join(map(str, dims)), ",".join(due)))
    for axis, register in zip(op.axes, registers, strict=True):
        dims[axis] = table.same(dims[axis], register, check)
    lowering.dims[output] = tuple(dims)
    if lowering.is_needed(output):
        value = lowering.value_of(x)
        stage = max(value.stage, table.stage(dims))
        lowering.values[output] = Value(
            value.pointer, value.dtype, tuple(dims), stage, value.strides, value.buffer
        )


def _view(value: Value, stage: int) -> Value:
    """Return `value` from `stage` on."""
    later = max(value.stage, stage)
    return Value(value.pointer, value.dtype, value.dims, later, value.strides, value.buffer)


RULES: Rules = {
    CheckAndRaise: OpRule(_lower_check),
    Assert: OpRule(_lower_check),
    SpecifyShape: OpRule(_lower_specify_shape, lambda node: node.inputs, lambda node: node.inputs[1:]),
}
