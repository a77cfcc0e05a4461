"""Concatenation of tensors along existing and new axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.scalar.arithmetic import add
from engine.scalar.conversion import Cast
from engine.scalar.promotion import INEXACT, common, common_dtype
from engine.tensor.axes import axis_of, numbers_of
from engine.tensor.conversion import as_tensor_variable, constant, number
from engine.tensor.elemwise import Elemwise, apply_elemwise, cast
from engine.tensor.index_entries import FULL, INTEGER
from engine.tensor.shape import MakeVector, expand_dims, shape_i
from engine.tensor.slicing import Subtensor
from engine.tensor.type import is_data, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Join(Op):
    """Concatenates tensors along `axis`, in their common dtype.

    Raises ValueError if their lengths along the other axes differ.
    """

    __props__ = ("axis",)
    differentiates_complex = True

    def __init__(self, axis: int) -> None:
        (self.axis,) = numbers_of("Making an Op along an axis", [axis])
        if self.axis < 0:
            raise ValueError(f"Making an Op along an axis: it must be non-negative, not {axis}")

    def make_node(self, *tensors: Any) -> Apply:
        inputs = [as_tensor_variable(tensor) for tensor in tensors]
        if not inputs:
            raise ValueError("Joining tensors: none were given")
        ndim = inputs[0].type.ndim
        if any(variable.type.ndim != ndim for variable in inputs):
            raise TypeError(
                f"Joining {', '.join(str(v.type) for v in inputs)} along axis {self.axis}: all must have "
                "the same number of dimensions"
            )
        if ndim == 0:
            raise TypeError("Joining tensors of 0 dimensions: they have no axis; stack them")
        axis_of("Joining tensors", self.axis, ndim)
        dtype = common(tuple([variable.type.dtype for variable in inputs]))
        shape = [
            self._static_length(axis, [variable.type.shape[axis] for variable in inputs])
            for axis in range(ndim)
        ]
        output = tensor_type(dtype, tuple(shape)).make_variable()
        return Apply(self, [cast(variable, dtype) for variable in inputs], [output])

    def _static_length(self, axis: int, lengths: Sequence[int | None]) -> int | None:
        known = [length for length in lengths if length is not None]
        if axis == self.axis:
            return sum(known) if len(known) == len(lengths) else None
        if len(set(known)) > 1:
            raise ValueError(
                "Joining tensors: all input array dimensions other than the specified `axis` "
                f"({self.axis}) must match exactly, or be unknown (None), but along dimension {axis}, the "
                f"inputs shapes are incompatible: [{' '.join(map(str, known))}]"
            )
        return known[0] if known else None

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        shapes = [tuple(np.delete(value.shape, self.axis).tolist()) for value in inputs]
        if len(set(shapes)) > 1:
            raise ValueError(
                f"Joining arrays of shapes {', '.join(str(value.shape) for value in inputs)} along axis "
                f"{self.axis}: all other lengths must be equal"
            )
        output_storage[0][0] = np.concatenate(inputs, axis=self.axis)

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs if all tensors have the same batch axes."""
        counts = {new.type.ndim - old.type.ndim for new, old in zip(inputs, node.inputs, strict=True)}
        count = counts.pop()
        if counts or len({v.type.broadcastable[:count] for v in inputs}) > 1:
            return None
        return Join(self.axis + count).make_node(*inputs).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        gradient = cotangents[0]
        if gradient is None or outputs[0].type.dtype not in INEXACT:
            return [None] * len(inputs)
        start = number(0, "int64")
        found = []
        for variable in inputs:
            stop = apply_elemwise(add, start, shape_i(variable, self.axis))
            found.append(self._part(gradient, variable, start, stop))
            start = stop
        return found

    def _part(self, gradient: Any, variable: Any, start: Any, stop: Any) -> Any:
        """Return the part of `gradient` from `start` to `stop`; an axis of static length 1 keeps it."""
        before = [FULL] * self.axis
        if variable.type.shape[self.axis] != 1:
            return Subtensor([*before, "a:b"]).make_node(gradient, start, stop).outputs[0]
        element = Subtensor([*before, INTEGER]).make_node(gradient, start).outputs[0]
        return expand_dims(element, self.axis)


def join(axis: Any, *tensors: Any) -> TensorVariable:
    """Return `tensors` concatenated along `axis`, which may be negative, and a constant that is cast."""
    variables = [as_tensor_variable(tensor) for tensor in tensors]
    if not variables:
        raise ValueError("Joining tensors: none were given")
    while isinstance(getattr(getattr(axis, "owner", None), "op", None), Elemwise):
        if not isinstance(axis.owner.op.scalar_op, Cast):
            break
        axis = axis.owner.inputs[0]
    number = axis_of("Joining tensors", axis, max(1, *[variable.type.ndim for variable in variables]))
    return Join(number)(*variables) if len(variables) > 1 else variables[0]


def concatenate(tensor_list: Sequence[Any], axis: int = 0) -> TensorVariable:
    """Return `tensor_list` concatenated along `axis`, which may be negative."""
    return join(axis, *tensor_list)


def stack(tensors: Any, axis: int = 0) -> TensorVariable:
    """Return `tensors`, of equal rank, joined along a new axis at position `axis` of the result."""
    if isinstance(tensors, Variable) and tensors.type.shape[:1] in ((), (None,)):
        raise TypeError(f"Stacking {tensors}: First argument should be a Sequence of tensors")
    variables = [as_tensor_variable(tensor) for tensor in tensors]
    if not variables:
        raise ValueError("Stacking tensors: No tensor arguments provided")
    axis = axis_of("Stacking tensors", axis, 1 + max([variable.type.ndim for variable in variables]))
    if all(variable.type.ndim == 0 for variable in variables):
        dtype = reduce(common_dtype, [variable.type.dtype for variable in variables])
        return MakeVector(dtype)(*variables)
    return join(axis, *[_on_new_axis(variable, axis) for variable in variables])


def _on_new_axis(variable: Variable, axis: int) -> Any:
    """Return `variable` with a new axis; of a constant, a constant."""
    if isinstance(variable, Constant) and not is_data(variable):
        return constant(np.expand_dims(variable.data, axis))
    return expand_dims(variable, axis)
