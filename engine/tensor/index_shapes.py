"""Slices in canonical form, and the lengths of what an index selects, without indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.constant_values import get_underlying_scalar_constant_value
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.creation import alloc
from engine.tensor.indexing import get_item
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, floor_div, lt, maximum, minimum, mul, sign, sub, switch
from engine.tensor.shape import lengths_along, lengths_of


def get_canonical_form_slice(theslice: Any, length: Any) -> tuple[Any, Any]:
    """Return the slice of an axis of `length` elements with 0 <= start <= stop <= length and a positive step,
    and 1, or -1 if what it selects must be reversed. Of an integer, return it without a sign, and 1.

    The numbers may be 0-d integer variables. Raises ValueError for anything else.
    """
    length = _number(length)
    if not isinstance(theslice, slice):
        index = _number(theslice)
        if isinstance(index, int):
            return (add(index, length) if index < 0 else index), 1
        return switch(lt(index, 0), add(index, length), index), 1
    given = [
        None if part is None else _number(part) for part in (theslice.start, theslice.stop, theslice.step)
    ]
    if all(part is None or isinstance(part, int) for part in (*given, length)):
        return _of_numbers(range(*slice(*given).indices(length)))
    start, stop, step = given
    return _of_variables(start, stop, step, length)


def _number(value: Any) -> Any:
    """Return an integer as an int if it is known, else as a 0-d variable."""
    if isinstance(value, Constant):
        value = np.asarray(value.data)[()]
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    dtype = getattr(value.type, "dtype", None) if isinstance(value, Variable) else None
    if dtype not in INTEGERS or value.type.ndim:
        raise ValueError(f"Normalizing a slice: Slice {value} is not a supported slice type: give integers")
    return value


def _of_numbers(selected: range) -> tuple[slice, int]:
    if not selected:
        return slice(0, 0, abs(selected.step)), 1
    first, last = sorted((selected[0], selected[-1]))
    return slice(first, last + 1, abs(selected.step)), 1 if selected.step > 0 else -1


def _of_variables(start: Any, stop: Any, step: Any, length: Any) -> tuple[slice, Any]:
    """Return the slice and direction, by Python's rules for bounds beyond the ends."""
    step = 1 if step is None else step
    is_back = lt(step, 0)
    lowest = switch(is_back, -1, 0)
    highest = switch(is_back, sub(length, 1), length)

    def within(bound: Any) -> Any:
        counted = switch(lt(bound, 0), add(bound, length), bound)
        return minimum(maximum(counted, lowest), highest)

    start = switch(is_back, highest, lowest) if start is None else within(start)
    stop = switch(is_back, lowest, highest) if stop is None else within(stop)
    size = absolute(step)
    way = switch(is_back, sub(start, stop), sub(stop, start))
    before_last = floor_div(sub(maximum(way, 0), 1), size)  # -1 if nothing is selected
    far = add(start, mul(before_last, step))
    first = switch(lt(before_last, 0), 0, minimum(start, far))
    after = switch(lt(before_last, 0), 0, add(maximum(start, far), 1))
    return slice(first, after, size), sign(step)


def basic_shape(shape: Sequence[Any], indices: Sequence[slice | None]) -> tuple[Any, ...]:
    """Return the lengths, 0-d int64s, that slices select from axes of lengths `shape`; None adds a 1.

    Axes behind the last slice are left out. Raises ValueError for other indices.
    """
    if not all(index is None or isinstance(index, slice) for index in indices):
        raise ValueError(f"Slicing axes of lengths {shape} by {indices}: only slices and None are supported")
    n_indexed = sum(index is not None for index in indices)
    return indexed_result_shape(shape[:n_indexed], indices)


def as_index_constant(a: Any) -> Any:
    """Return the numbers in an index as 0-d int64 constants, lists and arrays as tensors."""
    if isinstance(a, slice):
        return slice(*[as_index_constant(part) for part in (a.start, a.stop, a.step)])
    if isinstance(a, int | np.integer):
        return number(int(a), "int64")
    return a if a is None else as_tensor_variable(a)


def as_index_literal(idx: Any) -> Any:
    """Return the constants in an index, a slice, a number or None, as ints.

    Raises NotScalarConstantError for a variable that is no constant, and TypeError for other objects.
    """
    if idx is None or isinstance(idx, int | np.integer):
        return idx
    if isinstance(idx, slice):
        return slice(*[as_index_literal(part) for part in (idx.start, idx.stop, idx.step)])
    if not isinstance(idx, Variable):
        raise TypeError(f"Reading an index: {idx!r} is neither a slice, a number nor a variable")
    return int(get_underlying_scalar_constant_value(idx))


def indexed_result_shape(
    array_shape: Any, indices: Sequence[Any], indices_are_shapes: bool = False
) -> tuple[Any, ...]:
    """Return the lengths, 0-d int64s, of `x[indices]` for an `x` of the shape `array_shape`.

    With `indices_are_shapes`, tuples in `indices` are the shapes of index arrays.
    """
    x = alloc(False, *lengths_of(array_shape))
    if indices_are_shapes:
        indices = [alloc(0, *index) if isinstance(index, tuple) else index for index in indices]
    found = get_item(x, tuple(indices))
    return tuple(lengths_along(found))
