"""Parts of results as results of parts: `exp(x)[0]` is `exp(x[0])`, which computes one row.

Like PyTensor's rewrites of the same names. A part moves only where the shapes that the whole result checks
are known to fit, and an index that only the whole result would check is known to be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.inner.special import LogSoftmax, Softmax
from engine.rewriting.index_facts import (
    WHOLE,
    Index,
    arrays_in,
    indexed,
    indices_of,
    joint_shape,
    only_user,
    selects_no_more,
)
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.conversion import second
from engine.tensor import AdvancedSubtensor, Alloc, DimShuffle, Elemwise, MakeVector, Subtensor, dimshuffle
from engine.tensor.conversion import constant, number
from engine.tensor.index_entries import INTEGER
from engine.tensor.joining import Join
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.products import Dot
from engine.tensor.quantifiers import All
from engine.tensor.quantifiers import Any as AnyOver
from engine.tensor.reduction import Max, Min, Prod, Sum
from engine.tensor.subtensor import ROWS
from engine.tensor.type import is_data

REDUCTIONS = (Sum, Prod, Max, Min, All, AnyOver)


def basic_indices(node: Apply) -> list[Index]:
    """Return the index of each axis that a Subtensor indexes."""
    assert isinstance(node.op, Subtensor)
    found = indices_of(node.inputs[0], node.op.entries, node.inputs[1:])
    assert found is not None
    return found


def _is_first(index: Index) -> bool:
    """Return True for the only element of an axis of length 1."""
    entry, numbers = index
    return entry == INTEGER and scalar_value(numbers[0]) in (0, -1)


@node_rewriter([Subtensor, AdvancedSubtensor])
def local_subtensor_of_batch_dims(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(x, y)[i] -> f(x[i], y[i]) for elementwise functions of arrays whose lengths are known to fit.

    An index with arrays moves if it is known to select no more than there is.
    """
    source, op = only_user(fgraph, node), node.op
    if source is None or not isinstance(source.op, Elemwise) or source.op.scalar_op == second:
        return None
    assert isinstance(op, Subtensor | AdvancedSubtensor)
    indices = indices_of(node.inputs[0], op.entries, node.inputs[1:])
    if indices is None or not lengths_fit(source, indices):
        return None
    if arrays_in(indices) and not selects_no_more(fgraph, node.inputs[0], indices):
        return None
    operands = [operand_part(v, source.outputs[0], indices) for v in source.inputs]
    if None in [index for _, index in operands]:
        return None
    parts = [indexed(v, chosen) for v, chosen in operands if chosen is not None]
    return typed(node, source.op.make_node(*parts).outputs[0])


def operand_part(
    v: Variable, whole: Variable, indices: Sequence[Index]
) -> tuple[Variable, list[Index] | None]:
    """Return an operand and its index, of the first axes of both tensors; None for one that must not be
    indexed.
    """
    if v.owner is not None and isinstance(v.owner.op, Softmax | LogSoftmax):
        return v, None  # log(softmax(x)) is a pattern, which an index between would hide
    found: list[Index] = []
    alone, along = tensor_type_of(whole).broadcastable, tensor_type_of(v).broadcastable
    first = _first_place(indices)
    for index, is_alone, is_one in zip(indices, alone, along, strict=False):
        if index == WHOLE or not is_one:
            found.append(index)
        elif is_alone and not _is_first(index):
            return v, None
        else:
            found.append((INTEGER, (first,)) if index[0] == INTEGER else WHOLE)
    return v, found


def _first_place(indices: Sequence[Index]) -> Any:
    """Return the index of the only element along an axis, with as many axes as the arrays of `indices`."""
    count = len(joint_shape(indices))
    return constant(np.zeros((1,) * count, dtype="int64")) if count else number(0, "int64")


def lengths_fit(source: Apply, indices: Sequence[Index]) -> bool:
    """Return True if no length along an indexed axis has to be compared when the function runs."""
    for axis, index in enumerate(indices):
        shapes = [tensor_type_of(v).shape[axis] for v in source.inputs]
        lengths = [length for length in shapes if length != 1]
        if index != WHOLE and len(lengths) > 1 and None in lengths:
            return False
    return True


