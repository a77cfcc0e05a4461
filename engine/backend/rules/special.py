"""Lowering of softmax and its kin: the largest elements, then sums of exponentials, then what is made of both."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, cast

from engine.backend.kernels.elementwise import elementwise
from engine.backend.kernels.nest import Operand, Ref, Statement
from engine.backend.kernels.reduce import reduction
from engine.backend.lower import Lowering, OpRule, dtype, kernel_arguments
from engine.backend.table import Value
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.special import LogSoftmax, LogSumExp, Softmax

_X: Ref = ("input", 0)
_FORMATS = {"float64": "<d", "float32": "<f"}


class _Steps:
    """The kernels of one node over the dims of its input, of which `axis` are reduced."""

    def __init__(self, lowering: Lowering, node: Apply) -> None:
        self.lowering, self.node = lowering, node
        self.axis: tuple[int, ...] = cast(Any, node.op).axis
        self.dtype = dtype(node.inputs[0])
        self.dims = lowering.dims_of(node.inputs[0])
        self.kept = tuple(length for dim, length in enumerate(self.dims) if dim not in self.axis)
        self.source = lowering.value_of(node.inputs[0])

    def reduced(
        self, kind: str, inputs: Sequence[Value], body: Sequence[Statement], into: Value | None = None
    ) -> Value:
        """`kind` of the last of `body`, or of the input without any."""
        result = into or self.lowering.table.buffer(self.dtype, self.kept, self._stage(self.kept))
        last: Ref = ("value", len(body) - 1) if body else _X
        operands = [self._operand(value) for value in inputs]
        kernel = reduction(kind, operands, body, last, len(self.dims), self.axis, self.dtype, self.dtype)
        self._call(kernel, inputs, result, self.dims)
        return result

    def mapped(self, inputs: Sequence[Value], body: Sequence[Statement], into: Value | None = None) -> Value:
        """The last of `body`, for each element."""
        result = into or self.lowering.table.buffer(self.dtype, self.dims, self._stage(self.dims))
        operands = [self._operand(value) for value in inputs]
        kernel = elementwise(operands, body, [("value", len(body) - 1)], len(self.dims))
        self._call(kernel, inputs, result, self.dims)
        return result

    def combined(self, inputs: Sequence[Value], body: Sequence[Statement], into: Value) -> None:
        """The last of `body`, for each element of what was reduced."""
        rank = len(self.kept)
        operands = [Operand(value.dtype, (False,) * rank) for value in inputs]
        self._call(elementwise(operands, body, [("value", len(body) - 1)], rank), inputs, into, self.kept)

    def statement(self, op: str, *arguments: Ref, gives: str | None = None) -> Statement:
        return Statement(op, arguments, gives or self.dtype)

    def number(self, value: float) -> Ref:
        return "constant", self.dtype, struct.pack(_FORMATS[self.dtype], value)

    def allocate(self) -> Value:
        output = self.node.outputs[0]
        return self.lowering.allocate(output, [self.source], self.lowering.dims[output], self.dims)

    def _stage(self, dims: Sequence[int]) -> int:
        return max(self.source.stage, self.lowering.table.stage(dims), self.lowering.table.stage(self.dims))

    def _operand(self, value: Value) -> Operand:
        """An operand over all dims; what was reduced stands still along the reduced ones."""
        is_reduced = value is not self.source and len(value.dims) < len(self.dims)
        broadcast = tuple(is_reduced and dim in self.axis for dim in range(len(self.dims)))
        return Operand(value.dtype, broadcast, value.strides is not None)

    def _call(self, kernel: Any, inputs: Sequence[Value], result: Value, dims: Sequence[int]) -> None:
        table = self.lowering.table
        arguments = kernel_arguments(table, kernel.arguments, inputs, [result], dims)
        table.call(kernel, arguments, inputs, [result], str(self.node.op))


def _lower_softmax(lowering: Lowering, node: Apply) -> None:
    lowering.dims[node.outputs[0]] = lowering.dims_of(node.inputs[0])
    if not lowering.is_needed(node.outputs[0]):
        return
    steps = _Steps(lowering, node)
    result = steps.allocate()
    largest = steps.reduced("max", [steps.source], [])
    moved = steps.statement("sub", _X, ("input", 1))
    powers = steps.mapped([steps.source, largest], [moved, steps.statement("exp", ("value", 0))])
    total = steps.reduced("sum", [powers], [])
    steps.mapped([powers, total], [steps.statement("true_div", _X, ("input", 1))], result)


def _lower_log_softmax(lowering: Lowering, node: Apply) -> None:
    lowering.dims[node.outputs[0]] = lowering.dims_of(node.inputs[0])
    if not lowering.is_needed(node.outputs[0]):
        return
    steps = _Steps(lowering, node)
    result = steps.allocate()
    largest = steps.reduced("max", [steps.source], [])
    moved = steps.statement("sub", _X, ("input", 1))
    total = steps.reduced("sum", [steps.source, largest], [moved, steps.statement("exp", ("value", 0))])
    body = [
        moved,
        steps.statement("log", ("input", 2)),
        steps.statement("sub", ("value", 0), ("value", 1)),
    ]
    steps.mapped([steps.source, largest, total], body, result)


def _lower_logsumexp(lowering: Lowering, node: Apply) -> None:
    output = node.outputs[0]
    axis = cast(LogSumExp, node.op).axis
    lengths = lowering.dims_of(node.inputs[0])
    lowering.dims[output] = tuple(length for dim, length in enumerate(lengths) if dim not in axis)
    if not lowering.is_needed(output):
        return
    steps = _Steps(lowering, node)
    result = steps.allocate()
    largest = steps.reduced("max", [steps.source], [])
    shift = lowering.table.buffer(steps.dtype, steps.kept, result.stage)
    # An infinite element less itself would be no number.
    finite = [
        steps.statement("abs", _X),
        steps.statement("eq", ("value", 0), steps.number(float("inf")), gives="bool"),
        steps.statement("where", ("value", 1), steps.number(0.0), _X),
    ]
    steps.combined([largest], finite, shift)
    moved = steps.statement("sub", _X, ("input", 1))
    total = steps.reduced("sum", [steps.source, shift], [moved, steps.statement("exp", ("value", 0))])
    body = [steps.statement("log", _X), steps.statement("add", ("value", 0), ("input", 1))]
    steps.combined([total, shift], body, result)


RULES: dict[type[Op], OpRule] = {
    Softmax: OpRule(_lower_softmax),
    LogSoftmax: OpRule(_lower_log_softmax),
    LogSumExp: OpRule(_lower_logsumexp),
}
