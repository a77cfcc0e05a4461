"""The axes that an index with arrays uses, and the type of what it selects."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from engine.graph.variables import Constant
from engine.tensor.gathering import first_axis
from engine.tensor.index_entries import Entry, parts_of
from engine.tensor.masks import is_mask, mismatch
from engine.tensor.slicing import static_length
from engine.tensor.type import TensorType, tensor_type


def axes_used(item: Any) -> int:
    """Return how many axes an index, a variable, is for."""
    return item.type.ndim if is_mask(item) else 1


def indexed_axes(entries: Sequence[Entry], indices: Sequence[Any]) -> list[int]:
    """Return the axes of the tensor that are indexed by numbers, arrays and masks."""
    found: list[int] = []
    axis = 0
    for index, *_ in parts_of(entries, indices):
        width = 1 if index is None else axes_used(index)
        found += [] if index is None else range(axis, axis + width)
        axis += width
    return found


def kept_axes(x: Any, entries: Sequence[Entry], indices: Sequence[Any]) -> list[int]:
    """Return the other axes of the tensor."""
    indexed = indexed_axes(entries, indices)
    return [axis for axis in range(x.type.ndim) if axis not in indexed]


def selected_type(x: Any, entries: Sequence[Entry], indices: Sequence[Any]) -> TensorType:
    """Return the type of what is selected. Raises IndexError for lengths that cannot fit."""
    lengths, shapes, axis = list(x.type.shape), [], 0
    used = sum(1 if index is None else axes_used(index) for index, *_ in parts_of(entries, indices))
    if used > x.type.ndim:
        raise IndexError(
            f"Indexing {x} of type {x.type}: too many indices for tensor: tensor is "
            f"{x.type.ndim}-dimensional, but {used} were indexed"
        )
    for index, *bounds in parts_of(entries, indices):
        if index is None:
            lengths[axis] = static_length(lengths[axis], bounds)
        elif is_mask(index):
            _check_mask(axis, index, x.type)
        if index is not None:
            shapes.append((_count_true(index),) if is_mask(index) else index.type.shape)
        axis += 1 if index is None else axes_used(index)
    kept = [lengths[axis] for axis in kept_axes(x, entries, indices)]
    axes = indexed_axes(entries, indices)
    before = first_axis(axes) if axes else 0
    return tensor_type(x.type.dtype, (*kept[:before], *_together(shapes), *kept[before:]))


def _check_mask(axis: int, mask: Any, x: TensorType) -> None:
    for offset, found in enumerate(mask.type.shape):
        due = x.shape[axis + offset]
        if None not in (due, found) and due != found:
            raise IndexError(f"Indexing {x}: {mismatch(axis + offset, due, found)}")


def _count_true(mask: Any) -> int | None:
    return int(np.count_nonzero(mask.data)) if isinstance(mask, Constant) else None


def _together(shapes: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    """Return the static shape of index arrays, broadcast. Raises IndexError if they cannot be."""
    found: list[int | None] = []
    for along in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        known = set(along) - {None, 1}
        if len(known) > 1:
            raise IndexError(
                "Indexing a tensor: shape mismatch: indexing tensors could not be broadcast together with "
                f"shapes {list(shapes)}"
            )
        found.append(known.pop() if known else None if None in along else 1)
    return tuple(found[::-1])
