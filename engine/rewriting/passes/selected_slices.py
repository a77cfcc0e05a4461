"""Index arrays that select what a slice, or a diagonal, selects: views, where a selection is a copy.

The places must be known to be there: a slice is cut where an array is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.inner.diagonals import diagonal
from engine.rewriting.index_facts import WHOLE, Index, indexed, indices_of, integers_in, range_of
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedSubtensor
from engine.tensor.conversion import number
from engine.tensor.index_entries import slice_entry
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.type import is_data


@node_rewriter([AdvancedSubtensor])
def local_adv_idx_to_slice(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[[2, 4, 6]] -> x[2:8:2], for one vector of an index, of a tensor that has these places."""
    op, (x, *numbers) = node.op, node.inputs
    assert isinstance(op, AdvancedSubtensor)
    indices = indices_of(x, op.entries, numbers)
    if indices is None or len(integers_in(indices)) != 1:
        return None
    (axis,) = integers_in(indices)
    places, length = _places(indices[axis][1][0]), tensor_type_of(x).shape[axis]
    if places is None or length is None or not places or not _are_within(places, length):
        return None
    indices[axis] = as_slice(places, length)
    result = indexed(x, indices)
    return typed(node, result)


def _places(index: Any) -> range | None:
    """Return the numbers of a vector if they are known, and a range; otherwise None."""
    found = range_of(index)
    if found is not None:
        start, stop, step = [scalar_value(v) for v in found[:3]]
        known = None not in (start, stop, step)
        return range(start + found[3], stop + found[3], step) if known else None
    if not isinstance(index, Constant) or is_data(index) or index.data.ndim != 1 or index.data.size < 2:
        return None
    steps = np.diff(index.data.astype("int64"))
    if not steps[0] or np.any(steps != steps[0]):
        return None
    first, step = int(index.data[0]), int(steps[0])
    return range(first, first + step * index.data.size, step)


def _are_within(places: range, length: int) -> bool:
    return min(places) >= 0 and max(places) < length


def as_slice(places: range, length: int) -> Index:
    """Return the slice of an axis of this `length` that selects `places`."""
    start: int | None = places.start
    stop: int | None = places[-1] + places.step
    assert stop is not None
    if stop < 0 or stop >= length:
        stop = None
    if places.step > 0 and start == 0:
        start = None
    step = None if places.step == 1 else places.step
    bounds = [start, stop, step]
    if bounds == [None] * 3:
        return WHOLE
    return slice_entry(*bounds), tuple([number(bound, "int64") for bound in bounds if bound is not None])


@node_rewriter([AdvancedSubtensor])
def local_adv_idx_to_diagonal(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[[0, 1, 2], [0, 1, 2]] -> diagonal(x), for all places of a diagonal of the last two axes."""
    op, (x, *numbers) = node.op, node.inputs
    assert isinstance(op, AdvancedSubtensor)
    indices, ndim = indices_of(x, op.entries, numbers), tensor_type_of(x).ndim
    if indices is None or ndim < 2 or integers_in(indices) != [ndim - 2, ndim - 1]:
        return None
    if any(index != WHOLE for index in indices[:-2]):
        return None
    rows, columns = [_places(index[1][0]) for index in indices[-2:]]
    lengths = tensor_type_of(x).shape[-2:]
    if rows is None or columns is None or None in lengths:
        return None
    offset = columns.start - rows.start
    if rows != _rows_of_diagonal(offset, lengths) or columns != range(
        rows.start + offset, rows.stop + offset
    ):
        return None
    result = diagonal(x, offset, ndim - 2, ndim - 1)
    return typed(node, result)


def _rows_of_diagonal(offset: int, lengths: Any) -> range:
    first = max(-offset, 0)
    return range(first, max(first, min(lengths[0], lengths[1] - offset)))


SELECTED_SLICES = (local_adv_idx_to_slice, local_adv_idx_to_diagonal)
