"""Indexing by several arrays as by one: the indexed axes in front, merged, and the places in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import DimShuffle
from engine.tensor.math import add, mul
from engine.tensor.shape import reshape, shape_i, size_over
from engine.tensor.slicing import as_position
from engine.tensor.type import tensor_type


class WrapIndex(Op):
    """Converts negative indices for the axis `axis`. Inputs: the indices, of any shape, and the axis's
    length.

    Raises IndexError for an index out of range.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = int(axis)

    def make_node(self, index: Any, length: Any) -> Apply:
        index, length = without_uint64(as_tensor_variable(index)), as_tensor_variable(length)
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


def without_uint64(index: Any) -> Any:
    """Return `index`, as int64 if it is uint64."""
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


class GatheredRows(NamedTuple):
    """The rows of a tensor, whose indexed axes are merged in front, and the integers that select rows.

    `before` of the other axes, whose lengths are `kept`, come before those of the index in the result.
    """

    rows: Any
    index: Any
    kept: list[Any]
    before: int

    def arranged(self, taken: Any) -> Any:
        """Return the rows that were taken by the flat index, with all axes where numpy has them."""
        count = self.index.type.ndim
        if count != 1:
            taken = reshape(taken, [shape_i(self.index, axis) for axis in range(count)] + self.kept)
        before, n_axes = self.before, count + len(self.kept)
        if before == 0:
            return taken
        order = [*range(count, count + before), *range(count), *range(count + before, n_axes)]
        return DimShuffle(n_axes, order).make_node(taken).outputs[0]


def gathered_rows(x: Any, items: Sequence[Any]) -> GatheredRows:
    """Return how `x` is indexed by an integer variable, or by None (all), for each axis."""
    axes = [axis for axis, item in enumerate(items) if item is not None]
    rest = [axis for axis in range(x.type.ndim) if axis not in axes]
    kept = [shape_i(x, axis) for axis in rest]
    index = items[0] if axes == [0] else _row_numbers(x, items, axes)
    rows = x
    if axes != list(range(len(axes))):
        rows = DimShuffle(x.type.ndim, axes + rest).make_node(rows).outputs[0]
    if len(axes) > 1:
        rows = reshape(rows, [size_over(x, axes), *kept])
    return GatheredRows(rows, index, kept, first_axis(axes))


def first_axis(axes: Sequence[int]) -> int:
    """Return where the axes of index arrays come in a result: in front if the indexed ones are apart."""
    return axes[0] if list(axes) == list(range(axes[0], axes[0] + len(axes))) else 0


def _row_numbers(x: Any, items: Sequence[Any], axes: Sequence[int]) -> Any:
    """Return the row numbers, in the merged axes `axes`, of the elements that `items` select."""
    result = None
    for axis in axes:
        length = shape_i(x, axis)
        wrapped = WrapIndex(axis).make_node(items[axis], length).outputs[0]
        result = wrapped if result is None else add(mul(result, length), wrapped)
    return result
