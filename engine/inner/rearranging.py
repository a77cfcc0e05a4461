"""Ops that repeat elements, split tensors, and merge or divide axes; and the functions that apply them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable
from engine.inner.named_op import NamedOp
from engine.tensor.axes import axis_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import dimshuffle
from engine.tensor.known_lengths import known_length
from engine.tensor.packing import divided
from engine.tensor.rearranging import divided_axis, merged_axes, repeated
from engine.tensor.shape import flatten, lengths_of, reshape

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_PROPS = NamedOp.__props__ or ()
_COUNTS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")

Known = tuple[int, ...] | None
"""Lengths that are known when the graph is built; None if some are not."""


class Repeat(NamedOp):
    """The first input with each element along `axis` repeated as often as the second, a vector, says."""

    __props__ = (*_PROPS, "axis")

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = _not_negative("Repeating elements", "axis", axis)

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        x, times = map(as_tensor_variable, inputs)
        if times.type.dtype not in _COUNTS:
            raise TypeError(
                f"Repeating elements {times} times, of type {times.type}: give integers below uint64"
            )
        return [x, times]

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        x, times = inputs
        return [repeated(x, times, axis_of(f"Applying {self}", self.axis, x.type.ndim))]


class Split(NamedOp):
    """The parts of the first input along `axis`; the second is the vector of their lengths, of `len_splits`.

    The Op of a node has the lengths in `known` if all are. Raises ValueError, when the function runs if not
    before, for a negative length and if they do not add up.
    """

    __props__ = (*_PROPS, "len_splits", "axis", "known")

    def __init__(self, len_splits: int, axis: int, known: Known = None) -> None:
        super().__init__()
        self.len_splits = int(len_splits)
        self.axis = _not_negative("Splitting a tensor", "axis", axis)
        self.known = known

    def make_node(self, *inputs: Any) -> Apply:
        x, sizes = map(as_tensor_variable, inputs)
        found = lengths_of(reshape(sizes, (self.len_splits,)) if sizes.type.shape == (None,) else sizes)
        if len(found) != self.len_splits:
            raise ValueError(f"Splitting into {self.len_splits} parts: {len(found)} lengths were given")
        return NamedOp.make_node(Split(self.len_splits, self.axis, _known(found)), x, sizes)

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        x, sizes = inputs
        # A vector of another length is refused when the function runs.
        due = reshape(sizes, (self.len_splits,)) if sizes.type.shape == (None,) else sizes
        lengths = self.known or lengths_of(due)
        return divided(x, lengths, axis_of(f"Applying {self}", self.axis, x.type.ndim))


class JoinDims(NamedOp):
    """The input with `n_axes` axes from `start_axis` on merged into one, in C order."""

    __props__ = (*_PROPS, "start_axis", "n_axes")

    def __init__(self, start_axis: int, n_axes: int) -> None:
        super().__init__()
        self.start_axis = _not_negative("Merging axes", "start_axis", start_axis)
        self.n_axes = _not_negative("Merging axes", "n_axes", n_axes)

    def make_node(self, *inputs: Any) -> Apply:
        (x,) = map(as_tensor_variable, inputs)
        if self.start_axis + self.n_axes > x.type.ndim:
            raise ValueError(
                f"Merging axes: JoinDims was asked to join dimensions {self.start_axis} to {self.n_axes}, "
                f"but input {x} has only {x.type.ndim} dimensions."
            )
        return NamedOp.make_node(self, x)

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        return [merged_axes(x, self.start_axis, self.n_axes)]


class SplitDims(NamedOp):
    """The first input with `axis` divided, in C order, into axes of lengths; the second is their vector.

    The Op of a node has the lengths in `known` if all are.
    """

    __props__ = (*_PROPS, "axis", "known")

    def __init__(self, axis: int, known: Known = None) -> None:
        super().__init__()
        self.axis = _not_negative("Dividing an axis", "axis", axis)
        self.known = known

    def make_node(self, *inputs: Any) -> Apply:
        x, shape = map(as_tensor_variable, inputs)
        return NamedOp.make_node(SplitDims(self.axis, _known(lengths_of(shape))), x, shape)

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        x, shape = inputs
        axis = axis_of(f"Applying {self}", self.axis, x.type.ndim)
        return [divided_axis(x, lengths_of(shape) if self.known is None else self.known, axis)]


def _not_negative(doing: str, name: str, number: int) -> int:
    if not isinstance(number, int | np.integer) or isinstance(number, bool):
        raise TypeError(f"{doing}: {name} is {number!r}; give a whole number, no symbolic one")
    if number < 0:
        raise ValueError(f"{doing}: {name} must be non-negative, not {number}")
    return int(number)


def _known(lengths: Sequence[Any]) -> Known:
    known = [length for each in lengths if (length := known_length(each)) is not None]
    return tuple(known) if len(known) == len(lengths) else None


def repeat(a: Any, repeats: Any, axis: int | None = None) -> TensorVariable:
    """Return `a` with each element along `axis` repeated `repeats` times, a number or one for each element.

    Without an axis the flattened elements are repeated.
    """
    a = as_tensor_variable(a)
    if axis is None:
        a, axis = flatten(a), 0
    place = axis_of(f"Repeating elements of {a}", axis, a.type.ndim)
    times = as_tensor_variable(repeats)
    if times.type.ndim > 1:
        raise ValueError(f"Repeating elements {times} times, of type {times.type}: give a number or a vector")
    if isinstance(times, Constant) and times.type.shape == (a.type.shape[place],) and times.data.size:
        times = as_tensor_variable(times.data[:1]) if np.ptp(times.data) == 0 else times
    if times.type.broadcastable == (True,):
        times = as_tensor_variable(times.data[0]) if isinstance(times, Constant) else dimshuffle(times, ())
    if times.type.ndim == 1:
        return Repeat(place)(a, times)
    a, times = Repeat(place).filter_inputs(a, times)
    return repeated(a, times, place)


def split(x: Any, splits_size: Any, *, n_splits: int | None = None, axis: int = 0) -> list[Any]:
    """Return the parts of `x` along `axis` that have the lengths `splits_size`, a list or a vector.

    A vector of unknown length has `n_splits` elements. Raises ValueError, when the function runs if not
    before, for a negative length and if they do not add up to that of `x`.
    """
    x = as_tensor_variable(x)
    place = axis_of(f"Splitting {x}", axis, x.type.ndim)
    is_unknown = isinstance(splits_size, Variable) and splits_size.type.shape == (None,)
    count = n_splits if is_unknown and n_splits is not None else len(lengths_of(splits_size))
    if n_splits not in (None, count):
        raise ValueError(f"Splitting into {n_splits} parts: {count} lengths were given")
    return Split(count, place)(x, splits_size, return_list=True) if count else []


def join_dims(x: Any, start_axis: int = 0, n_axes: int | None = None) -> TensorVariable:
    """Return `x` with `n_axes` axes from `start_axis` on (default: all) merged into one, in C order."""
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    if not -ndim <= start_axis <= ndim:
        raise IndexError(
            f"Merging axes of {x}: Axis {start_axis} is out of bounds for array of dimension {ndim}"
        )
    first = start_axis % ndim if -ndim <= start_axis < ndim else start_axis
    return JoinDims(first, ndim - first if n_axes is None else n_axes)(x)


def split_dims(x: Any, shape: Any, axis: int = 0) -> TensorVariable:
    """Return `x` with `axis` taken apart, in C order, into axes of the lengths `shape`."""
    x = as_tensor_variable(x)
    place = axis_of(f"Taking apart an axis of {x}", axis, x.type.ndim)
    lengths = lengths_of(shape)
    # No lengths are a vector of integers, too.
    return SplitDims(place)(x, lengths or np.zeros(0, "int64"))
