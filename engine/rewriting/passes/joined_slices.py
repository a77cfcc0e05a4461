"""Slices of one tensor that are joined again: `join(0, x[:k], x[k:])` is x.

The bounds between must be known to be in order: x[3:1] has no rows, and x[1:] behind it has more than x[3:].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import Subtensor
from engine.tensor.index_entries import INTEGER, index_of
from engine.tensor.joining import Join
from engine.tensor.matching import scalar_value

Part = tuple[Variable, tuple[Any, ...]] | None
"""A tensor, and the slices of its axes; None for anything else."""


@node_rewriter([Join])
def local_join_subtensors(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """join(0, x[:k], x[k:], y) -> join(0, x, y)."""
    assert isinstance(node.op, Join)
    axis = node.op.axis
    joined: list[Variable] = []
    for variable in node.inputs:
        found = _merged(_part(joined[-1]), _part(variable), axis) if joined else None
        joined[-1:] = [*joined[-1:], variable] if found is None else [found]
    if len(joined) == len(node.inputs):
        return None
    result = joined[0] if len(joined) == 1 else node.op.make_node(*joined).outputs[0]
    return typed(node, result)


def _part(variable: Variable) -> Part:
    node = variable.owner
    if node is None or not isinstance(node.op, Subtensor) or INTEGER in node.op.entries:
        return None
    return node.inputs[0], index_of(node.op.entries, node.inputs[1:])


def _merged(first: Part, second: Part, axis: int) -> Any:
    """Return the part that two parts are together, along `axis`; None if they are not."""
    if first is None or second is None or first[0] is not second[0] or axis >= len(first[1]):
        return None
    (x, before), (_, behind) = first, second
    if len(before) != len(behind) or not _is_continued(before[axis], behind[axis]):
        return None
    pairs = enumerate(zip(before, behind, strict=True))
    if not all(place == axis or _are_same_slices(*parts) for place, parts in pairs):
        return None
    whole: Any = x
    return whole[(*before[:axis], slice(before[axis].start, behind[axis].stop), *before[axis + 1 :])]


def _are_same_slices(first: Any, second: Any) -> bool:
    return all(_is_same(a, b) for a, b in zip(_bounds(first), _bounds(second), strict=True))


def _bounds(part: Any) -> Sequence[Any]:
    return part.start, part.stop, part.step


def _is_same(first: Any, second: Any) -> bool:
    if first is None or second is None or first is second:
        return first is second
    return scalar_value(first) is not None and scalar_value(first) == scalar_value(second)


def _is_continued(before: Any, behind: Any) -> bool:
    """Return True if slice `behind` begins where slice `before` ends, and neither ends before it begins."""
    if before.stop is None or not _is_same(before.stop, behind.start):
        return False
    if any(part.step is not None and scalar_value(part.step) != 1 for part in (before, behind)):
        return False
    bounds = [v for v in (before.start, before.stop, behind.stop) if v is not None]
    numbers = [scalar_value(bound) for bound in bounds]
    if len(bounds) == 1:
        return True
    return None not in numbers and numbers == sorted(numbers) and (numbers[0] >= 0 or numbers[-1] < 0)
