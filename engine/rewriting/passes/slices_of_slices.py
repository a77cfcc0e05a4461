"""Parts of parts as one part: `x[2:8][1]` is `x[3]`, and `x[i][j]` is `x[i, j]`; and places counted from the
beginning, so that a part that is written in two ways is one.

Bounds are merged where they are constants, and no check is lost: a place that the inner slice cuts off stays
refused. A part that is read elsewhere, too, stays as it is.
"""

from __future__ import annotations

import sys
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.index_facts import WHOLE, Index, indexed, only_user
from engine.rewriting.passes.lifted_parts import basic_indices
from engine.rewriting.passes.selected_slices import as_slice
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import IncSubtensor, Subtensor
from engine.tensor.conversion import number
from engine.tensor.index_entries import INTEGER, parts_of
from engine.tensor.matching import scalar_value, tensor_type_of


@node_rewriter([Subtensor])
def local_subtensor_merge_slice(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[2:8][1:3] -> x[3:5]; x[:n, 2:8][1:, 1:3] -> x[:n, 3:5][1:]."""
    assert isinstance(node.op, Subtensor)
    return None if INTEGER in node.op.entries else _merged(fgraph, node)


@node_rewriter([Subtensor])
def local_subtensor_merge_integer(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[2:8][1] -> x[3]; x[i][j] -> x[i, j]."""
    assert isinstance(node.op, Subtensor)
    return _merged(fgraph, node) if INTEGER in node.op.entries else None


def _merged(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    source = only_user(fgraph, node)
    if source is None or not isinstance(source.op, Subtensor):
        return None
    x, inside, outside = source.inputs[0], basic_indices(source), basic_indices(node)
    kept = [axis for axis, (entry, _) in enumerate(inside) if entry != INTEGER]
    rest: list[Index] = []
    for axis, outer in zip(kept, outside, strict=True):
        joint = _joint(inside[axis], outer, tensor_type_of(x).shape[axis])
        inside[axis] = inside[axis] if joint is None else joint
        if inside[axis][0] != INTEGER:
            rest.append(outer if joint is None else WHOLE)
    if rest == outside:
        return None
    return typed(node, indexed(indexed(x, inside), rest))


def _joint(inner: Index, outer: Index, length: int | None) -> Index | None:
    """Return the index of an axis that selects what `outer` does of a slice of it; None if it is unknown.

    Of an axis of unknown length, places that are counted from its beginning are known.
    """
    if inner == WHOLE or outer == WHOLE:
        return inner if outer == WHOLE else outer
    first, second = _constants(inner), _constants(outer)
    if first is None or second is None:
        return None
    if length is None and min([part or 0 for part in (*first, *second)]) < 0:
        return None
    length = sys.maxsize if length is None else length
    places = range(length)[slice(*first[1:])]
    if outer[0] == INTEGER:
        is_there = -len(places) <= second[0] < len(places)
        return (INTEGER, (number(places[second[0]], "int64"),)) if is_there else None
    chosen = places[slice(*second[1:])]
    return as_slice(chosen, length) if chosen else None


def _constants(index: Index) -> list[Any] | None:
    """Return integer, start, stop and step, None where they are not given; None if one is no constant, or
    the step is 0.
    """
    ((*parts,),) = parts_of([index[0]], index[1])
    found = [None if part is None else scalar_value(part) for part in parts]
    is_known = all(value is not None for value, part in zip(found, parts, strict=True) if part is not None)
    return found if is_known and found[3] != 0 else None


@node_rewriter([Subtensor, IncSubtensor])
def local_convert_negative_indices(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[-1] -> x[2], if x is known to have 3 elements along the axis."""
    op: Any = node.op
    n_tensors = 1 if isinstance(op, Subtensor) else 2
    tensors, numbers = node.inputs[:n_tensors], list(node.inputs[n_tensors:])
    shape, first = tensor_type_of(tensors[0]).shape, 0
    for length, (index, *bounds) in zip(shape, parts_of(op.entries, numbers), strict=False):
        place = None if index is None else scalar_value(index)
        if place is not None and length is not None and -length <= place < 0:
            numbers[first] = number(length + place, "int64")
        first += sum(part is not None for part in (index, *bounds))
    if numbers == list(node.inputs[n_tensors:]):
        return None
    return typed(node, op.make_node(*tensors, *numbers).outputs[0])
