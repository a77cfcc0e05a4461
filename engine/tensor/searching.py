"""Positions in sorted vectors, and elements taken by their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.scalar.promotion import INTEGERS, common_dtype
from engine.tensor.axes import axis_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import arange
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.masks import flatnonzero, nonzero
from engine.tensor.math import clip, mod, sub
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import min as smallest
from engine.tensor.shape import flatten, shape_i
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_EVERYTHING = slice(None)


class SearchsortedOp(Op):
    """The int64 places in a sorted vector where the elements of a tensor belong.

    A place is the number of smaller elements, with `side` "right" of smaller or equal ones. NaN comes last.
    """

    __props__ = ("side",)

    def __init__(self, side: str = "left") -> None:
        if side not in ("left", "right"):
            raise ValueError(f"Searching a sorted vector: side is {side!r}; it must be 'left' or 'right'")
        self.side = side

    def make_node(self, x: Any, v: Any) -> Apply:
        x, v = as_tensor_variable(x), as_tensor_variable(v)
        if x.type.ndim != 1:
            raise ValueError(f"Searching {x} of type {x.type}: it must be a vector")
        dtype = common_dtype(x.type.dtype, v.type.dtype)
        inputs = [cast(x, dtype), cast(v, dtype)]
        return Apply(self, inputs, [tensor_type("int64", v.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, v = inputs
        side: Any = self.side
        output_storage[0][0] = np.asarray(np.searchsorted(x, v, side), "int64")

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None, None]


def searchsorted(x: Any, v: Any, side: str = "left", sorter: Any = None) -> TensorVariable:
    """Return where the elements of `v` belong in the sorted vector `x`; `sorter` has the positions that
    sort it.

    It is the number of elements that are smaller, with `side` "right" smaller or equal. If `x` is not
    sorted, the result means nothing.
    """
    x = as_tensor_variable(x)
    if sorter is not None:
        order = as_tensor_variable(sorter)
        if order.type.ndim != 1 or order.type.dtype not in INTEGERS:
            raise (TypeError if order.type.ndim == 1 else ValueError)(
                f"Searching {x}: the sorter {order} of type {order.type} is no vector of integers"
            )
        x = x[order]
    return SearchsortedOp(side)(x, v)


def take(a: Any, indices: Any, axis: int | None = None, mode: str | None = "raise") -> TensorVariable:
    """Return the elements of `a` along `axis` (of the flattened `a` if None) at the positions `indices`.

    Positions outside raise IndexError (`mode` "raise" or None), or are clipped or wrapped by `mode` "clip"
    and "wrap".
    """
    if mode not in (None, "raise", "clip", "wrap"):
        raise ValueError(f"Taking elements: mode is {mode!r}; it must be 'raise', 'clip' or 'wrap'")
    a, positions = as_tensor_variable(a), as_tensor_variable(indices)
    if axis is None:
        a, axis = flatten(a), 0
    number = axis_of(f"Taking elements of {a}", axis, a.type.ndim)
    if mode == "clip":
        positions = clip(positions, 0, sub(shape_i(a, number), 1))
    elif mode == "wrap":
        positions = mod(positions, shape_i(a, number))
    return a[(*(_EVERYTHING,) * number, positions)]


def take_along_axis(arr: Any, indices: Any, axis: int | None = 0) -> TensorVariable:
    """Return the elements of `arr` whose positions along `axis` are `indices`, a tensor of as many axes."""
    arr, positions = as_tensor_variable(arr), as_tensor_variable(indices)
    if positions.type.dtype not in INTEGERS:
        raise IndexError(f"Taking elements of {arr}: {positions} of type {positions.type} is not of integers")
    if axis is None:
        arr, axis = flatten(arr), 0
    if arr.type.ndim != positions.type.ndim:
        raise ValueError(
            f"Taking elements of {arr.type} along an axis at {positions.type}: their dimensions differ"
        )
    number = axis_of(f"Taking elements of {arr}", axis, arr.type.ndim)
    return arr[tuple(positions if each == number else _along(arr, each) for each in range(arr.type.ndim))]


def _along(x: Any, axis: int) -> Any:
    """Return the positions along an axis, in the shape that broadcasts along the others."""
    return dimshuffle(arange(shape_i(x, axis)), [0 if each == axis else "x" for each in range(x.type.ndim)])


def nonzero_values(a: Any) -> TensorVariable:
    """Return the nonzero elements of `a` in C order."""
    a = as_tensor_variable(a)
    return flatten(a)[flatnonzero(a)]


def compress(condition: Any, x: Any, axis: int | None = None) -> TensorVariable:
    """Return the slices of `x` along `axis` (elements of the flattened `x` if None) where the vector
    `condition` is true.
    """
    (positions,) = nonzero(condition)
    return take(x, positions, axis)


def ptp(a: Any, axis: Any = None) -> TensorVariable:
    """Return the largest element minus the smallest over `axis`."""
    return sub(largest(a, axis), smallest(a, axis))


def get_vector_length(v: Any) -> int:
    """Return the length of a vector, which must be known. Raises ValueError if it is not, or for other
    dimensions.
    """
    if isinstance(v, Variable):
        if v.type.ndim == 1 and v.type.shape[0] is not None:
            return int(v.type.shape[0])
        raise ValueError(
            f"Length of {v} of type {v.type} cannot be determined: it is no vector of known length"
        )
    if isinstance(v, list | tuple):
        return len(v)
    return get_vector_length(as_tensor_variable(v))
