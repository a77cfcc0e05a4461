"""`ReplacedOp`: the base of Ops that are computed by a graph of other Ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.configdefaults import compiling
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.reference import evaluate
from engine.graph.variables import Constant
from engine.tensor.conversion import as_tensor_variable


class ReplacedOp(Op):
    """Base class of Ops that a graph replaces when a function is made, after the rewrites that look for them.

    The types of the outputs, and the reference, are those of the graph.
    """

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        """Return the outputs, computed by other Ops; refuse (TypeError, ValueError) inputs of wrong types."""
        raise NotImplementedError(f"{type(self).__name__} must implement replacement()")

    def is_replaced(self, inputs: Sequence[Any]) -> bool:
        """Return False for inputs with which the Op itself has a kernel."""
        return True

    def make_node(self, *inputs: Any) -> Apply:
        tensors = [as_tensor_variable(value) for value in inputs]
        outputs = self.replacement(*tensors)
        return Apply(self, tensors, [output.type.make_variable() for output in outputs])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        with compiling():
            given = [v if isinstance(v, Constant) else v.type.make_variable() for v in node.inputs]
            outputs = self.replacement(*given)
        for cell, result in zip(output_storage, evaluate(given, outputs, inputs), strict=True):
            cell[0] = result
