"""`x[index]` with numpy's meaning: numbers, slices, new axes, an ellipsis, and arrays of integers.

An index is taken apart into operations that each do one thing: new axes, then numbers and slices (a view), then arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.variables import Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.elemwise import DimShuffle, cast
from engine.tensor.shape import flatten, reshape, shape_i
from engine.tensor.slicing import INTEGER, Subtensor, slice_entry
from engine.tensor.subtensor import advanced_subtensor1

_ALL = slice(None)


def get_item(x: Any, index: Any) -> Any:
    """`x[index]`: an index for each axis, or a tuple of them.

    An index is an integer, a slice, None (a new axis), Ellipsis, or integers as a list, an array or a tensor.
    Refuses (TypeError) everything else, masks included; (IndexError) more indices than axes.
    """
    x = as_tensor_variable(x)
    items = _per_axis(x, list(index) if isinstance(index, tuple) else [index])
    variable = _with_new_axes(x, items)
    items = [_ALL if item is None else _checked(x, item) for item in items]
    arrays = any(isinstance(item, Variable) and item.type.ndim > 0 for item in items)
    basic = [item if isinstance(item, slice) or not arrays else _ALL for item in items]
    if not arrays or any(item != _ALL for item in basic):
        variable = _sliced(variable, basic)
    if arrays:
        variable = _gathered(variable, [None if isinstance(item, slice) else item for item in items])
    return variable


def _per_axis(x: Any, items: list[Any]) -> list[Any]:
    """`items` with as many full slices for the ellipsis, or at the end, as make one for each axis."""
    ellipses = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"Indexing {x}: an index can have one ellipsis, {len(ellipses)} were given")
    used = sum(item is not None and item is not Ellipsis for item in items)
    missing = x.type.ndim - used
    if missing < 0:
        raise IndexError(
            f"Indexing {x} of type {x.type}: too many indices, {used} for {x.type.ndim} dimensions"
        )
    place = ellipses[0] if ellipses else len(items)
    return items[:place] + [_ALL] * missing + items[place + 1 :]


def _with_new_axes(x: Any, items: Sequence[Any]) -> Any:
    if not any(item is None for item in items):
        return x
    axes = iter(range(x.type.ndim))
    order = ["x" if item is None else next(axes) for item in items]
    return DimShuffle(x.type.ndim, order).make_node(x).outputs[0]


def _checked(x: Any, item: Any) -> Any:
    """`item`: a slice, or an integer variable."""
    if isinstance(item, slice):
        return item
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return number(int(item), "int64")
    if isinstance(item, str | bool | float):
        raise _unsupported(x, item)
    try:
        index = as_tensor_variable(item, dtype="int64" if isinstance(item, list) and not item else None)
    except TypeError as error:
        raise _unsupported(x, item) from error
    if index.type.dtype not in INTEGERS:
        raise _unsupported(x, index.type)
    return index


def _sliced(x: Any, items: Sequence[Any]) -> Any:
    """`x` indexed by a slice, or an integer of 0 dimensions, for each axis."""
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
    return cast(found, "int64")


def _is_number(variable: Any, value: int) -> bool:
    return variable is not None and variable is number(value, "int64")


def _gathered(x: Any, items: Sequence[Any]) -> Any:
    """`x` indexed by an integer variable, or nothing, for each axis."""
    if any(item is not None for item in items[1:]):
        raise _unsupported(x, "arrays along other axes than the first")
    index = items[0]
    if index.type.ndim == 1:
        return advanced_subtensor1.make_node(x, index).outputs[0]
    rows = advanced_subtensor1.make_node(x, flatten(index)).outputs[0]
    lengths = [shape_i(index, axis) for axis in range(index.type.ndim)]
    return reshape(rows, lengths + [shape_i(x, axis) for axis in range(1, x.type.ndim)])


def _unsupported(x: Any, index: Any) -> TypeError:
    return TypeError(
        f"Indexing {x} by {index if isinstance(index, str) else repr(index)}: only integers (a number, a list, an "
        "array or an integer tensor), slices, None and Ellipsis are supported; a mask is not, use where"
    )
