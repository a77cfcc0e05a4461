"""Boolean masks: the positions where they are true, and indexing by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import dimshuffle
from engine.tensor.joining import stack
from engine.tensor.math import add, floor_div, mod, neq, switch
from engine.tensor.shape import flatten, lengths_along, lengths_of, shape_i
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class FlatNonzero(Op):
    """The flat positions, in C order, where a mask is true. Inputs: a boolean tensor and the lengths it
    must have.

    The result's length is known before the function runs only for a constant. Raises IndexError if the
    mask has other lengths, which are those of the tensor that it indexes.
    """

    __props__ = ()

    def make_node(self, mask: Any, *lengths: Any) -> Apply:
        mask, given = as_tensor_variable(mask), lengths_of(lengths)
        if mask.type.dtype != "bool" or mask.type.ndim == 0 or mask.type.ndim != len(given):
            raise TypeError(
                f"Choosing by the mask {mask} of type {mask.type}, with {len(given)} lengths: it must be "
                "of bools, and have a length for each dimension"
            )
        count = int(np.count_nonzero(mask.data)) if isinstance(mask, Constant) else None
        return Apply(self, [mask, *given], [tensor_type("int64", (count,)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        mask, *lengths = inputs
        for axis, (found, due) in enumerate(zip(mask.shape, lengths, strict=True)):
            if found != due:
                raise IndexError(f"Computing FlatNonzero: {mismatch(axis, due, found)}")
        output_storage[0][0] = np.flatnonzero(mask).astype("int64", copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None] * len(inputs)


def mismatch(axis: int, due: Any, found: Any) -> str:
    """Return numpy's message for a mask that does not fit."""
    return (
        f"boolean index did not match indexed array along axis {axis}; size of axis is {due} but size of "
        f"corresponding boolean axis is {found}"
    )


def positions_of(mask: Any, lengths: Sequence[Any]) -> Any:
    """Return the flat positions where `mask` is true; the mask must have these `lengths`."""
    return FlatNonzero().make_node(mask, *lengths).outputs[0]


def _as_mask(x: Any) -> Any:
    x = as_tensor_variable(x)
    if x.type.ndim == 0:
        raise ValueError(f"Finding where {x} is not 0: it has no dimensions")
    return x if x.type.dtype == "bool" else neq(x, 0)


def nonzero(a: Any, return_matrix: bool = False) -> Any:
    """Return the indices of the nonzero elements of `a` in C order, an int64 vector per axis.

    They are a tuple, or with `return_matrix` the rows of a matrix. Raises ValueError for a tensor without
    axes.
    """
    mask = _as_mask(a)
    found = positions_by_axis(mask, lengths_along(mask))
    return stack(found) if return_matrix else found


def flatnonzero(a: Any) -> TensorVariable:
    """Return the positions of nonzero elements of the flattened `a`. Raises ValueError without axes."""
    mask = flatten(_as_mask(a))
    return positions_of(mask, [shape_i(mask, 0)])


def positions_by_axis(mask: Any, lengths: Sequence[Any]) -> tuple[Any, ...]:
    """Return the indices where `mask` is true, a vector per axis; the mask must have these `lengths`."""
    flat = positions_of(mask, lengths)
    found = []
    for length in list(lengths)[:0:-1]:
        found.append(mod(flat, length))
        flat = floor_div(flat, length)
    return (flat, *found[::-1])


def where(cond: Any, ift: Any = None, iff: Any = None) -> Any:
    """Return `ift` where `cond` is true and `iff` elsewhere; without both, `nonzero(cond)`."""
    if ift is None and iff is None:
        return nonzero(cond)
    if ift is None or iff is None:
        raise ValueError("Choosing by a condition: give either both ift and iff, or none of them")
    return switch(cond, ift, iff)


def is_mask(item: Any) -> bool:
    """Return True if `item` is a boolean tensor, array or list with at least one dimension."""
    if isinstance(item, Variable):
        return getattr(item.type, "dtype", None) == "bool" and getattr(item.type, "ndim", 0) > 0
    if isinstance(item, np.ndarray):
        return item.dtype == bool and item.ndim > 0
    return isinstance(item, list | tuple) and bool(item) and all(map(_is_truth, item))


def _is_truth(item: Any) -> bool:
    return isinstance(item, bool | np.bool_) or is_mask(item)


def changed_where(x: Any, mask: Any, value: Any, sets: bool) -> Any:
    """Return `x` with `value` set or added where `mask`, over its first axes, is true.

    `value` is the same for all places; it may differ along the other axes.
    """
    count = mask.type.ndim
    rest = range(1, value.type.ndim)
    spread = dimshuffle(value, ["x"] * count + list(rest))
    wide = dimshuffle(mask, [*range(count), *["x"] * (x.type.ndim - count)])
    return switch(wide, spread if sets else add(x, spread), x)
