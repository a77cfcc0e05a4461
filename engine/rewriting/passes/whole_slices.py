"""Bounds of slices that leave nothing out: `x[0:]` is x, and `r[:3]` is r, if it has 3 elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import IncSubtensor, Shape_i, Subtensor
from engine.tensor.index_entries import INTEGER, Entry, parts_of, slice_entry
from engine.tensor.matching import scalar_value, tensor_type_of


@node_rewriter([Subtensor, IncSubtensor])
def local_useless_slice(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[0:n:1] -> x[:], if x is known to have no more than n elements along the axis."""
    op: Any = node.op
    n_tensors = 1 if isinstance(op, Subtensor) else 2
    tensors, numbers = node.inputs[:n_tensors], node.inputs[n_tensors:]
    entries: list[Entry] = []
    kept: list[Variable] = []
    for axis, (index, *bounds) in enumerate(parts_of(op.entries, numbers)):
        parts = [index] if index is not None else _needed(tensors[0], axis, bounds)
        entries.append(INTEGER if index is not None else slice_entry(*parts))
        kept += [part for part in parts if part is not None]
    if tuple(entries) == op.entries:
        return None
    new = Subtensor(entries) if n_tensors == 1 else IncSubtensor(entries, op.inplace, op.set_instead_of_inc)
    result = new.make_node(*tensors, *kept).outputs[0]
    return typed(node, result)


def _needed(x: Variable, axis: int, bounds: Sequence[Variable | None]) -> list[Variable | None]:
    """Return start, stop and step of a slice of `x`, with None for what changes nothing."""
    start, stop, step = bounds
    count = 1 if step is None else scalar_value(step)
    if count is None or count == 0:
        return [start, stop, step]
    is_first, is_last = (_is_first, _is_behind) if count > 0 else (_is_end, _is_before)
    return [
        None if start is not None and is_first(start, x, axis) else start,
        None if stop is not None and is_last(stop, x, axis) else stop,
        None if count == 1 else step,
    ]


def _is_first(start: Variable, x: Variable, axis: int) -> bool:
    """Return True if `start` is known to be the beginning of the axis."""
    return bool(scalar_value(start) == 0)


def _is_behind(stop: Variable, x: Variable, axis: int) -> bool:
    """Return True if `stop` is known to be no smaller than the length of `x` along `axis`."""
    known, number = tensor_type_of(x).shape[axis], scalar_value(stop)
    if known is not None and number is not None:
        return bool(number >= known)
    node = stop.owner
    return node is not None and node.op == Shape_i(axis) and node.inputs[0] is x


def _is_end(start: Variable, x: Variable, axis: int) -> bool:
    """Return True if `start` is known to be the last place of the axis, or behind it."""
    known, number = tensor_type_of(x).shape[axis], scalar_value(start)
    return number == -1 or (known is not None and number is not None and number >= max(known - 1, 0))


def _is_before(stop: Variable, x: Variable, axis: int) -> bool:
    """Return True if `stop` is known to be before the first place, as a number counted from the end."""
    known, number = tensor_type_of(x).shape[axis], scalar_value(stop)
    return known is not None and number is not None and bool(number < -known)
