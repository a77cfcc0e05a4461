"""Places where something is true: as indices, and as an index itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import dimshuffle
from engine.tensor.math import add, floor_div, mod, neq, switch
from engine.tensor.shape import flatten, lengths_of, reshape, shape_i, size_over
from engine.tensor.subtensor import advanced_subtensor1
from engine.tensor.type import tensor_type


class FlatNonzero(Op):
    """The positions, in C order, of what is true: inputs are a mask (bools, of 1 dimension or more), and its lengths.

    How many there are is known only when it is computed. Refuses (IndexError) a mask of other lengths: those of what
    it chooses from.
    """

    __props__ = ()

    def make_node(self, mask: Any, *lengths: Any) -> Apply:
        mask, given = as_tensor_variable(mask), lengths_of(lengths)
        if mask.type.dtype != "bool" or mask.type.ndim == 0 or mask.type.ndim != len(given):
            raise TypeError(
                f"Choosing by the mask {mask} of type {mask.type}, with {len(given)} lengths: it must be of bools, and have "
                "a length for each dimension"
            )
        return Apply(self, [mask, *given], [tensor_type("int64", (None,)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        mask, *lengths = inputs
        for axis, (found, due) in enumerate(zip(mask.shape, lengths, strict=True)):
            if found != due:
                raise IndexError(mismatch("Computing FlatNonzero", axis, due, found))
        output_storage[0][0] = np.flatnonzero(mask).astype("int64", copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None] * len(inputs)


def mismatch(what: str, axis: int, due: Any, found: Any) -> str:
    """What to say of a mask that does not fit: in numpy's words."""
    return (
        f"{what}: boolean index did not match indexed array along axis {axis}; size of axis is {due} but size of "
        f"corresponding boolean axis is {found}"
    )


def _flat_positions(mask: Any, lengths: Sequence[Any]) -> Any:
    return FlatNonzero().make_node(mask, *lengths).outputs[0]


def _as_mask(x: Any) -> Any:
    x = as_tensor_variable(x)
    if x.type.ndim == 0:
        raise ValueError(f"Finding where {x} is not 0: it has no dimensions")
    return x if x.type.dtype == "bool" else neq(x, 0)


def nonzero(x: Any) -> tuple[Any, ...]:
    """The indices of what is not 0 in `x`, in C order: an int64 vector for each axis. Refuses (ValueError) no axes."""
    mask = _as_mask(x)
    return positions_by_axis(mask, [shape_i(mask, axis) for axis in range(mask.type.ndim)])


def flatnonzero(x: Any) -> Any:
    """The positions of what is not 0 in `x` flattened, an int64 vector. Refuses (ValueError) no axes."""
    mask = flatten(_as_mask(x))
    return _flat_positions(mask, [shape_i(mask, 0)])


def positions_by_axis(mask: Any, lengths: Sequence[Any]) -> tuple[Any, ...]:
    """The indices of what is true, a vector for each axis; the mask must have these `lengths`."""
    flat = _flat_positions(mask, lengths)
    found = []
    for length in list(lengths)[:0:-1]:
        found.append(mod(flat, length))
        flat = floor_div(flat, length)
    return (flat, *found[::-1])


def where(condition: Any, ift: Any = None, iff: Any = None) -> Any:
    """`ift` where `condition` is true, `iff` elsewhere, element by element; without both, `nonzero(condition)`."""
    if ift is None and iff is None:
        return nonzero(condition)
    if ift is None or iff is None:
        raise ValueError("Choosing by a condition: give both ift and iff, or none of them")
    return switch(condition, ift, iff)


def is_mask(item: Any) -> bool:
    """Whether an index chooses by bools: a tensor, an array or a list of them that has a dimension."""
    if isinstance(item, Variable):
        return getattr(item.type, "dtype", None) == "bool" and getattr(item.type, "ndim", 0) > 0
    if isinstance(item, np.ndarray):
        return item.dtype == bool and item.ndim > 0
    return isinstance(item, list | tuple) and bool(item) and all(map(_is_truth, item))


def _is_truth(item: Any) -> bool:
    return isinstance(item, bool | np.bool_) or is_mask(item)


def chosen(x: Any, mask: Any) -> Any:
    """The parts of `x` where `mask`, over its first axes, is true, as rows. Refuses (IndexError) more axes than `x` has."""
    mask = as_tensor_variable(mask)
    count = mask.type.ndim
    if count > x.type.ndim:
        raise IndexError(
            f"Indexing {x} of type {x.type} by a mask of type {mask.type}: too many indices, {count} for {x.type.ndim} "
            "dimensions"
        )
    rows = x
    if count > 1:
        kept = [shape_i(x, axis) for axis in range(count, x.type.ndim)]
        rows = reshape(x, [size_over(x, range(count)), *kept])
    positions = _flat_positions(mask, [shape_i(x, axis) for axis in range(count)])
    found = advanced_subtensor1.make_node(rows, positions).outputs[0]
    found.tag.indexed, found.tag.mask = x, mask
    return found


def changed_where(x: Any, mask: Any, value: Any, sets: bool) -> Any:
    """`x` with `value` set or added where `mask`, over its first axes, is true: one value, or one for what lies behind."""
    count = mask.type.ndim
    rest = range(1, value.type.ndim)
    spread = dimshuffle(value, ["x"] * count + list(rest))
    wide = dimshuffle(mask, [*range(count), *["x"] * (x.type.ndim - count)])
    return switch(wide, spread if sets else add(x, spread), x)
