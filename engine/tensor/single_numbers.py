"""Numbers as tensors of 0 dimensions, and back; graphs of numbers as graphs of tensors.

Programs hold tensors only: before a function is made, a graph on numbers becomes one on tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.traversal import graph_inputs, io_toposort
from engine.graph.variables import Constant, Variable, has_noted_use, note_uses
from engine.scalar.op import ScalarOp, as_scalar
from engine.scalar.type import ScalarType, scalar_type
from engine.tensor.conversion import as_tensor_variable, constant
from engine.tensor.elemwise import elemwise
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class _SameNumber(Op):
    """A conversion. The gradient of a number is a tensor of 0 dimensions: cotangents and tangents stay."""

    __props__ = ()

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return list(cotangents)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return list(tangents)

    def __str__(self) -> str:
        return type(self).__name__

    __repr__ = __str__


class TensorFromScalar(_SameNumber):
    """A number as a tensor of 0 dimensions. Raises TypeError for a tensor of more."""

    def make_node(self, x: Any) -> Apply:
        x = as_scalar(x)
        return Apply(self, [x], [tensor_type(x.type.dtype, ()).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.asarray(inputs[0])

    def elementwise(self, x: Any) -> TensorVariable:
        """Return a number as a tensor of 0 dimensions: of an expression, the same expression on tensors."""
        x = as_scalar(x)
        roots = [v for v in graph_inputs([x]) if not isinstance(v, Constant)]
        return TensorsOfNumbers(roots, [x], self).outputs[0]


class ScalarFromTensor(_SameNumber):
    """A tensor of 0 dimensions as a number. Raises TypeError for other tensors."""

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.ndim != 0:
            raise TypeError(f"Using {x} of type {x.type} as a number: it must have 0 dimensions")
        return Apply(self, [x], [scalar_type(x.type.dtype).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = inputs[0][()]


scalar_from_tensor, tensor_from_scalar = ScalarFromTensor(), TensorFromScalar()


def _new_tensor(variable: Variable) -> Any:
    tensor = tensor_type(variable.type.dtype, ()).make_variable(variable.name)
    if has_noted_use(variable):
        note_uses([tensor])
    return tensor


class TensorsOfNumbers:
    """The tensors that stand for the numbers of a graph, from `inputs` to `outputs`; `tensor_of` makes those
    of inputs.

    Each Op on numbers becomes its elementwise one. Other Ops are applied again if an input changes.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        tensor_of: Callable[[Variable], Any] = _new_tensor,
    ) -> None:
        self._known: dict[Variable, Any] = {}
        self._tensor_of = tensor_of
        self.inputs = [self._tensor(variable) for variable in inputs]
        for node in io_toposort(inputs, outputs):
            self._translate(node)
        self.outputs = [self._tensor(variable) for variable in outputs]

    def _tensor(self, variable: Variable) -> Any:
        if variable in self._known or not isinstance(variable.type, ScalarType):
            return self._known.get(variable, variable)
        if isinstance(variable, Constant):
            found: Any = constant(np.asarray(variable.data), variable.name)
        else:
            found = self._tensor_of(variable)
        self._known[variable] = found
        return found

    def _translate(self, node: Apply) -> None:
        is_of_numbers = any(isinstance(output.type, ScalarType) for output in node.outputs)
        inputs = [self._tensor(variable) for variable in node.inputs]
        if not is_of_numbers and all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            return
        if isinstance(node.op, TensorFromScalar | ScalarFromTensor):
            found: Sequence[Any] = inputs
        else:
            op = elemwise(node.op) if isinstance(node.op, ScalarOp) else node.op
            found = op.make_node(*inputs).outputs
        self._known.update(zip(node.outputs, found, strict=True))
