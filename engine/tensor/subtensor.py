"""Advanced indexing, by integer arrays and masks: what is selected, and the tensor with that set or added to.

`engine.tensor.index_entries` describes the entries of an index; its arrays and numbers are further inputs.
Kernels take and change whole rows: entries `("i",)` with a vector of integers. A graph around such rows
computes every other index (decision 0138).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.late_names import names_elsewhere
from engine.scalar.conversion import second
from engine.scalar.promotion import INEXACT, INTEGERS
from engine.tensor.broadcasting import unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, pad
from engine.tensor.creation import alloc, arange, zeros
from engine.tensor.elemwise import DimShuffle, apply_elemwise, as_gradient, cast, dimshuffle
from engine.tensor.gathering import (
    check_index,
    first_axis,
    gathered_rows,
    spread_together,
    without_uint64,
)
from engine.tensor.index_entries import (
    FULL,
    INTEGER,
    Entry,
    count_of,
    entries_of,
    idx_list_of,
    parts_of,
)
from engine.tensor.masks import is_mask, positions_by_axis, positions_of
from engine.tensor.math import add, eq, switch
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.selected import axes_used, indexed_axes, kept_axes, selected_type
from engine.tensor.shape import flatten, lengths_along, reshape, shape_i, size, size_over
from engine.tensor.slicing import IncSubtensor, Subtensor, as_part, as_position

ROWS: tuple[Entry, ...] = (INTEGER,)


class _AdvancedIndexing(ReplacedOp):
    """Base class of the Ops of advanced indexing. Each index is an integer array or number, or a mask."""

    differentiates_complex = True
    entries: tuple[Entry, ...]

    @property
    def idx_list(self) -> tuple[int | slice, ...]:
        """The entries as PyTensor writes them: positions among the further inputs."""
        return idx_list_of(self.entries)

    def _indices(self, x: Any, given: Sequence[Any]) -> list[Any]:
        """Return `given` as variables. Raises ValueError for their number, TypeError for their types."""
        due = count_of(self.entries)
        if len(given) != due:
            raise ValueError(f"Applying {self} to {x}: {due} indices are needed, {len(given)} were given")
        found: list[Any] = []
        for item, *bounds in parts_of(self.entries, given):
            found += [] if item is None else [_as_index(x, item)]
            found += [as_position(bound) for bound in bounds if bound is not None]
        return found

    def _takes_rows(self, indices: Sequence[Any]) -> bool:
        return self.entries == ROWS and indices[0].type.ndim == 1 and indices[0].type.dtype != "bool"


class AdvancedSubtensor(_AdvancedIndexing):
    """The elements of a tensor that an index with arrays selects, arranged as numpy arranges them.

    Raises IndexError for an index out of range and for masks of other lengths than the tensor.
    """

    __props__ = ("entries",)

    def __init__(self, idx_list: Sequence[Entry | int | slice]) -> None:
        self.entries = entries_of(idx_list)

    def make_node(self, x: Any, *indices: Any) -> Apply:
        x = as_tensor_variable(x)
        given = self._indices(x, indices)
        return Apply(self, [x, *given], [selected_type(x, self.entries, given).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        if self.is_replaced(node.inputs):
            super().perform(node, inputs, output_storage)
            return
        x, index = inputs
        check_index(index, x.shape[0])
        output_storage[0][0] = x[index]

    def is_replaced(self, inputs: Sequence[Any]) -> bool:
        return not self._takes_rows(inputs[1:])

    def replacement(self, *inputs: Any) -> list[Any]:
        x, *indices = inputs
        if self.entries == ROWS and is_mask(indices[0]):
            return [_chosen(x, indices[0])]
        part, items = _without_slices(x, self.entries, indices)
        found = gathered_rows(part, items)
        return [found.arranged(advanced_subtensor1(found.rows, flatten(found.index)))]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, *indices = inputs
        nothing = [None] * len(indices)
        if cotangents[0] is None or x.type.dtype not in INEXACT:
            return [None, *nothing]
        zeros = apply_elemwise(second, x, cast(as_tensor_variable(0.0), x.type.dtype))
        return [
            AdvancedIncSubtensor(self.entries).make_node(zeros, cotangents[0], *indices).outputs[0],
            *nothing,
        ]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs if only the tensor has a batch."""
        x, *indices = inputs
        old, *others = node.inputs
        if any(new.type.ndim != index.type.ndim for new, index in zip(indices, others, strict=True)):
            return None
        count = x.type.ndim - old.type.ndim
        found = AdvancedSubtensor([FULL] * count + list(self.entries)).make_node(x, *indices).outputs[0]
        if first_axis(indexed_axes([FULL] * count + list(self.entries), indices)):
            return [found]
        # The axes of the index are in front, those of the batch after them.
        width = found.type.ndim - len(kept_axes(x, [FULL] * count + list(self.entries), indices))
        order = [*range(width, width + count), *range(width), *range(width + count, found.type.ndim)]
        return [dimshuffle(found, order)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the tensor, not on the index."""
        return [[True], *([False] for _ in node.inputs[1:])]

    def __str__(self) -> str:
        return f"AdvancedSubtensor{{{', '.join(self.entries)}}}"

    __repr__ = __str__


class AdvancedIncSubtensor(_AdvancedIndexing):
    """`x` with `y`, which broadcasts, added to what an index with arrays selects, or with that set to `y`.

    If an element is selected several times, all values are added, or the last is set; with
    `ignore_duplicates` the last is added. With `inplace` the tensor itself is changed; a rewrite sets this
    where nothing reads the old value afterwards. Raises as `AdvancedSubtensor` does, ValueError for a `y`
    that does not fit and TypeError for one of a wider dtype.
    """

    __props__ = ("entries", "inplace", "set_instead_of_inc", "ignore_duplicates")

    def __init__(
        self,
        idx_list: Sequence[Entry | int | slice],
        inplace: bool = False,
        set_instead_of_inc: bool = False,
        ignore_duplicates: bool = False,
    ) -> None:
        self.entries = entries_of(idx_list)
        self.inplace = bool(inplace)
        self.set_instead_of_inc = bool(set_instead_of_inc)
        self.ignore_duplicates = bool(ignore_duplicates) and not self.set_instead_of_inc
        if self.inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x: Any, y: Any, *indices: Any) -> Apply:
        x = as_tensor_variable(x)
        given = self._indices(x, indices)
        y = as_part(y, x.type)
        selected = selected_type(x, self.entries, given)
        expected = selected.shape[selected.ndim - y.type.ndim :]
        if y.type.ndim > selected.ndim:
            raise ValueError(f"Changing elements of {x.type} by {y.type}: {selected} has fewer dimensions")
        if any(
            a not in (None, 1) and b not in (None, a) for a, b in zip(y.type.shape, expected, strict=True)
        ):
            raise ValueError(f"Changing elements of {x.type} by {y.type}: shape {expected} is expected")
        return Apply(self, [x, y, *given], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        if self.is_replaced(node.inputs):
            super().perform(node, inputs, output_storage)
            return
        x, y, index = inputs
        check_index(index, x.shape[0])
        expected = (*index.shape, *x.shape[1:])
        if y.shape != expected:
            raise ValueError(
                f"Changing elements of an array of shape {x.shape} by one of shape {y.shape}: {expected} fits"
            )
        result = x if self.inplace else np.array(x, order="C")
        with np.errstate(all="ignore"):
            if self.set_instead_of_inc:
                result[index] = y
            else:
                np.add.at(result, index, y)
        output_storage[0][0] = result

    def is_replaced(self, inputs: Sequence[Any]) -> bool:
        x, y, *indices = inputs
        if self.ignore_duplicates or not self._takes_rows(indices) or y.type.ndim != x.type.ndim:
            return True
        return bool(y.type.broadcastable != selected_type(x, self.entries, indices).broadcastable)

    def replacement(self, *inputs: Any) -> list[Any]:
        x, y, *indices = inputs
        if self._takes_rows(indices):
            part = AdvancedSubtensor(ROWS).make_node(x, *indices).outputs[0]
        else:
            (part,) = AdvancedSubtensor(self.entries).replacement(x, *indices)
        value = pad(y, part.type.ndim)
        if self.ignore_duplicates:
            value = add(part, value)
        return [with_part_changed(x, part, value, self.set_instead_of_inc or self.ignore_duplicates)]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, y, *indices = inputs
        gradient = cotangents[0]
        nothing = [None] * len(indices)
        if gradient is None or x.type.dtype not in INEXACT:
            return [None, None, *nothing]
        of_y = AdvancedSubtensor(self.entries).make_node(gradient, *indices).outputs[0]
        if self.set_instead_of_inc or self.ignore_duplicates:
            of_y = _of_last(x, self.entries, indices, of_y)
        if self.set_instead_of_inc:
            gradient = AdvancedIncSubtensor(self.entries, set_instead_of_inc=True)(gradient, 0, *indices)
        return [gradient, as_gradient(_summed_to(of_y, y), y.type.dtype), *nothing]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on both tensors, not on the index."""
        return [[True], [True], *([False] for _ in node.inputs[2:])]

    def __str__(self) -> str:
        return "AdvancedSetSubtensor" if self.set_instead_of_inc else "AdvancedIncSubtensor"

    __repr__ = __str__


def advanced_subtensor1(x: Any, ilist: Any) -> Any:
    """Return the rows `x[ilist]`. Raises TypeError unless `ilist` is a vector of integers."""
    return AdvancedSubtensor(ROWS).make_node(x, _vector_of_integers(x, ilist)).outputs[0]


def advanced_inc_subtensor1(x: Any, y: Any, ilist: Any) -> Any:
    """Return `x` with the rows `y` added at `ilist`. Raises TypeError unless that is a vector of integers."""
    return AdvancedIncSubtensor(ROWS).make_node(x, y, _vector_of_integers(x, ilist)).outputs[0]


def advanced_set_subtensor1(x: Any, y: Any, ilist: Any) -> Any:
    """Return `x` with rows at `ilist` set to `y`. Raises TypeError unless that is a vector of integers."""
    op = AdvancedIncSubtensor(ROWS, set_instead_of_inc=True)
    return op.make_node(x, y, _vector_of_integers(x, ilist)).outputs[0]


def with_part_changed(base: Any, part: Any, value: Any, sets: bool, ignore_duplicates: bool = False) -> Any:
    """Return `base` with `value` set or added to `part`, which operations that select and move made of it.

    Walks back from `part` through these operations, and inverts each.
    """
    is_changed = False
    while part is not base:
        op, (x, *numbers) = part.owner.op, part.owner.inputs
        if isinstance(op, Subtensor):
            value = IncSubtensor(op.entries, set_instead_of_inc=sets).make_node(x, value, *numbers).outputs[0]
            sets = is_changed = True
        elif isinstance(op, AdvancedSubtensor):
            if not op.is_replaced(part.owner.inputs) and value.type.broadcastable != part.type.broadcastable:
                value = _spread(value, part)
            change = AdvancedIncSubtensor(op.entries, False, sets, ignore_duplicates)
            value = change.make_node(x, value, *numbers).outputs[0]
            sets = is_changed = True
        elif isinstance(op, DimShuffle):
            value = dimshuffle(value, [op.new_order.index(axis) for axis in range(x.type.ndim)])
        else:
            value = reshape(_spread(value, part), lengths_along(x))
        part = x
    if is_changed:
        return value
    return _spread(value, base) if sets else add(base, value)


def _spread(value: Any, part: Any) -> Any:
    """Return `value` broadcast to the shape of `part`."""
    return alloc(value, *lengths_along(part))


def _as_index(x: Any, item: Any) -> Any:
    index = as_tensor_variable(item)
    if index.type.dtype == "bool" and index.type.ndim == 0:
        raise NotImplementedError(f"Indexing {x} by {index}: a single bool is no index here")
    if index.type.dtype not in INTEGERS and index.type.dtype != "bool":
        raise TypeError(f"Indexing {x} by {index}: index must be integers or a boolean mask")
    return without_uint64(index)


def _vector_of_integers(x: Any, ilist: Any) -> Any:
    index = as_tensor_variable(ilist)
    if index.type.ndim != 1 or index.type.dtype not in INTEGERS:
        raise TypeError(
            f"Indexing {x} by {index} of type {index.type}: the index must be a vector of integers"
        )
    return index


def _without_slices(x: Any, entries: Sequence[Entry], indices: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return `x` with its slices taken, and for each axis an integer variable, or None (all)."""
    basic: list[Entry] = []
    numbers: list[Any] = []
    groups: list[list[Any]] = []
    items: list[Any] = []
    for entry, (index, *bounds) in zip(entries, parts_of(entries, indices), strict=True):
        if index is None:
            basic.append(entry)
            numbers += [bound for bound in bounds if bound is not None]
            items.append(None)
            continue
        basic += [FULL] * axes_used(index)
        lengths = [shape_i(x, len(items) + offset) for offset in range(axes_used(index))]
        groups.append(list(positions_by_axis(index, lengths)) if is_mask(index) else [index])
        items += groups[-1]
    if any(entry != FULL for entry in basic):
        x = Subtensor(basic).make_node(x, *numbers).outputs[0]
    spread = iter([index for group in spread_together(groups) for index in group])
    return x, [None if item is None else next(spread) for item in items]


def _chosen(x: Any, mask: Any) -> Any:
    """Return the rows of `x` where `mask`, over its first axes, is true."""
    count = mask.type.ndim
    rows = x
    if count > 1:
        kept = [shape_i(x, axis) for axis in range(count, x.type.ndim)]
        rows = reshape(x, [size_over(x, range(count)), *kept])
    lengths = [shape_i(x, axis) for axis in range(count)]
    return advanced_subtensor1(rows, positions_of(mask, lengths))


def _of_last(x: Any, entries: Sequence[Entry], indices: Sequence[Any], of_part: Any) -> Any:
    """Return `of_part`, what was selected, with 0 for elements that are selected again later."""
    arrays = [index for index, *_ in parts_of(entries, indices) if index is not None]
    if len(arrays) == 1 and is_mask(arrays[0]):
        return of_part
    axes = indexed_axes(entries, indices)
    places = zeros([shape_i(x, axis) for axis in axes], "int64")
    only = AdvancedSubtensor([INTEGER] * len(arrays))
    empty = only.make_node(places, *arrays).outputs[0]
    positions = reshape(arange(size(empty)), lengths_along(empty))
    marks = AdvancedIncSubtensor(only.entries, set_instead_of_inc=True)(places, positions, *arrays)
    is_last = eq(only.make_node(marks, *arrays).outputs[0], positions)
    before, width = first_axis(axes), empty.type.ndim
    after = of_part.type.ndim - before - width
    return switch(dimshuffle(is_last, ["x"] * before + [*range(width)] + ["x"] * after), of_part, 0)


def _summed_to(gradient: Any, y: Any) -> Any:
    """Return the gradient of `y`, which was broadcast to the shape of `gradient`."""
    extra = gradient.type.ndim - y.type.ndim
    if extra:
        gradient = gradient.sum(tuple(range(extra)))
    axes = unbroadcast_axes(y.type, gradient.type)
    return gradient.sum(axes, keepdims=True) if axes else gradient


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
