"""Lowering of numbers as tensors of 0 dimensions, and back: memory holds both alike."""

from __future__ import annotations

from engine.graph.apply import Apply
from engine.lowering.lower import Lowering
from engine.lowering.op_rule import OpRule, Rules
from engine.tensor.single_numbers import ScalarFromTensor, TensorFromScalar


def _lower_same(lowering: Lowering, node: Apply) -> None:
    (value,), (output,) = node.inputs, node.outputs
    lowering.dims[output] = ()
    if lowering.is_needed(output):
        lowering.values[output] = lowering.value_of(value)


RULES: Rules = {ScalarFromTensor: OpRule(_lower_same), TensorFromScalar: OpRule(_lower_same)}
