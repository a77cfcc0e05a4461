"""Indexing with numpy's meaning, `x[index]`, and its counterparts `x[index].set(y)` and `.inc(y)`.

New axes come first; then what is left is one Op: a view for integers and slices, or advanced indexing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.variables import Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.elemwise import DimShuffle
from engine.tensor.index_entries import FULL, INTEGER, Entry, is_none, slice_entry
from engine.tensor.masks import changed_where, is_mask
from engine.tensor.slicing import Subtensor, as_part, as_position
from engine.tensor.subtensor import ROWS, AdvancedSubtensor, with_part_changed

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_ALL = slice(None)


def get_item(x: Any, index: Any) -> Any:
    """Return `x[index]`.

    `index` is one index or a tuple of them: integers, slices, None (a new axis), Ellipsis, integer
    lists, arrays or tensors, and boolean masks. Raises TypeError for anything else and IndexError for
    too many indices.
    """
    x = as_tensor_variable(x)
    given = [None if is_none(item) else item for item in (index if isinstance(index, tuple) else (index,))]
    items = _per_axis(x, given)
    variable = _with_new_axes(x, items)
    items = [_ALL if item is None else _checked(x, item) for item in items]
    is_advanced = any(isinstance(item, Variable) and item.type.ndim > 0 for item in items)
    if variable is x or any(item != _ALL for item in items):
        variable = _indexed_by(variable, items, AdvancedSubtensor if is_advanced else Subtensor)
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
    return items[:place] + [_ALL] * missing + items[place + 1 :]


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.type.ndim if is_mask(item) else 1


def _with_new_axes(x: Any, items: Sequence[Any]) -> Any:
    if not any(item is None for item in items):
        return x
    axes = iter(range(x.type.ndim))
    order: list[Any] = []
    for item in items:
        order += ["x"] if item is None else [next(axes) for _ in range(_axes_used(item))]
    return DimShuffle(x.type.ndim, order).make_node(x).outputs[0]


def _checked(x: Any, item: Any) -> Any:
    """Return `item` as a slice or an integer variable."""
    if isinstance(item, slice) or is_mask(item):
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


def _indexed_by(x: Any, items: Sequence[Any], op: type[Subtensor] | type[AdvancedSubtensor]) -> Any:
    """Return `x` indexed by a slice or a variable for each axis, or for each mask."""
    entries: list[Entry] = []
    numbers: list[Any] = []
    for item in items:
        if not isinstance(item, slice):
            entries.append(INTEGER)
            numbers.append(item)
            continue
        parts = [_part(x, part) for part in (item.start, item.stop, item.step)]
        if _is_number(parts[2], 1):
            parts[2] = None
        entries.append(slice_entry(*parts))
        numbers += [part for part in parts if part is not None]
    while op is AdvancedSubtensor and entries[-1] == FULL:
        entries.pop()
    return op(entries).make_node(x, *numbers).outputs[0]


def _part(x: Any, part: Any) -> Any:
    if part is None:
        return None
    found = _checked(x, part)
    if isinstance(found, slice) or found.type.ndim:
        raise _unsupported(x, f"a slice with {part!r} in it")
    return as_position(found)


def _is_number(variable: Any, value: int) -> bool:
    return variable is not None and variable is number(value, "int64")


def set_subtensor(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> TensorVariable:
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
) -> TensorVariable:
    """Return the tensor that the part `x`, `a[index]`, was taken from, with `y` (broadcast) added to it.

    If an index occurs several times, all values are added, or with `ignore_duplicates` the last one alone.
    The other options and errors are as in `set_subtensor`; `set_instead_of_inc` makes it that function.
    """
    return _changed(x, y, set_instead_of_inc, ignore_duplicates)


def advanced_subtensor(x: Any, *index: Any) -> Any:
    """Return `x[index]`."""
    return get_item(x, index)


def advanced_inc_subtensor(x: Any, y: Any, *index: Any, **options: Any) -> Any:
    """Return `x` with `y` added to `x[index]`; `options` are those of `inc_subtensor`."""
    return inc_subtensor(get_item(x, index), y, **options)


def advanced_set_subtensor(x: Any, y: Any, *index: Any, **options: Any) -> Any:
    """Return `x` with `x[index]` set to `y`; `options` are those of `set_subtensor`."""
    return set_subtensor(get_item(x, index), y, **options)


def _changed(part: Any, y: Any, sets: bool, ignore_duplicates: bool = False) -> Any:
    """Return the indexed tensor with `y` set or added."""
    base = _indexed(part)
    value = as_part(y, base.type)
    if value.type.ndim > part.type.ndim:
        raise TypeError(f"Changing {part} of type {part.type} by {value.type}: that has more dimensions")
    value = pad(value, part.type.ndim)
    mask = _only_mask(part, base)
    if mask is not None and value.type.broadcastable[0] and _fits(mask, base):
        return changed_where(base, mask, value, sets)
    return with_part_changed(base, part, value, sets, ignore_duplicates)


def _only_mask(part: Any, base: Any) -> Any:
    """Return the mask if that is the whole index of `part`, taken from `base`, or None."""
    node = part.owner
    if node.inputs[0] is not base:  # the index adds axes
        return None
    if not isinstance(node.op, AdvancedSubtensor) or node.op.entries != ROWS or not is_mask(node.inputs[1]):
        return None
    return node.inputs[1]


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
    if node is None or not isinstance(node.op, Subtensor | AdvancedSubtensor):
        raise TypeError(f"Changing {part}: it must be the result of indexing, as in x[index].set(y)")
    return node.inputs[0]


def _unsupported(x: Any, index: Any) -> TypeError:
    return TypeError(
        f"Indexing {x} by {index if isinstance(index, str) else repr(index)}: only integers (a number, a "
        "list, an array or an integer tensor), masks of bools, slices, None and Ellipsis are supported"
    )
