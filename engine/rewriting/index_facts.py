"""Facts of an index with arrays that are known before the function runs: which axes it indexes by what,
whether it selects an element twice, and whether it selects more than there is.

Data is never read: nothing is known of a constant of more than 32 elements but its shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.assumptions.core import UNIQUE_INDICES, FactState
from engine.assumptions.feature import AssumptionFeature
from engine.assumptions.specify import SpecifyAssumptions
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.scalar import add, floor_div, mod, sub
from engine.tensor import AdvancedSubtensor, DimShuffle, Subtensor
from engine.tensor.creation import ARange
from engine.tensor.gathering import first_axis
from engine.tensor.index_entries import FULL, INTEGER, Entry, parts_of
from engine.tensor.masks import FlatNonzero, is_mask
from engine.tensor.matching import is_alike, operands_of, scalar_value, tensor_type_of
from engine.tensor.signs import is_non_negative
from engine.tensor.type import is_data

Index = tuple[Entry, tuple[Any, ...]]
"""The entry of one axis, and its numbers or array."""

WHOLE: Index = (FULL, ())


def indices_of(x: Variable, entries: Sequence[Entry], numbers: Sequence[Any]) -> list[Index] | None:
    """Return the index of each axis of `x`; None if there is a mask, which may be for several axes."""
    found: list[Index] = []
    for entry, parts in zip(entries, parts_of(entries, numbers), strict=True):
        if parts[0] is not None and is_mask(parts[0]):
            return None
        found.append((entry, tuple([part for part in parts if part is not None])))
    return found + [WHOLE] * (tensor_type_of(x).ndim - len(found))


def indexed(x: Any, indices: Sequence[Index]) -> Any:
    """Return what `indices`, one for each axis, select of `x`."""
    kept = list(indices)
    while kept and kept[-1] == WHOLE:
        kept.pop()
    if all(index == WHOLE for index in kept):
        return x
    numbers = [number for _, given in kept for number in given]
    entries = [entry for entry, _ in kept]
    return (AdvancedSubtensor if arrays_in(kept) else Subtensor)(entries).make_node(x, *numbers).outputs[0]


def arrays_in(indices: Sequence[Index]) -> list[int]:
    """Return the axes that arrays index."""
    return [
        axis
        for axis, (entry, given) in enumerate(indices)
        if entry == INTEGER and tensor_type_of(given[0]).ndim
    ]


def integers_in(indices: Sequence[Index]) -> list[int]:
    """Return the axes that arrays and integers index."""
    return [axis for axis, (entry, _) in enumerate(indices) if entry == INTEGER]


def place_of_arrays(indices: Sequence[Index]) -> int:
    """Return the first axis, in the result, of those that the arrays of `indices` give together."""
    axes = integers_in(indices)
    return len([axis for axis in range(first_axis(axes)) if axis not in axes])


def joint_shape(indices: Sequence[Index]) -> tuple[int | None, ...]:
    """Return the static shape of the arrays in `indices`, broadcast."""
    shapes = [tensor_type_of(indices[axis][1][0]).shape for axis in arrays_in(indices)]
    ndim = max([len(shape) for shape in shapes], default=0)
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    return tuple([_longest(lengths) for lengths in zip(*padded, strict=True)])


def _longest(lengths: Sequence[int | None]) -> int | None:
    known = [length for length in lengths if length not in (1, None)]
    return known[0] if known else None if None in lengths else 1


def selects_no_more(fgraph: FunctionGraph, x: Variable, indices: Sequence[Index]) -> bool:
    """Return True if `indices` are known to select no more elements than `x` has along the axes of arrays."""
    lengths = [tensor_type_of(x).shape[axis] for axis in integers_in(indices)]
    size = joint_shape(indices)
    if None not in size and None not in lengths:
        return math.prod(size) <= math.prod(lengths)  # type: ignore[arg-type]
    return are_distinct(fgraph, x, [given[0] for entry, given in indices if entry == INTEGER])


def are_distinct(fgraph: FunctionGraph | None, x: Variable, arrays: Sequence[Variable]) -> bool:
    """Return True if index `arrays`, broadcast against each other, are known to select no element twice.

    A mask selects none twice. Numbers of both signs may be the same place unless a length is known: of what
    is indexed nothing but constants is read, so numbers of both signs are not distinct.
    """
    if any(is_mask(array) for array in arrays):
        return len(arrays) == 1
    constants = [array for array in arrays if isinstance(array, Constant) and not is_data(array)]
    if len(constants) == len(arrays):
        return _are_distinct_constants([constant.data for constant in constants])
    if _are_of_one_mask(arrays):
        return True
    return any(is_distinct(fgraph, array) and _is_largest(array, arrays) for array in arrays)


def _are_distinct_constants(arrays: Sequence[np.ndarray]) -> bool:
    if any(array.size and (array.min() < 0) != (array.max() < 0) for array in arrays):
        return False
    rows = np.stack([array.astype("int64").ravel() for array in np.broadcast_arrays(*arrays)], axis=-1)
    return len(np.unique(rows, axis=0)) == len(rows)


def _is_largest(array: Variable, arrays: Sequence[Variable]) -> bool:
    """Return True if broadcasting against the other `arrays` repeats nothing in `array`."""
    own = tensor_type_of(array).broadcastable
    for other in arrays:
        theirs = tensor_type_of(other).broadcastable
        if len(theirs) > len(own):
            return False
        pairs = zip(own[len(own) - len(theirs) :], theirs, strict=True)
        if any(is_one and not is_theirs for is_one, is_theirs in pairs):
            return False
    return True


def _are_of_one_mask(arrays: Sequence[Variable]) -> bool:
    """Return True for the rows and columns where one mask is true."""
    if len(arrays) != 2:
        return False
    rows, columns = operands_of(arrays[0], floor_div), operands_of(arrays[1], mod)
    if rows is None or columns is None or not is_alike(rows[1], columns[1]):
        return False
    divisor = rows[1].owner
    length = rows[1] if divisor is None or not isinstance(divisor.op, DimShuffle) else divisor.inputs[0]
    return is_non_negative(length) and _is_of_mask(rows[0]) and is_alike(rows[0], columns[0])


def _is_of_mask(array: Variable) -> bool:
    return array.owner is not None and isinstance(array.owner.op, FlatNonzero)


def is_distinct(fgraph: FunctionGraph | None, array: Variable) -> bool:
    """Return True if the elements of an index `array` are known to be different places of any axis."""
    if isinstance(array, Constant):
        return not is_data(array) and _are_distinct_constants([array.data])
    if is_mask(array) or tensor_type_of(array).ndim == 0 or _is_of_mask(array) or is_range_of_places(array):
        return True
    return _is_assumed(fgraph, array)


def _is_assumed(fgraph: FunctionGraph | None, array: Variable) -> bool:
    node = array.owner
    if node is not None and isinstance(node.op, SpecifyAssumptions):
        return (UNIQUE_INDICES.name, int(FactState.TRUE)) in node.op.assumptions
    features = [] if fgraph is None else fgraph.features
    return any(isinstance(f, AssumptionFeature) and f.check(array, UNIQUE_INDICES) for f in features)


def is_range_of_places(array: Variable) -> bool:
    """Return True for a range of numbers that are all different, and none negative or all."""
    found = range_of(array)
    if found is None:
        return False
    start, stop, step = [scalar_value(v) for v in found[:3]]
    shift = found[3]
    if start is not None and step is not None and step > 0 and start + shift >= 0:
        return True
    if step is not None and step < 0 and stop is not None and stop + shift >= 0:
        return True
    if step is not None and step < 0 and start is not None and start + shift < 0:
        return True
    if start is None or stop is None or step is None:
        # Its numbers are at least the start, or above the stop.
        return step is not None and shift >= 0 and is_non_negative(found[0] if step > 0 else found[1])
    numbers = range(int(start) + shift, int(stop) + shift, int(step))
    return not numbers or (numbers[0] < 0) == (numbers[-1] < 0)


def range_of(array: Variable) -> tuple[Variable, Variable, Variable, int] | None:
    """Return (start, stop, step, shift) if `array` is a range of int64s with a constant added or subtracted;
    else None.
    """
    sums, differences = operands_of(array, add), operands_of(array, sub)
    pairs: list[tuple[Sequence[Variable], int]] = [] if sums is None else [(sums, 1), (sums[::-1], 1)]
    pairs += [] if differences is None else [(differences, -1)]
    node, shift = array.owner, 0
    for (one, other), sign in pairs:
        value = scalar_value(other)
        if value is not None and one.owner is not None and isinstance(one.owner.op, ARange):
            node, shift = one.owner, sign * int(value)
    if node is None or not isinstance(node.op, ARange):
        return None
    start, stop, step = node.inputs
    return start, stop, step, shift


def are_equal(first: Sequence[Variable], second: Sequence[Variable]) -> bool:
    """Return True if the numbers and arrays of two indices are known to be the same."""
    return all(is_alike(a, b) for a, b in zip(first, second, strict=True))


def only_user(fgraph: FunctionGraph, node: Apply) -> Apply | None:
    """Return what computes the tensor that an indexing node reads, if nothing else uses it."""
    source = node.inputs[0]
    if source.owner is None or len(source.owner.outputs) != 1 or len(fgraph.clients[source]) != 1:
        return None
    return source.owner
