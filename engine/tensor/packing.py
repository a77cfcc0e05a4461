"""Tensors taken apart along an axis and put together, with reshaping and broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine.graph.variables import Constant
from engine.tensor.axes import axes_of, axis_of, numbers_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.joining import join
from engine.tensor.known_lengths import known_length
from engine.tensor.math import ge, mul, switch
from engine.tensor.rearranging import broadcast_to, divided_axis, merged_axes
from engine.tensor.shape import MakeVector, folded_shape_i, lengths_of, reshape, shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


def divided(x: Any, lengths: Sequence[Any], axis: int) -> list[Any]:
    """Return the parts of `x` along `axis` that have `lengths`.

    Raises ValueError, when the function runs if not before, for a negative length and if they do not add up
    to that of `x`.
    """
    sizes = [int(size.data) if isinstance(size, Constant) else size for size in lengths]
    length = x.type.shape[axis]
    known = [size for each in sizes if (size := _if_known(each)) is not None]
    are_known = len(known) == len(sizes) and length is not None
    if min(known, default=0) < 0 or (are_known and sum(known) != length):
        raise ValueError(f"Splitting an axis of length {length} into {sizes}: they do not add up to it")
    parts: list[Any] = []
    start = 0
    for size in sizes:
        stop = start + size
        is_last = len(parts) == len(sizes) - 1
        part = x[(*(slice(None),) * axis, slice(start, None if is_last else stop))]
        parts.append(part if are_known else _of_length(part, axis, size))
        start = stop
    return parts


def _if_known(size: Any) -> int | None:
    return size if isinstance(size, int) else known_length(size)


def _of_length(part: Any, axis: int, length: Any) -> Any:
    """Return `part`, which raises ValueError when the function runs unless it is so long along `axis`."""
    # A length of -2 is refused; one of -1 would be computed.
    due = length if _if_known(length) is not None else switch(ge(length, 0), length, -2)
    lengths = [due if each == axis else shape_i(part, each) for each in range(part.type.ndim)]
    return reshape(part, lengths)


def concat_with_broadcast(tensor_list: Sequence[Any], axis: int = 0) -> TensorVariable:
    """Return tensors of equal rank joined along `axis`; they broadcast along the other axes."""
    tensors = [as_tensor_variable(each) for each in tensor_list]
    if not tensors:
        raise ValueError("Joining tensors: Cannot concatenate an empty list of tensors.")
    ndim = tensors[0].type.ndim
    if any(each.type.ndim != ndim for each in tensors):
        raise TypeError(
            "Joining tensors: Only tensors with the same number of dimensions can be concatenated. "
            f"They have {[each.type.ndim for each in tensors]}"
        )
    place = axis_of("Joining tensors", axis, ndim)

    def common(position: int) -> Any:
        longer = [each for each in tensors if each.type.shape[position] != 1]
        return shape_i((longer or tensors)[-1], position)

    others = {position: common(position) for position in range(ndim) if position != place}

    def spread(tensor: Any) -> Any:
        return broadcast_to(tensor, [others.get(each, shape_i(tensor, each)) for each in range(ndim)])

    return join(place, *[spread(tensor) for tensor in tensors])


def pack(*tensors: Any, keep_axes: Any = None) -> tuple[Any, list[Any]]:
    """Return the tensors flattened and joined to one, and the shapes that `unpack` needs.

    `keep_axes` stay: the first ones (0, 1, ...), the last ones (..., -1), or both; the axes between them
    become one. Lengths that types have are constants in the shapes. Raises ValueError for other axes, and for
    a tensor with too few.
    """
    before, after = kept_axes(keep_axes)
    flat, shapes = [], []
    for position, each in enumerate(map(as_tensor_variable, tensors)):
        count = each.type.ndim - before - after
        if count < 0:
            raise ValueError(
                f"Packing: Input {position} (zero indexed) to pack has {each.type.ndim} dimensions, but "
                f"keep_axes={keep_axes!r} assumes at least {before + after} "
                f"dimension{'s' if before + after > 1 else ''}."
            )
        # What `unpack` gives often replaces the tensors: lengths of theirs must not be asked of it.
        lengths = [folded_shape_i(each, axis) for axis in range(before, before + count)]
        shapes.append(MakeVector("int64")(*lengths))
        flat.append(merged_axes(each, before, count))
    return join(before, *flat), shapes


def kept_axes(keep_axes: Any) -> tuple[int, int]:
    """Return how many of the first axes stay, and how many of the last. Raises ValueError for others."""
    if keep_axes is None:
        return 0, 0
    axes = numbers_of("Packing", keep_axes)
    first, last = [axis for axis in axes if axis >= 0], [axis for axis in axes if axis < 0]
    if not axes or first + last != axes:
        raise ValueError(f"Packing: Negative axes must come after positive ones, found keep_axes={axes}")
    if len(set(axes)) < len(axes):
        raise ValueError(f"Packing: axes must have no duplicates, found keep_axes={axes}")
    if first != sorted(first) or last != sorted(last):
        raise ValueError(f"Packing: Axes must be strictly increasing, found keep_axes={axes}")
    for kind, found, end in (("Positive", first, 0), ("Negative", last, -1)):
        if any(b - a != 1 for a, b in pairwise(found)):
            raise ValueError(f"Packing: {kind} axes must be contiguous, found keep_axes={axes}")
        if found and end not in found:
            raise ValueError(f"Packing: {kind} axes must include {end}, found keep_axes={axes}")
    return len(first), len(last)


def unpack(packed_input: Any, packed_shapes: Sequence[Any], keep_axes: Any = None) -> list[Any]:
    """Return the tensors that `pack` joined to `packed_input`, given their shapes and the same `keep_axes`.

    Raises ValueError if it has not one axis more than those that stay.
    """
    packed = as_tensor_variable(packed_input)
    ndim = packed.type.ndim
    kept = () if keep_axes is None else axes_of("Unpacking", keep_axes, ndim)
    if ndim != len(kept) + 1:
        raise ValueError(f"Unpacking {packed.type}: it has {ndim} dimensions, {len(kept) + 1} are expected")
    (place,) = (axis for axis in range(ndim) if axis not in kept)
    one: Any = 1
    sizes = [reduce(mul, lengths_of(each), one) for each in packed_shapes]
    parts = (
        divided(packed, [as_tensor_variable(size) for size in sizes], place) if len(sizes) > 1 else [packed]
    )
    pairs = zip(parts, packed_shapes, strict=True)
    return [divided_axis(part, lengths_of(each), place) for part, each in pairs]
