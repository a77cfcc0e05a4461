"""Indexing by several arrays as by one: the indexed axes in front, merged, and the places in them.

Index arrays broadcast as numpy's: an axis of length 1 is repeated even if only the function's call tells that
it has this length. No gradient is taken by an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import DimShuffle
from engine.tensor.known_lengths import known_length
from engine.tensor.math import add, minimum, mul, sub
from engine.tensor.shape import lengths_of, reshape, shape_i, size_over
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


class SpreadIndex(Op):
    """An index array of the shape of those beside it. Inputs: the array, and a length for each of its axes.

    Raises IndexError for an axis whose length is neither that nor 1.
    """

    __props__ = ()
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def make_node(self, index: Any, *lengths: Any) -> Apply:
        index, due = as_tensor_variable(index), lengths_of(lengths)
        if index.type.dtype not in INTEGERS or index.type.ndim != len(due):
            raise TypeError(
                f"Repeating {index.type} to {len(due)} lengths: it must be integers of as many axes"
            )
        shape = tuple([known_length(length) for length in due])
        return Apply(self, [index, *due], [tensor_type(index.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        index, *lengths = inputs
        due = tuple(map(int, lengths))
        for found, length in zip(index.shape, due, strict=True):
            if found not in (1, length):
                raise IndexError(f"Indexing a tensor: {unequal_lengths(found, length)}")
        output_storage[0][0] = np.broadcast_to(index, due)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None] * len(inputs)


def unequal_lengths(found: int, due: int) -> str:
    """Return the message for index arrays of lengths of which none is 1."""
    return (
        "shape mismatch: indexing arrays could not be broadcast together: along one axis they have lengths "
        f"{found} and {due}"
    )


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


def spread_together(groups: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return groups of index arrays, those of a group of one shape, that broadcast by their types alone."""
    ndim = max([group[0].type.ndim for group in groups])
    along = [_lengths_along(groups, axis) for axis in range(-ndim, 0)]
    if all(len(found) < 2 or None not in {static for static, _ in found} for found in along):
        return [list(group) for group in groups]
    common = [_common_length(found) for found in along]
    return [[_spread(index, common) for index in group] for group in groups]


def _lengths_along(groups: Sequence[Sequence[Any]], axis: int) -> list[tuple[int | None, Any]]:
    """Return the lengths of `axis`, counted from the end, as types know them and as variables, but no 1s."""
    found = []
    for index in dict.fromkeys([index for index, *_ in groups]):
        place = index.type.ndim + axis
        if place >= 0 and index.type.shape[place] != 1:
            found.append((index.type.shape[place], shape_i(index, place)))
    return found


def _common_length(found: Sequence[tuple[int | None, Any]]) -> Any:
    known = [length for static, length in found if static is not None]
    lengths = [length for _, length in found]
    return known[0] if known else reduce(_longer, lengths) if lengths else 1


def _longer(first: Any, second: Any) -> Any:
    """Return the second of two lengths if the first is 1, else the first: by what registers compute."""
    rest = sub(first, 1)
    return add(second, mul(minimum(mul(rest, rest), 1), sub(first, second)))


def _spread(index: Any, common: Sequence[Any]) -> Any:
    lengths = common[len(common) - index.type.ndim :]
    due = [1 if static == 1 else length for static, length in zip(index.type.shape, lengths, strict=True)]
    return SpreadIndex().make_node(index, *due).outputs[0] if due else index


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
