"""Indexing with numpy's meaning, `x[index]`, and its counterparts `x[index].set(y)` and `.inc(y)`.

An index becomes a chain of operations: new axes, then integers and slices (a view), then integer
arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from engine.graph.variables import Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.creation import alloc
from engine.tensor.elemwise import DimShuffle, dimshuffle
from engine.tensor.masks import changed_where, chosen, is_mask, positions_by_axis
from engine.tensor.math import add, mul
from engine.tensor.shape import flatten, reshape, shape_i, size_over
from engine.tensor.slicing import INTEGER, IncSubtensor, Subtensor, as_part, as_position, slice_entry
from engine.tensor.subtensor import AdvancedIncSubtensor1, AdvancedSubtensor1, WrapIndex, advanced_subtensor1

_ALL = slice(None)


def get_item(x: Any, index: Any) -> Any:
    """Return `x[index]`.

    `index` is one index or a tuple of them: integers, slices, None (a new axis), Ellipsis, integer
    lists, arrays or tensors, and boolean masks. Raises TypeError for anything else and IndexError for
    too many indices.
    """
    x = as_tensor_variable(x)
    if not isinstance(index, tuple) and is_mask(index):
        return chosen(x, index)
    items = _per_axis(x, list(index) if isinstance(index, tuple) else [index])
    variable = _with_new_axes(x, items)
    items = [_ALL if item is None else _checked(x, item) for item in items]
    arrays = any(isinstance(item, Variable) and item.type.ndim > 0 for item in items)
    basic = [item if isinstance(item, slice) or not arrays else _ALL for item in items]
    if not arrays or any(item != _ALL for item in basic):
        variable = _sliced(variable, basic)
    if arrays:
        variable = _gathered(variable, [None if isinstance(item, slice) else item for item in items])
    variable.tag.indexed = x
    return variable


def _per_axis(x: Any, items: list[Any]) -> list[Any]:
    """Return `items` with one item per axis: full slices in place of the ellipsis, or at the end."""
    ellipses = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"Indexing {x}: an index can have one ellipsis, {len(ellipses)} were given")
    items = [as_tensor_variable(item) if is_mask(item) else item for item in items]
    used = sum(_axes_used(item) for item in items)
    missing = x.type.ndim - used
    if missing < 0:
        raise IndexError(
            f"Indexing {x} of type {x.type}: too many indices for tensor: tensor is "
            f"{x.type.ndim}-dimensional, but {used} were indexed"
        )
    place = ellipses[0] if ellipses else len(items)
    return _without_masks(x, items[:place] + [_ALL] * missing + items[place + 1 :])


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.type.ndim if is_mask(item) else 1


def _without_masks(x: Any, items: Sequence[Any]) -> list[Any]:
    """Return `items` with each mask replaced by an integer vector for each of its axes."""
    found: list[Any] = []
    axis = 0
    for item in items:
        if is_mask(item):
            lengths = [shape_i(x, axis + offset) for offset in range(item.type.ndim)]
            found.extend(positions_by_axis(item, lengths))
        else:
            found.append(item)
        axis += _axes_used(item)
    return found


def _with_new_axes(x: Any, items: Sequence[Any]) -> Any:
    if not any(item is None for item in items):
        return x
    axes = iter(range(x.type.ndim))
    order = ["x" if item is None else next(axes) for item in items]
    return DimShuffle(x.type.ndim, order).make_node(x).outputs[0]


def _checked(x: Any, item: Any) -> Any:
    """Return `item` as a slice or an integer variable."""
    if isinstance(item, slice):
        return item
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return number(_fitting(x, int(item)), "int64")
    if isinstance(item, np.ndarray) and item.dtype.name == "uint64":
        item = _fitting(x, item).astype("int64")
    if _is_bool(item):
        raise NotImplementedError(f"Indexing {x} by {item!r}: a single bool is no index here")
    if isinstance(item, str | float):
        raise _unsupported(x, item)
    try:
        index = as_tensor_variable(item, dtype="int64" if _is_empty(item) else None)
    except TypeError as error:
        raise _unsupported(x, item) from error
    if index.type.dtype not in INTEGERS:
        raise _unsupported(x, index.type)
    return index


def _is_bool(item: Any) -> bool:
    if isinstance(item, Variable):
        return bool(getattr(item.type, "dtype", None) == "bool")
    return isinstance(item, bool) or getattr(getattr(item, "dtype", None), "kind", "") == "b"


def _fitting(x: Any, index: Any) -> Any:
    """Return `index`, a number or an array. Raises IndexError for one that int64 cannot hold."""
    if np.size(index) and not -(2**63) <= np.min(index) <= np.max(index) < 2**63:
        raise IndexError(f"Indexing {x} by {index}: that is out of bounds for every axis")
    return index


def _is_empty(item: Any) -> bool:
    """Return True for an empty list, or a list of such. It has no dtype and counts as integers."""
    return isinstance(item, list | tuple) and all(map(_is_empty, item))


def _sliced(x: Any, items: Sequence[Any]) -> Any:
    """Return `x` indexed by a slice or a 0-d integer for each axis."""
    entries, numbers = [], []
    for item in items:
        if not isinstance(item, slice):
            entries.append(INTEGER)
            numbers.append(item)
            continue
        parts = [_part(x, part) for part in (item.start, item.stop, item.step)]
        if _is_number(parts[2], 1):
            parts[2] = None
        if _is_number(parts[0], 0) and parts[2] is None:
            parts[0] = None
        entries.append(slice_entry(*parts))
        numbers += [part for part in parts if part is not None]
    return Subtensor(entries).make_node(x, *numbers).outputs[0]


def _part(x: Any, part: Any) -> Any:
    if part is None:
        return None
    found = _checked(x, part)
    if isinstance(found, slice) or found.type.ndim:
        raise _unsupported(x, f"a slice with {part!r} in it")
    return as_position(found)


def _is_number(variable: Any, value: int) -> bool:
    return variable is not None and variable is number(value, "int64")


def _gathered(x: Any, items: Sequence[Any]) -> Any:
    """Return `x` indexed by an integer variable, or by None (all), for each axis.

    The indexed axes are moved to the front and merged into one, from which rows are taken. The index's
    own axes end up where the indexed axes were, or in front if these were not adjacent.
    """
    ndim = x.type.ndim
    axes = [axis for axis, item in enumerate(items) if item is not None]
    rest = [axis for axis, item in enumerate(items) if item is None]
    kept = [shape_i(x, axis) for axis in rest]
    index = items[0] if axes == [0] else _row_numbers(x, items, axes)
    rows = x
    if axes != list(range(len(axes))):
        rows = DimShuffle(ndim, axes + rest).make_node(rows).outputs[0]
    if len(axes) > 1:
        rows = reshape(rows, [size_over(x, axes), *kept])
    taken = advanced_subtensor1.make_node(rows, flatten(index)).outputs[0]
    count = index.type.ndim
    if count != 1:
        taken = reshape(taken, [shape_i(index, axis) for axis in range(count)] + kept)
    before = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    if before == 0:
        return taken
    order = [*range(count, count + before), *range(count), *range(count + before, count + len(rest))]
    return DimShuffle(len(order), order).make_node(taken).outputs[0]


def _row_numbers(x: Any, items: Sequence[Any], axes: Sequence[int]) -> Any:
    """Return the row numbers, in the merged axes `axes`, of the elements that `items` select."""
    _check_shapes([items[axis].type.shape for axis in axes])
    result = None
    for axis in axes:
        length = shape_i(x, axis)
        wrapped = WrapIndex(axis).make_node(items[axis], length).outputs[0]
        result = wrapped if result is None else add(mul(result, length), wrapped)
    return result


def _check_shapes(shapes: Sequence[tuple[int | None, ...]]) -> None:
    """Raise IndexError if index arrays of these static shapes cannot be broadcast together."""
    for along in zip_longest(*(shape[::-1] for shape in shapes)):
        if len(set(along) - {None, 1}) > 1:
            raise IndexError(
                "Indexing a tensor: shape mismatch: indexing tensors could not be broadcast together with "
                f"shapes {list(shapes)}"
            )


def set_subtensor(x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> Any:
    """Return the tensor that the part `x`, `a[index]`, was taken from, with that part set to `y` (broadcast).

    If an index occurs several times, the last value wins. A rewrite overwrites the tensor itself where
    nothing needs the old one, whatever `inplace` and `tolerate_inplace_aliasing` say. Raises TypeError if
    `x` is not a result of indexing, or has fewer dimensions than `y`.
    """
    return _changed(x, y, sets=True)


def inc_subtensor(
    x: Any,
    y: Any,
    inplace: bool = False,
    set_instead_of_inc: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> Any:
    """Return the tensor that the part `x`, `a[index]`, was taken from, with `y` (broadcast) added to it.

    If an index occurs several times, all values are added, or with `ignore_duplicates` the last one alone.
    The other options and errors are as in `set_subtensor`; `set_instead_of_inc` makes it that function.
    """
    if ignore_duplicates and not set_instead_of_inc:
        _indexed(x)
        return _changed(x, add(x, y), sets=True)
    return _changed(x, y, sets=set_instead_of_inc)


def advanced_subtensor(x: Any, *index: Any) -> Any:
    """Return `x[index]`."""
    return get_item(x, index)


def advanced_inc_subtensor(x: Any, y: Any, *index: Any, **options: Any) -> Any:
    """Return `x` with `y` added to `x[index]`; `options` are those of `inc_subtensor`."""
    return inc_subtensor(get_item(x, index), y, **options)


def advanced_set_subtensor(x: Any, y: Any, *index: Any, **options: Any) -> Any:
    """Return `x` with `x[index]` set to `y`; `options` are those of `set_subtensor`."""
    return set_subtensor(get_item(x, index), y, **options)


def _changed(part: Any, y: Any, sets: bool) -> Any:
    """Return the indexed tensor with `y` set or added.

    Walks back from `part` through the operations that made it, and inverts each.
    """
    base = _indexed(part)
    value = as_part(y, base.type)
    if value.type.ndim > part.type.ndim:
        raise TypeError(f"Changing {part} of type {part.type} by {value.type}: that has more dimensions")
    value = pad(value, part.type.ndim)
    mask = getattr(part.tag, "mask", None)
    if mask is not None and value.type.broadcastable[0] and _fits(mask, base):
        return changed_where(base, mask, value, sets)
    while part is not base:
        op, (x, *numbers) = part.owner.op, part.owner.inputs
        if isinstance(op, Subtensor):
            value = IncSubtensor(op.entries, sets).make_node(x, value, *numbers).outputs[0]
            sets = True
        elif isinstance(op, AdvancedSubtensor1):
            rows = value if value.type.broadcastable == part.type.broadcastable else _spread(value, part)
            value = AdvancedIncSubtensor1(sets).make_node(x, rows, *numbers).outputs[0]
            sets = True
        elif isinstance(op, DimShuffle):
            value = dimshuffle(value, [op.new_order.index(axis) for axis in range(x.type.ndim)])
        else:
            value = reshape(_spread(value, part), [shape_i(x, axis) for axis in range(x.type.ndim)])
        part = x
    return value


def _fits(mask: Any, base: Any) -> bool:
    """Return True if no axis of `mask` broadcasts against an axis of `base`."""
    lengths = zip(mask.type.broadcastable, base.type.broadcastable, strict=False)
    return all(not of_mask or of_base for of_mask, of_base in lengths)


def _indexed(part: Any) -> Any:
    """Return the tensor that `part` was taken from."""
    base = getattr(getattr(part, "tag", None), "indexed", None)
    if base is not None:
        return base
    node = getattr(part, "owner", None)
    if node is None or not isinstance(node.op, Subtensor | AdvancedSubtensor1):
        raise TypeError(f"Changing {part}: it must be the result of indexing, as in x[index].set(y)")
    return node.inputs[0]


def _spread(value: Any, part: Any) -> Any:
    """Return `value` broadcast to the shape of `part`."""
    return alloc(value, *[shape_i(part, axis) for axis in range(part.type.ndim)])


def _unsupported(x: Any, index: Any) -> TypeError:
    return TypeError(
        f"Indexing {x} by {index if isinstance(index, str) else repr(index)}: only integers (a number, a "
        "list, an array or an integer tensor), masks of bools, slices, None and Ellipsis are supported"
    )
