"""Axes that are moved, added, repeated and broadcast; elements that are reversed, shifted and padded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from engine.scalar.promotion import INTEGERS
from engine.tensor.axes import axes_of, axis_of
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.conversion import pad as padded_left
from engine.tensor.creation import alloc, zeros
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.joining import concatenate, join, stack
from engine.tensor.math import add, and_, eq, ge, mod, mul, sub, switch
from engine.tensor.quantifiers import all as all_over
from engine.tensor.reduction import cumsum
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import expand_dims, flatten, lengths_along, lengths_of, reshape, shape_i, size_over

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_EVERYTHING, _BACKWARDS = slice(None), slice(None, None, -1)


def moveaxis(a: Any, source: Any, destination: Any) -> TensorVariable:
    """Return `a` with the axes `source` at the positions `destination`; the others keep their order."""
    a = as_tensor_variable(a)
    doing, ndim = f"Moving axes of {a}", a.type.ndim
    taken, put = (axes_of(doing, axes, ndim) for axes in (source, destination))
    if len(taken) != len(put):
        raise ValueError(
            f"{doing}: {len(taken)} axes cannot go to {len(put)} positions; `source` and `destination` "
            "arguments must have the same number of elements"
        )
    order = [axis for axis in range(ndim) if axis not in taken]
    for position, axis in sorted(zip(put, taken, strict=True)):
        order.insert(position, axis)
    return dimshuffle(a, order)


def swapaxes(y: Any, axis1: int, axis2: int) -> TensorVariable:
    """Return `y` with two axes exchanged."""
    y = as_tensor_variable(y)
    first, second = (axis_of(f"Exchanging axes of {y}", axis, y.type.ndim) for axis in (axis1, axis2))
    order = list(range(y.type.ndim))
    order[first], order[second] = second, first
    return dimshuffle(y, order)


def matrix_transpose(x: Any) -> TensorVariable:
    """Return `x` with its last two axes exchanged. Raises ValueError if it has fewer than two."""
    x = as_tensor_variable(x)
    if x.type.ndim < 2:
        raise ValueError(
            f"Transposing matrices in {x} of type {x.type}: Input array must be at least 2-dimensional"
        )
    return swapaxes(x, -1, -2)


def shape_padleft(t: Any, n_ones: int = 1) -> TensorVariable:
    """Return `t` with `n_ones` axes of length 1 in front."""
    return expand_dims(t, range(n_ones))


def shape_padright(t: Any, n_ones: int = 1) -> TensorVariable:
    """Return `t` with `n_ones` axes of length 1 behind."""
    return expand_dims(t, range(-n_ones, 0))


def shape_padaxis(t: Any, axis: int) -> TensorVariable:
    """Return `t` with an axis of length 1 at position `axis` of the result."""
    return expand_dims(t, axis)


def atleast_Nd(arry: Any, *, n: int = 1, left: bool = True) -> TensorVariable:
    """Return `arry` with axes of length 1 in front (behind if not `left`) until it has `n` axes."""
    arry = as_tensor_variable(arry)
    missing = max(n - arry.type.ndim, 0)
    return padded_left(arry, arry.type.ndim + missing) if left else shape_padright(arry, missing)


atleast_1d, atleast_2d, atleast_3d = (partial(atleast_Nd, n=n) for n in (1, 2, 3))


def is_flat(var: Any, ndim: int = 1) -> bool:
    """Return True if `var` has `ndim` axes."""
    return bool(var.type.ndim == ndim)


def broadcast_to(x: Any, shape: Any) -> TensorVariable:
    """Return `x` repeated along axes of static length 1, and along new ones in front, to have `shape`."""
    return alloc(x, *lengths_of(shape))


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Return the arguments repeated so that all have one shape.

    They are repeated along new axes in front and those of static length 1. If other lengths are not equal,
    ValueError is raised, when the function runs if not before.
    """
    tensors = [as_tensor_variable(each) for each in args]
    ndim = max([each.type.ndim for each in tensors], default=0)
    padded = [padded_left(each, ndim) for each in tensors]
    return tuple(reduce(_repeated_like, padded, each) for each in padded)


def _repeated_like(x: Any, other: Any) -> Any:
    """Return `x` with the lengths of `other` along the axes where that has not the static length 1."""
    sources = [x if is_one else other for is_one in other.type.broadcastable]
    due = tuple([source.type.shape[axis] for axis, source in enumerate(sources)])
    is_same = x is other or (None not in due and due == x.type.shape)
    return x if is_same else alloc(x, *[shape_i(source, axis) for axis, source in enumerate(sources)])


def flip(arr: Any, axis: Any = None) -> TensorVariable:
    """Return `arr` with the order of elements reversed along `axis`, one or several, or along all (None)."""
    arr = as_tensor_variable(arr)
    ndim = arr.type.ndim
    axes = range(ndim) if axis is None else axes_of(f"Reversing {arr}", axis, ndim)
    return arr[tuple(_BACKWARDS if each in axes else _EVERYTHING for each in range(ndim))] if ndim else arr


