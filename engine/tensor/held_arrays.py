"""The arrays that programs hold for values that are none, as tensors: so loops carry generators along.

In a program both Ops do nothing: an array stands for the value on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.represented import RepresentedType
from engine.graph.variables import Variable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.type import tensor_type


class HeldArray(Op):
    """The array that programs hold for the value of the input, whose type is a represented one."""

    __props__ = ()
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def make_node(self, value: Any) -> Apply:
        if not isinstance(value, Variable) or not isinstance(value.type, RepresentedType):
            raise TypeError(f"Taking the array of {value}: it is no variable whose values are no arrays")
        return Apply(self, [value], [tensor_type(value.type.dtype, value.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = node.inputs[0].type.to_array(inputs[0])

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]


class HeldValue(Op):
    """The value of `type`, a represented one, that the array in the input stands for."""

    __props__ = ("type",)
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def __init__(self, type: RepresentedType) -> None:
        self.type = type

    def make_node(self, array: Any) -> Apply:
        array = as_tensor_variable(array)
        if (array.type.dtype, array.type.ndim) != (self.type.dtype, self.type.ndim):
            raise TypeError(f"Reading {array} of type {array.type} as a {self.type}: it holds none")
        return Apply(self, [array], [self.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = self.type.from_array(inputs[0])

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]


def held_array(value: Any) -> Any:
    """Return the array that programs hold for `value`, a variable of a represented type."""
    node = value.owner
    is_held = node is not None and isinstance(node.op, HeldValue)
    return node.inputs[0] if is_held else HeldArray().make_node(value).outputs[0]


def held_value(array: Any, type: RepresentedType) -> Any:
    """Return the value of `type` that the tensor `array` stands for."""
    return HeldValue(type).make_node(array).outputs[0]
