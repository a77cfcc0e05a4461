"""Parts of a tensor that was changed at constant places: what was written there, or what was there before.

`x[[0, 2]].set(y)[[2, 1]]` is x[[2, 1]] with y[1] at its first place: nothing is as long as x. Every check
stays: the length of x is known, or the read of x refuses what the write would have refused; and what was
written has the length that is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.index_facts import WHOLE, Index, indexed, only_user
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor, Subtensor
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import constant, number
from engine.tensor.index_entries import FULL, INTEGER, parts_of
from engine.tensor.masks import is_mask
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.type import is_data

NOTHING: Index = (":b", (number(0, "int64"),))


class _Places(Struct, frozen=True):
    """The places along the only axis that an index of constants selects from."""

    axis: int
    index: Index
    places: list[int]
    due: int
    """The number of elements that the axis must have: at least, or of a mask exactly."""

    is_mask: bool = False

    @property
    def is_one(self) -> bool:
        """True for an integer: what it selects does not have the axis."""
        return self.index[0] == INTEGER and tensor_type_of(self.index[1][0]).ndim == 0

    def of(self, x: Any) -> Any:
        """Return what the index selects of `x`."""
        return _along(x, self.axis, self.index)


@node_rewriter([AdvancedSubtensor, Subtensor])
def local_advanced_read_of_write_constant_indices(
    fgraph: FunctionGraph, node: Apply
) -> list[Variable] | None:
    """x[[0, 2]].set(y)[[2, 1]] -> x[[2, 1]][[0]].set(y[[1]]); the same of inc, of a slice, of an integer."""
    source, op = only_user(fgraph, node), node.op
    if source is None or not isinstance(source.op, AdvancedIncSubtensor) or source.op.ignore_duplicates:
        return None
    assert isinstance(op, AdvancedSubtensor | Subtensor)
    (x, y), is_set = source.inputs[:2], source.op.set_instead_of_inc
    shape = tensor_type_of(x).shape
    written = _constant_places(source.op.entries, source.inputs[2:], shape)
    read = _constant_places(op.entries, node.inputs[1:], shape)
    if written is None or read is None or read.axis != written.axis:
        return None
    if not is_set and len(set(written.places)) < len(written.places):
        return None
    base = _checked(x, written, read, is_read=not is_set or not set(read.places) <= set(written.places))
    value = _of_length(y, written, x)
    result = None if base is None or value is None else _part(base, value, written, read, is_set)
    return None if result is None else typed(node, result)


def _constant_places(
    entries: Sequence[str], numbers: Sequence[Variable], shape: Sequence[int | None]
) -> _Places | None:
    """Return the places that an index of constants selects along the only axis that it indexes, or None."""
    if any(tensor_type_of(v).ndim > 1 for v in numbers):
        return None
    parts = [tuple([part for part in found if part is not None]) for found in parts_of(entries, numbers)]
    indices = list(zip(entries, parts, strict=True))
    axes = [axis for axis, index in enumerate(indices) if index != WHOLE]
    if len(axes) != 1:
        return None
    found = _of_array if entries[axes[0]] == INTEGER else _of_slice
    return found(axes[0], indices[axes[0]], shape[axes[0]])


def _of_slice(axis: int, index: Index, length: int | None) -> _Places | None:
    values = [scalar_value(bound) for bound in index[1]]
    if length is None or None in values:
        return None
    ((_, *bounds),) = parts_of([index[0]], values)
    return _Places(axis, index, list(range(length)[slice(*bounds)]), 0)


def _of_array(axis: int, index: Index, length: int | None) -> _Places | None:
    (array,) = index[1]
    if not isinstance(array, Constant) or is_data(array):
        return None
    if is_mask(array):
        return _Places(axis, index, np.flatnonzero(array.data).tolist(), array.data.size, is_mask=True)
    places = [place + (length or 0) if place < 0 else place for place in array.data.ravel().tolist()]
    is_there = min(places, default=0) >= 0
    return _Places(axis, index, places, max(places, default=-1) + 1) if is_there else None


def _checked(x: Any, written: _Places, read: _Places, is_read: bool) -> Any:
    """Return `x`, of which every length that `written` refuses is refused, if it is read; or None."""
    length = tensor_type_of(x).shape[written.axis]
    if length is not None:
        return x if (length == written.due if written.is_mask else length >= written.due) else None
    if not is_read:
        return None
    if not written.is_mask:
        return x if read.due >= written.due else None
    if read.is_mask:
        return x if read.due == written.due else None
    return specify_shape(x, _only(written.axis, written.due, x)) if read.due <= written.due else None


def _of_length(y: Any, written: _Places, x: Any) -> Any:
    """Return what is written, with its length along the axis; None if the others are not known to be those
    of `x`.
    """
    own, due = list(tensor_type_of(y).shape), list(tensor_type_of(x).shape)
    due[written.axis] = len(written.places)
    if len(own) != len(due) or own[written.axis] not in (None, due[written.axis]):
        return None
    own[written.axis] = due[written.axis]
    return (
        specify_shape(y, _only(written.axis, due[written.axis], y))
        if own == due and None not in own
        else None
    )


def _only(axis: int, length: int | None, x: Any) -> list[int | None]:
    return [length if place == axis else None for place in range(tensor_type_of(x).ndim)]


def _part(x: Any, y: Any, written: _Places, read: _Places, is_set: bool) -> Any:
    """Return what `read` selects of `x` after `y` was set, or added, at the places `written`; or None."""
    last = {place: at for at, place in enumerate(written.places)}
    places = [at for at, place in enumerate(read.places) if place in last]
    sources = [last[read.places[at]] for at in places]
    part = read.of(x)
    if not places:
        return part if y.owner is None else _with_nothing_written(part, y, read)
    if read.is_one:
        value = _along(y, read.axis, (INTEGER, (number(sources[0], "int64"),)))
    else:
        is_all = sources == list(range(len(written.places)))
        value = y if is_all else _along(y, read.axis, (INTEGER, (constant(sources),)))
    if len(places) < len(read.places):
        op = AdvancedIncSubtensor([FULL] * read.axis + [INTEGER], set_instead_of_inc=is_set)
        return op.make_node(part, value, constant(places)).outputs[0]
    return apply_scalar(scalar.second if is_set else scalar.add, part, value)


def _with_nothing_written(part: Any, y: Any, read: _Places) -> Any:
    """Return `part` with none of `y` written, which only makes the checks of y; None for an integer."""
    if read.is_one:
        return None
    op = IncSubtensor([FULL] * read.axis + [NOTHING[0]], set_instead_of_inc=True)
    return op.make_node(part, _along(y, read.axis, NOTHING), *NOTHING[1]).outputs[0]


def _along(x: Any, axis: int, index: Index) -> Any:
    return indexed(x, [index if place == axis else WHOLE for place in range(tensor_type_of(x).ndim)])
