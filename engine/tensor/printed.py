"""`Print`: a value that is printed when a function computes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.conversion import as_tensor_variable


def print_attributes(op: Print, value: Any) -> None:
    """Print the message of `op` and the attributes of `value` that it asks for; methods are called."""
    for name in op.attrs:
        found = getattr(value, name)
        sys.stdout.write(f"{op.message} {name} = {found() if callable(found) else found}\n")


class Print(Op):
    """Returns its input, and prints `message` and `attrs` of it: names of attributes, or of methods to call.

    `global_fn(op, value)` does so. Each value is printed when a function computes it; one that only gives its
    shape is not computed.
    """

    __props__: tuple[str, ...] | None = ("message", "attrs", "global_fn")
    holds_code = True
    differentiates_complex = True

    def __init__(
        self,
        message: str = "",
        attrs: Sequence[str] = ("__str__",),
        global_fn: Callable[[Print, Any], None] = print_attributes,
    ) -> None:
        self.message = message
        self.attrs = tuple(attrs)
        self.global_fn = global_fn

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        self.global_fn(self, inputs[0])
        output_storage[0][0] = inputs[0]

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the value."""
        return [input_shapes[0]]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return list(cotangents)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return list(tangents)

    def __str__(self) -> str:
        return f"Print{{message='{self.message}'}}"

    __repr__ = __str__
