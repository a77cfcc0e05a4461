"""Selections by index arrays, of filled arrays and of products: what is selected is computed, not the whole.

Like PyTensor's rewrites. An index moves only where the selection is known to be no larger than what it
selects from, and where every check of an index or a length that the whole makes is still made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.assumptions.rules.products import factors_of
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.index_facts import (
    WHOLE,
    Index,
    arrays_in,
    indexed,
    indices_of,
    integers_in,
    joint_shape,
    only_user,
    place_of_arrays,
    selects_no_more,
)
from engine.rewriting.passes.dots import sums_alike
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedSubtensor, Alloc, DimShuffle, Subtensor, dimshuffle
from engine.tensor.elemwise import cast
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.math import mul
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import folded_shape_i
from engine.tensor.type import is_data


def _selected_by(node: Apply) -> list[Index] | None:
    """Return the index of each axis; None without arrays, with masks, and where arrays are apart."""
    assert isinstance(node.op, AdvancedSubtensor)
    indices = indices_of(node.inputs[0], node.op.entries, node.inputs[1:])
    if indices is None or not arrays_in(indices):
        return None
    axes = integers_in(indices)
    return indices if axes == list(range(axes[0], axes[-1] + 1)) else None


def _are_there(index: Any, length: int | None) -> bool:
    """Return True if all places of a constant `index` are within a known `length`."""
    if not isinstance(index, Constant) or is_data(index) or length is None:
        return False
    return bool(np.all((index.data >= -length) & (index.data < length)))


@node_rewriter([AdvancedSubtensor])
def local_selection_of_one(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[[0, 0, 0]] -> alloc(x, 3) for an axis of length 1 that one vector of constants indexes."""
    x, indices = node.inputs[0], _selected_by(node)
    if indices is None or len(arrays_in(indices)) != 1 or len(joint_shape(indices)) != 1:
        return None
    (axis,) = arrays_in(indices)
    if tensor_type_of(x).shape[axis] != 1 or not _are_there(indices[axis][1][0], 1):
        return None
    part = indexed(x, [WHOLE if place == axis else index for place, index in enumerate(indices)])
    lengths: list[Any] = [folded_shape_i(part, place) for place in range(tensor_type_of(part).ndim)]
    lengths[place_of_arrays(indices)] = joint_shape(indices)[0]
    return typed(node, Alloc().make_node(part, *lengths).outputs[0])