@node_rewriter([Subtensor])
def local_subtensor_remove_broadcastable_index(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[0] -> x without that axis, if it has length 1."""
    x, indices = node.inputs[0], basic_indices(node)
    shape = tensor_type_of(x).shape
    ones = [axis for axis, index in enumerate(indices) if shape[axis] == 1 and _is_first(index)]
    if not ones:
        return None
    part = indexed(x, [WHOLE if axis in ones else index for axis, index in enumerate(indices)])
    rest = [axis for axis, (entry, _) in enumerate(indices) if axis in ones or entry != INTEGER]
    return typed(node, dimshuffle(part, [place for place, axis in enumerate(rest) if axis not in ones]))


@node_rewriter([Subtensor])
def local_subtensor_of_reduce(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(x, axis=1)[i] -> sum(x[i], axis=0)."""
    source = only_user(fgraph, node)
    if source is None or not isinstance(source.op, REDUCTIONS):
        return None
    given = iter(basic_indices(node))
    axes: Sequence[int] = source.op.axis
    indices = [
        WHOLE if axis in axes else next(given) for axis in range(tensor_type_of(source.inputs[0]).ndim)
    ]
    part = indexed(source.inputs[0], indices)
    if part is source.inputs[0]:
        return None
    op: Any = type(source.op)
    new = op(**(source.op.props_dict() | {"axis": tuple([_moved(axis, indices) for axis in axes])}))
    return typed(node, new.make_node(part).outputs[0])


def _moved(axis: int, indices: Sequence[Index]) -> int:
    """Return where `axis` is when the axes before it that integers index are gone."""
    return axis - sum(entry == INTEGER for entry, _ in indices[:axis])


def split_at(axes: Sequence[int], indices: Sequence[Index]) -> tuple[list[Index], list[Index]]:
    """Return the indices of the other axes, and those of `axes` for what is left after them."""
    inside = [WHOLE if axis in axes else index for axis, index in enumerate(indices)]
    outside = [
        index if axis in axes else WHOLE
        for axis, index in enumerate(indices)
        if axis in axes or index[0] != INTEGER
    ]
    return inside, outside


@node_rewriter([Subtensor])
def local_subtensor_of_softmax(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """softmax(x, axis=1)[i] -> softmax(x[i], axis=0); an index of the axis itself stays outside."""
    source = only_user(fgraph, node)
    if source is None or not isinstance(source.op, Softmax | LogSoftmax):
        return None
    axes: Sequence[int] = source.op.axis
    inside, outside = split_at(axes, basic_indices(node))
    part = indexed(source.inputs[0], inside)
    if part is source.inputs[0]:
        return None
    new = type(source.op)(tuple([_moved(axis, inside) for axis in axes])).make_node(part).outputs[0]
    return typed(node, indexed(new, outside))


@node_rewriter([Subtensor])
def local_subtensor_of_join(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """join(1, x, y)[i] -> join(0, x[i], y[i]), if the lengths of x and y are known to be equal there."""
    source = only_user(fgraph, node)
    if source is None or not isinstance(source.op, Join):
        return None
    axis = source.op.axis
    inside, outside = split_at([axis], basic_indices(node))
    lengths = [{tensor_type_of(v).shape[a] for v in source.inputs} for a in range(len(inside))]
    changed = [a for a, index in enumerate(inside) if index != WHOLE]
    if not changed or any(len(lengths[a]) > 1 or None in lengths[a] for a in changed):
        return None
    parts = [indexed(v, inside) for v in source.inputs]
    return typed(node, indexed(Join(_moved(axis, inside)).make_node(*parts).outputs[0], outside))


@node_rewriter([Subtensor])
def local_subtensor_of_dimshuffle(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x.T[i] -> x[:, i]; x[None][0] -> x."""
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, DimShuffle):
        return None
    x, order = source.inputs[0], source.op.new_order
    inside = [WHOLE] * tensor_type_of(x).ndim
    kept: list[Any] = []
    for place, index in zip(order, basic_indices(node), strict=True):
        if isinstance(place, int):
            inside[place] = index
        elif index != WHOLE and not _is_first(index):
            return None
        kept += [] if index[0] == INTEGER else [place]
    new_order = [place if isinstance(place, str) else _moved(place, inside) for place in kept]
    return typed(node, dimshuffle(indexed(x, inside), new_order))


local_subtensor_of_expand_dims = local_subtensor_of_dimshuffle
local_subtensor_of_squeeze = local_subtensor_of_dimshuffle
local_subtensor_of_transpose = local_subtensor_of_dimshuffle
OF_MOVED_AXES = (
    "local_subtensor_of_expand_dims",
    "local_subtensor_of_squeeze",
    "local_subtensor_of_transpose",
)
"""PyTensor's names of this rewrite, and its tags: all three kinds of nodes are DimShuffles."""


@node_rewriter([Subtensor])
def local_subtensor_of_alloc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """alloc(x, n, m)[i] -> alloc(x, m), for indices that are known to be there and lengths that are known."""
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, Alloc):
        return None
    value, *lengths = source.inputs
    whole, indices = tensor_type_of(source.outputs[0]), basic_indices(node)
    n_new = whole.ndim - tensor_type_of(value).ndim
    selected = iter(tensor_type_of(node.outputs[0]).shape)
    inside: list[Index] = []
    kept: list[Any] = []
    for axis, index in enumerate(indices):
        length = None if index[0] == INTEGER else next(selected)
        repeats = axis < n_new or tensor_type_of(value).broadcastable[axis - n_new]
        if index != WHOLE and (whole.shape[axis] is None or not _is_there(index, whole.shape[axis], length)):
            return None
        if index != WHOLE and not repeats and tensor_type_of(value).shape[axis - n_new] is None:
            return None  # alloc compares this length, and would no longer
        if axis >= n_new:
            inside.append(_of_repeated(index) if repeats else index)
        kept += [] if index[0] == INTEGER else [lengths[axis] if index == WHOLE else length]
    part = indexed(value, inside)
    shape = tensor_type_of(node.outputs[0]).shape
    if part.type.shape == shape and None not in shape:
        return typed(node, part)
    return typed(node, Alloc().make_node(part, *kept).outputs[0])


def _is_there(index: Index, length: int | None, selected: int | None) -> bool:
    """Return True for a slice that selects a known number of elements, and a known place within `length`."""
    if index[0] != INTEGER:
        return selected is not None
    place = scalar_value(index[1][0])
    return place is not None and length is not None and -length <= place < length


def _of_repeated(index: Index) -> Index:
    """Return the index of an axis of length 1 that is repeated."""
    return (INTEGER, (number(0, "int64"),)) if index[0] == INTEGER else WHOLE


@node_rewriter([Subtensor])
def local_subtensor_of_dot(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(x, y)[i, j] -> dot(x[i], y[:, j])."""
    source = only_user(fgraph, node)
    if source is None or not isinstance(source.op, Dot):
        return None
    x, y = source.inputs
    indices = basic_indices(node)
    n_rows = tensor_type_of(x).ndim - 1
    left = indexed(x, [*indices[:n_rows], WHOLE])
    right = indexed(y, [WHOLE, *indices[n_rows:]])
    if left is x and right is y:
        return None
    return typed(node, source.op.make_node(left, right).outputs[0])


@node_rewriter([Subtensor, AdvancedSubtensor])
def local_parts_of_make_vector(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """MakeVector(a, b, c)[1:] -> MakeVector(b, c), and the same with a constant vector of positions."""
    vector, *numbers = node.inputs
    if vector.owner is None or not isinstance(vector.owner.op, MakeVector) or not numbers:
        return None
    places = _places(node, numbers, len(vector.owner.inputs))
    if places is None:
        return None
    found = vector.owner.op.make_node(*[vector.owner.inputs[place] for place in places]).outputs[0]
    return typed(node, found)


def _places(node: Apply, numbers: Sequence[Variable], length: int) -> list[int] | None:
    """Return the places, of `length`, that a slice or a vector of constants selects."""
    if isinstance(node.op, AdvancedSubtensor):
        (index,) = numbers
        if node.op.entries != ROWS or not isinstance(index, Constant) or is_data(index):
            return None
        wanted = [] if index.data.dtype == bool or index.data.ndim != 1 else index.data.tolist()
        return wanted if wanted and all(-length <= place < length for place in wanted) else None
    ((entry, given),) = basic_indices(node)
    values = [scalar_value(part) for part in given]
    if entry == INTEGER or None in values:
        return None
    rest = iter(values)
    bounds = [next(rest) if letter in entry else None for letter in "abc"]
    return list(range(length))[slice(*bounds)] or None


LIFTED_PARTS = (
    local_parts_of_make_vector,
    local_subtensor_of_dimshuffle,
    local_subtensor_of_batch_dims,
    local_subtensor_of_reduce,
    local_subtensor_of_softmax,
    local_subtensor_of_join,
    local_subtensor_of_alloc,
    local_subtensor_of_dot,
    local_subtensor_remove_broadcastable_index,
)
