"""Indexing of the first axis by an integer vector, and the tensor with these rows set or added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.conversion import second
from engine.scalar.promotion import INEXACT, INTEGERS, common_dtype
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import arange, zeros
from engine.tensor.elemwise import apply_elemwise, as_gradient, cast, dimshuffle
from engine.tensor.math import eq, switch
from engine.tensor.shape import shape_i
from engine.tensor.slicing import as_position
from engine.tensor.type import tensor_type


class AdvancedSubtensor1(Op):
    """The rows `x[index]` for an integer vector, which may have negative elements.

    Raises IndexError for an index out of range.
    """

    __props__ = ()
    differentiates_complex = True

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
        if cotangents[0] is None or x.type.dtype not in INEXACT:
            return [None, None]
        zeros = apply_elemwise(second, x, cast(as_tensor_variable(0.0), x.type.dtype))
        return [advanced_inc_subtensor1.make_node(zeros, cotangents[0], index).outputs[0], None]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        x, index = inputs
        count = x.type.ndim - node.inputs[0].type.ndim
        if index.type.ndim != 1:
            return None
        # The indexed axis goes to the front, and back.
        rest = range(count + 1, x.type.ndim)
        rows = self.make_node(dimshuffle(x, [count, *range(count), *rest]), index).outputs[0]
        return [dimshuffle(rows, [*range(1, count + 1), 0, *rest])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the tensor, not on the index."""
        return [[True], [False]]


class AdvancedIncSubtensor1(Op):
    """`x` with each row `y[k]` added to row `index[k]`, or that row set to `y[k]`.

    If a row occurs several times, all values are added, or the last is set. With `inplace` the tensor
    itself is changed; a rewrite sets this where nothing reads the old value afterwards. Raises
    IndexError for an index out of range, and ValueError unless `y` has the shape of `x[index]`.
    """

    __props__ = ("set_instead_of_inc", "inplace")
    differentiates_complex = True

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
            raise TypeError(f"Adding {y.type} to elements of {x.type}: the ranks must be equal")
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
        if gradient is None or x.type.dtype not in INEXACT:
            return [None, None, None]
        of_rows = advanced_subtensor1.make_node(gradient, index).outputs[0]
        if self.set_instead_of_inc:
            of_rows = switch(_is_last(x, index, y.type.ndim), of_rows, 0)
            nothing = zeros([shape_i(y, axis) for axis in range(y.type.ndim)], x.type.dtype)
            gradient = advanced_set_subtensor1.make_node(gradient, nothing, index).outputs[0]
        return [gradient, as_gradient(of_rows, y.type.dtype), None]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on both tensors, not on the index."""
        return [[True], [True], [False]]

    def __str__(self) -> str:
        return "AdvancedSetSubtensor1" if self.set_instead_of_inc else "AdvancedIncSubtensor1"

    __repr__ = __str__


class WrapIndex(Op):
    """Converts negative indices for the axis `axis`. Inputs: the indices, of any shape, and the axis's
    length.

    Raises IndexError for an index out of range.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = int(axis)

    def make_node(self, index: Any, length: Any) -> Apply:
        index, length = _without_uint64(as_tensor_variable(index)), as_tensor_variable(length)
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
    """Return for each row if it is the last one set at its place; it broadcasts with rows of `ndim` axes."""
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
    return x, _without_uint64(index)


def _without_uint64(index: Any) -> Any:
    return as_position(index) if index.type.dtype == "uint64" else index


def check_index(index: np.ndarray, length: int, axis: int = 0) -> None:
    """Raise IndexError for an index outside -length .. length - 1, with its value and position."""
    wrong = np.flatnonzero((index < -length) | (index >= length))
    if wrong.size:
        position = int(wrong[0])
        raise IndexError(
            f"Indexing axis {axis} of size {length}: index {int(index[position])} at position {position} "
            "is out of bounds"
        )