@node_rewriter([AdvancedSubtensor])
def local_selection_of_expand_dims(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[None][:, i] -> x[i][None], for new axes that nothing indexes."""
    source, indices = node.inputs[0].owner, _selected_by(node)
    if source is None or not isinstance(source.op, DimShuffle) or indices is None:
        return None
    (x,), order = source.inputs, source.op.new_order
    new = [axis for axis, place in enumerate(order) if place == "x"]
    if [place for place in order if place != "x"] != list(range(tensor_type_of(x).ndim)):
        return None
    if not new or any(indices[axis] != WHOLE for axis in new):
        return None
    inside = [None if axis in new else index for axis, index in enumerate(indices)]
    part = indexed(x, [index for index in inside if index is not None])
    return typed(node, _with_axes(part, inside, indices, len(joint_shape(indices))))


@node_rewriter([AdvancedSubtensor])
def local_selection_of_alloc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """alloc(x, n, m)[:, i] -> alloc(x[i], n, k) for constant arrays of k places that are known to be there.

    Along the axes that are repeated nothing is selected; so the others decide whether it is less work.
    """
    source, indices = node.inputs[0].owner, _selected_by(node)
    if source is None or not isinstance(source.op, Alloc) or indices is None:
        return None
    value, *lengths = source.inputs
    whole, selected = tensor_type_of(source.outputs[0]).shape, joint_shape(indices)
    if None in selected or any(not _is_checked(index, n) for index, n in zip(indices, whole, strict=True)):
        return None
    n_new = len(whole) - tensor_type_of(value).ndim
    inside = [_of_value(value, axis, index) for axis, index in enumerate(indices[n_new:])]
    kept = [index for index in inside if index is not None]
    if None in inside or (arrays_in(kept) and not selects_no_more(fgraph, value, kept)):
        return None
    part = _with_axes(indexed(value, kept), kept, indices[n_new:], len(selected))
    static = tensor_type_of(node.outputs[0]).shape
    shape = _shape_of_selection(indices, lengths, static)
    if None in shape:
        return None
    if tensor_type_of(part).shape == static and None not in static:
        return typed(node, part)
    return typed(node, Alloc().make_node(part, *shape).outputs[0])


def _is_checked(index: Index, length: int | None) -> bool:
    """Return True for an index of an axis that cannot raise."""
    if index == WHOLE or index[0] != INTEGER:
        return index == WHOLE or length is not None
    return _are_there(index[1][0], length)


def _of_value(value: Variable, axis: int, index: Index) -> Index | None:
    """Return the index of an axis of the repeated `value`; None if a length would be checked no longer."""
    length = tensor_type_of(value).shape[axis]
    if length == 1:
        return WHOLE
    return index if index == WHOLE or length is not None else None


def _with_axes(part: Any, inside: Sequence[Index | None], indices: Sequence[Index], count: int) -> Any:
    """Return `part` with the axes of what `indices` select of a whole, of which the arrays give `count`.

    For each axis of the whole, `inside` is the index that was taken of the value, or None for an axis that
    the value does not have. Where the part lacks an axis, it gets one of length 1.
    """
    taken = [index for index in inside if index is not None]
    together = len(joint_shape(taken))
    first = place_of_arrays(taken) if together else 0
    others = iter([p for p in range(tensor_type_of(part).ndim) if not first <= p < first + together])
    order: list[Any] = []
    for axis, (index, own) in enumerate(zip(indices, inside, strict=True)):
        place = "x" if own is None or own[0] == INTEGER else next(others)
        if index[0] != INTEGER:
            order.append(place)
        elif axis == integers_in(indices)[0]:
            order += ["x"] * (count - together) + list(range(first, first + together))
    return dimshuffle(part, order)


def _shape_of_selection(
    indices: Sequence[Index], lengths: Sequence[Any], static: Sequence[int | None]
) -> list[Any]:
    """Return the lengths of what is selected; None for those that are not known here."""
    found: list[Any] = []
    for axis, index in enumerate(indices):
        if index[0] != INTEGER:
            place = len(found)
            found.append(lengths[axis] if index == WHOLE else static[place])
        elif axis == integers_in(indices)[0]:
            found += joint_shape(indices)
    return found


@node_rewriter([AdvancedSubtensor])
def local_advanced_subtensor_of_dot(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(x, y)[i] -> dot(x[i], y); dot(x, y)[:, j] -> dot(x, y[:, j]); dot(x, y)[i, j] -> the sum of x[i] *
    y.T[j], for matrices, a batch of them too, and vectors i and j that are known to select no more elements
    than there are.
    """
    source, indices = only_user(fgraph, node), _selected_by(node)
    factors = factors_of(node.inputs[0])
    if source is None or factors is None or indices is None:
        return None
    x, y = factors
    *batch, rows, columns = indices
    if any(tensor_type_of(v).ndim != len(indices) for v in factors) or any(i != WHOLE for i in batch):
        return None
    if len(joint_shape(indices)) != 1 or not selects_no_more(fgraph, node.inputs[0], indices):
        return None
    left = indexed(x, [*batch, rows, WHOLE])
    if rows == WHOLE or columns == WHOLE:
        return typed(node, source.op.make_node(left, indexed(y, [*batch, WHOLE, columns])).outputs[0])
    if len(arrays_in(indices)) != 2 or not sums_alike(x, y):
        return None
    turned = dimshuffle(y, [*range(len(batch)), len(batch) + 1, len(batch)])
    right = indexed(turned, [*batch, columns, WHOLE])
    total = sum_over(mul(left, right), axis=-1)
    return typed(node, cast(total, dtype_of(node.outputs[0])))


@node_rewriter([Subtensor])
def local_subtensor_of_adv_subtensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[:, i][:k] -> x[:k][:, i], for the axes in front of those that arrays index."""
    source, op = only_user(fgraph, node), node.op
    assert isinstance(op, Subtensor)
    if source is None or not isinstance(source.op, AdvancedSubtensor):
        return None
    inside, outside = _selected_by(source), indices_of(node.inputs[0], op.entries, node.inputs[1:])
    if inside is None or outside is None:
        return None
    first = integers_in(inside)[0]
    if any(index != WHOLE for index in (*inside[:first], *outside[first:])):
        return None
    if any(index != WHOLE and index[0] != INTEGER for index in inside):
        return None
    part = indexed(source.inputs[0], [*outside[:first], *[WHOLE] * (len(inside) - first)])
    kept = [index for index in outside[:first] if index[0] != INTEGER]
    return typed(node, indexed(part, [*[WHOLE] * len(kept), *inside[first:]]))


LIFTED_SELECTIONS = (
    local_selection_of_one,
    local_selection_of_expand_dims,
    local_selection_of_alloc,
    local_advanced_subtensor_of_dot,
)
