"""Elements by their index along the first axis, and the addition of something to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.conversion import second
from engine.scalar.promotion import FLOATS, INTEGERS, common_dtype
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import arange, zeros
from engine.tensor.elemwise import apply_elemwise, cast, dimshuffle
from engine.tensor.math import eq, switch
from engine.tensor.shape import shape_i
from engine.tensor.type import tensor_type


class AdvancedSubtensor1(Op):
    """`x[index]`, for a vector of integers: row `index[k]` of `x` as row `k`.

    Negative indices count from the end. Refuses (IndexError) an index out of range.
    """

    __props__ = ()

    def make_node(self, x: Any, index: Any) -> Apply:
        x, index = _checked(x, index)
        shape = (index.type.shape[0], *x.type.shape[1:])
        return Apply(self, [x, index], [tensor_type(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, index = inputs
        check_index(index, x.shape[0])
        output_storage[0][0] = x[index]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, index = inputs
        if cotangents[0] is None or x.type.dtype not in FLOATS:
            return [None, None]
        zeros = apply_elemwise(second, x, cast(as_tensor_variable(0.0), x.type.dtype))
        return [advanced_inc_subtensor1.make_node(zeros, cotangents[0], index).outputs[0], None]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """The index only chooses."""
        return [[True], [False]]


class AdvancedIncSubtensor1(Op):
    """`x` with row `k` of `y` added to row `index[k]`, or that row set to it. A row that is named several times gets all
    that is added, and the last that it is set to.

    With `inplace` the tensor itself is changed: rewriting sets it where nothing reads the old one afterwards. Refuses (IndexError) an index out of range, (ValueError) a `y` that has not the shape of `x[index]`.
    """

    __props__ = ("set_instead_of_inc", "inplace")

    def __init__(self, set_instead_of_inc: bool = False, inplace: bool = False) -> None:
        self.set_instead_of_inc = bool(set_instead_of_inc)
        self.inplace = bool(inplace)
        if self.inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x: Any, y: Any, index: Any) -> Apply:
        x, index = _checked(x, index)
        y = as_tensor_variable(y)
        if common_dtype(x.type.dtype, y.type.dtype) != x.type.dtype:
            raise TypeError(
                f"Adding {y.type} to elements of {x.type}: dtype {x.type.dtype} is expected; cast it first"
            )
        if y.type.ndim != x.type.ndim:
            raise TypeError(f"Adding {y.type} to elements of {x.type}: both must have as many dimensions")
        expected = (index.type.shape[0], *x.type.shape[1:])
        if any(None not in (a, b) and a != b for a, b in zip(expected, y.type.shape, strict=True)):
            raise ValueError(f"Adding {y.type} to elements of {x.type}: shape {expected} is expected")
        return Apply(self, [x, cast(y, x.type.dtype), index], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, y, index = inputs
        check_index(index, x.shape[0])
        expected = (*index.shape, *x.shape[1:])
        if y.shape != expected:
            raise ValueError(
                f"Adding an array of shape {y.shape} to elements of one of shape {x.shape}: {expected} fits"
            )
        result = x if self.inplace else np.array(x, order="C")
        with np.errstate(all="ignore"):
            if self.set_instead_of_inc:
                result[index] = y
            else:
                np.add.at(result, index, y)
        output_storage[0][0] = result

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, y, index = inputs
        gradient = cotangents[0]
        if gradient is None or x.type.dtype not in FLOATS:
            return [None, None, None]
        of_rows = advanced_subtensor1.make_node(gradient, index).outputs[0]
        if self.set_instead_of_inc:
            of_rows = switch(_is_last(x, index, y.type.ndim), of_rows, 0)
            nothing = zeros([shape_i(y, axis) for axis in range(y.type.ndim)], x.type.dtype)
            gradient = advanced_set_subtensor1.make_node(gradient, nothing, index).outputs[0]
        return [gradient, cast(of_rows, y.type.dtype) if y.type.dtype in FLOATS else of_rows, None]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """The index only chooses."""
        return [[True], [True], [False]]

    def __str__(self) -> str:
        return "AdvancedSetSubtensor1" if self.set_instead_of_inc else "AdvancedIncSubtensor1"

    __repr__ = __str__


class WrapIndex(Op):
    """Indices for the axis `axis` of a tensor, of any shape, counted from the start: inputs are these, and the length.

    Refuses (IndexError) an index out of range.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = int(axis)

    def make_node(self, index: Any, length: Any) -> Apply:
        index, length = as_tensor_variable(index), as_tensor_variable(length)
        if index.type.dtype not in INTEGERS or length.type != tensor_type("int64", ()):
            raise TypeError(
                f"Indexing an axis of length {length.type} by {index.type}: both must be integers"
            )
        return Apply(self, [index, length], [tensor_type("int64", index.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        index, length = inputs[0].astype("int64"), int(inputs[1])
        check_index(index.ravel(), length, self.axis)
        output_storage[0][0] = np.asarray(np.where(index < 0, index + length, index))

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None, None]


def _is_last(x: Any, index: Any, ndim: int) -> Any:
    """For each row, whether no later one is set to the same place: bools that broadcast with rows of `ndim` axes."""
    positions = arange(shape_i(index, 0))
    nothing = zeros((shape_i(x, 0),), "int64")
    last = advanced_set_subtensor1.make_node(nothing, positions, index).outputs[0]
    found = eq(advanced_subtensor1.make_node(last, index).outputs[0], positions)
    return dimshuffle(found, [0, *["x"] * (ndim - 1)])


advanced_subtensor1 = AdvancedSubtensor1()
advanced_inc_subtensor1 = AdvancedIncSubtensor1()
advanced_set_subtensor1 = AdvancedIncSubtensor1(set_instead_of_inc=True)


def _checked(x: Any, index: Any) -> tuple[Any, Any]:
    x, index = as_tensor_variable(x), as_tensor_variable(index)
    if x.type.ndim == 0:
        raise TypeError(f"Indexing {x} of type {x.type}: it has no axis")
    if index.type.ndim != 1 or index.type.dtype not in INTEGERS:
        raise TypeError(
            f"Indexing {x} by {index} of type {index.type}: the index must be a vector of integers"
        )
    return x, index


def check_index(index: np.ndarray, length: int, axis: int = 0) -> None:
    """Refuse (IndexError) an index outside of -length .. length - 1, naming it and where it stands."""
    wrong = np.flatnonzero((index < -length) | (index >= length))
    if wrong.size:
        position = int(wrong[0])
        raise IndexError(
            f"Indexing axis {axis} of size {length}: index {int(index[position])} at position {position} is out of bounds"
        )
