"""Graphs of tensors of 0 dimensions as graphs of numbers: the inverse of `single_numbers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from engine.graph.apply import Apply
from engine.graph.traversal import io_toposort
from engine.graph.variables import Constant, Variable
from engine.scalar.makers import cast as cast_number
from engine.scalar.op import ScalarOp
from engine.scalar.type import scalar_type
from engine.tensor.elemwise import Elemwise
from engine.tensor.single_numbers import TensorFromScalar, scalar_from_tensor
from engine.tensor.type import is_data


def as_numbers(tensors: Sequence[Any], given: Mapping[Variable, Any] | None = None) -> list[Any]:
    """Return tensors of 0 dimensions as numbers: elementwise expressions as the same ones on numbers.

    Those of some tensors may be `given`.
    """
    known: dict[Variable, Any] = dict(given or {})
    for node in io_toposort(known, tensors):
        if isinstance(node.op, TensorFromScalar):
            known[node.outputs[0]] = node.inputs[0]
        elif isinstance(node.op, Elemwise) and cast(Any, node.outputs[0].type).ndim == 0:
            known.update(zip(node.outputs, _on_numbers(node.op.scalar_op, node, known), strict=True))
    return [_number(tensor, known) for tensor in tensors]


def _on_numbers(op: ScalarOp, node: Apply, known: dict[Variable, Any]) -> Sequence[Any]:
    numbers = [_number(tensor, known) for tensor in node.inputs]
    if op.has_own_dtypes:  # of other dtypes it would compute something else
        dtypes = op.signature(tuple([number.type.dtype for number in numbers]))[0]
        numbers = [cast_number(number, dtype) for number, dtype in zip(numbers, dtypes, strict=True)]
    return op.make_node(*numbers).outputs


def _number(tensor: Any, known: dict[Variable, Any]) -> Any:
    if isinstance(tensor, Constant) and not is_data(tensor):
        return scalar_type(tensor.type.dtype).make_constant(tensor.data[()])
    return known[tensor] if tensor in known else scalar_from_tensor(tensor)
