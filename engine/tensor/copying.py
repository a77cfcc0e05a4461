"""Copies of tensors in memory: `DeepCopyOp`, one of its own, and `CpuContiguous`, one in C order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.conversion import as_tensor_variable

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class DeepCopyOp(Op):
    """A copy of a tensor. Compiled functions copy by themselves where results would share memory."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.array(inputs[0])

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [cotangents[0]]


deep_copy_op = DeepCopyOp()


class CpuContiguous(Op):
    """A tensor with its elements in C order in memory: itself if they are, otherwise a copy."""

    __props__ = ()
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}
    differentiates_complex = True

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.asarray(inputs[0], order="C")

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the input."""
        return [input_shapes[0]]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.make_node(inputs[0]).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [cotangents[0]]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [tangents[0]]


cpu_contiguous = CpuContiguous()


def transfer(var: Any, target: str) -> TensorVariable:
    """Return `var` as a tensor on the device `target`, which is "cpu". Raises ValueError for any other."""
    if target != "cpu":
        raise ValueError(f"Moving {var}: Can't transfer to target {target}; tensors are on the cpu")
    found: TensorVariable = as_tensor_variable(var)
    return found