def roll(x: Any, shift: Any, axis: Any = None) -> TensorVariable:
    """Return `x` with elements moved by `shift` places along `axis`; what leaves comes in at the start.

    Without an axis the flattened elements are moved. Of several axes, a tuple, each has its shift, or all
    have the same.
    """
    x = as_tensor_variable(x)
    if isinstance(axis, tuple | list):
        shifts = shift if isinstance(shift, tuple | list) else [shift] * len(axis)
        for each, along in zip(shifts, axis, strict=True):
            x = roll(x, each, along)
        return x
    if axis is None:
        moved = roll(flatten(x), shift, 0)
        return reshape(moved, lengths_along(x))
    place = axis_of(f"Moving elements of {x}", axis, x.type.ndim)
    length = shape_i(x, place)
    start = sub(length, mod(shift, length))
    before = (_EVERYTHING,) * place
    return join(place, x[(*before, slice(start, None))], x[(*before, slice(0, start))])


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Return the slices of `x` along `axis`, without that axis. Raises TypeError if its static length is not
    known.
    """
    return tuple(moveaxis(x, axis, 0))


def repeated(x: Any, times: Any, axis: int) -> Any:
    """Return `x` with each element along `axis` repeated; `times` is a number or has one for each element."""
    if times.type.ndim == 1:
        return x[(*(_EVERYTHING,) * axis, _origins(times, shape_i(x, axis)))]
    lengths = lengths_along(x)
    spread = broadcast_to(expand_dims(x, axis + 1), [*lengths[: axis + 1], times, *lengths[axis + 1 :]])
    lengths[axis] = mul(lengths[axis], cast(times, "int64"))
    return reshape(spread, lengths)


def _origins(times: Any, length: Any) -> Any:
    """Return, for each element of the result, the number of the one that it repeats."""
    times = cast(times, "int64")
    ends, total = cumsum(times), sum_over(times)
    is_valid = and_(eq(shape_i(times, 0), length), all_over(ge(times, 0)))
    # An invalid number of times gives a length of -1, which is refused. Where one ends the next begins.
    borders = zeros((switch(is_valid, add(total, 1), -1),), "int64")[ends].inc(1)
    return cumsum(borders)[:-1]


def tile(A: Any, reps: Any) -> TensorVariable:
    """Return `A` repeated as a whole `reps` times, a number for each axis; axes are added in front."""
    A = as_tensor_variable(A)
    times = _times_of(reps)
    ndim = max(len(times), A.type.ndim)
    times = [number(1, "int64")] * (ndim - len(times)) + times
    A = padded_left(A, ndim)
    lengths = lengths_along(A)
    pairs = [each for pair in zip(times, lengths, strict=True) for each in pair]
    spread = alloc(expand_dims(A, range(0, 2 * ndim, 2)), *pairs)
    return reshape(spread, [mul(*pair) for pair in zip(times, lengths, strict=True)])


def _times_of(reps: Any) -> list[Any]:
    """Return a number of times for each axis. Raises ValueError for an unknown length and for no integers."""
    given = [as_tensor_variable(each) for each in (reps if isinstance(reps, tuple | list) else [reps])]
    if len(given) == 1 and given[0].type.shape == (None,):
        raise ValueError(
            f"Repeating a tensor {reps} times: its length is unknown. Use specify_shape to set the length"
        )
    is_vector = len(given) == 1 and given[0].type.ndim == 1
    if not is_vector and any(each.type.ndim for each in given):
        raise ValueError(
            f"Repeating a tensor {reps!r} times: give a number for each axis, or a vector of them"
        )
    if any(each.type.dtype not in INTEGERS for each in given):
        raise ValueError(f"Repeating a tensor {reps!r} times: give integers")
    return lengths_of(given[0] if is_vector else given)


def horizontal_stack(*tensors: Any) -> TensorVariable:
    """Return matrices side by side."""
    return _side_by_side(tensors, 1)


def vertical_stack(*tensors: Any) -> TensorVariable:
    """Return matrices one below the other."""
    return _side_by_side(tensors, 0)


def _side_by_side(tensors: Sequence[Any], axis: int) -> Any:
    matrices = [as_tensor_variable(each) for each in tensors]
    if len(matrices) < 2 or any(each.type.ndim != 2 for each in matrices):
        raise ValueError(f"Stacking {len(matrices)} tensors: at least two are needed, each of 2 dimensions")
    return concatenate(matrices, axis)


def stacklists(arg: Any) -> TensorVariable:
    """Return the tensors in nested lists as one tensor, with an axis for each level of the lists."""
    return stack([stacklists(each) for each in arg]) if isinstance(arg, list | tuple) else arg


def merged_axes(x: Any, first: int, count: int) -> Any:
    """Return `x` with `count` axes from `first` on merged into one, in C order."""
    lengths = lengths_along(x)
    merged = size_over(x, range(first, first + count))
    return reshape(x, [*lengths[:first], merged, *lengths[first + count :]])


def divided_axis(x: Any, parts: Sequence[Any], axis: int) -> Any:
    """Return `x` with `axis` taken apart, in C order, into axes of the lengths `parts`."""
    lengths = lengths_along(x)
    return reshape(x, [*lengths[:axis], *parts, *lengths[axis + 1 :]])


def slice_at_axis(sl: slice, axis: int) -> tuple[Any, ...]:
    """Return the index that takes the slice `sl` along `axis`, which may be negative."""
    if axis >= 0:
        return (*(_EVERYTHING,) * axis, sl)
    return (..., sl, *(_EVERYTHING,) * (-axis - 1))
