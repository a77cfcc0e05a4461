"""Reductions of repeated values: the value is reduced once, and the count of its repetitions is a factor.

A sum over equal elements is a product with their number, a product of them is a power, and the largest or
smallest is the element itself. Rounding differs. What an `alloc` checks is checked still: it moves to the
smaller result, and the axes that it does not repeat must be known to have the lengths that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.passes.repeated_values import has_length
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor import Alloc, Sum, cast, dimshuffle, quantifiers
from engine.tensor.axes import with_axis
from engine.tensor.conversion import number
from engine.tensor.creation import alloc
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.reduction import Max, Min, Prod, Reduction

_COUNTED = (Sum, Prod)
"""The reductions whose result depends on how often a value is repeated."""
_MOST = 2**53
"""The whole numbers up to here are floats."""


@node_rewriter([*_COUNTED, Max, Min, quantifiers.All, quantifiers.Any])
def local_careduce_of_alloc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(alloc(a, 5)) -> a * 5; prod(alloc(a, 5)) -> a ** 5; max(alloc(a, 5)) -> a.

    So for axes of which an alloc repeats some: the others are reduced before, and those that stay are
    repeated after. Sums and products are of floats. There must be an element.
    """
    op, (x,), output = node.op, node.inputs, node.outputs[0]
    assert isinstance(op, Reduction)
    if x.owner is None or not isinstance(x.owner.op, Alloc) or not _is_counted_exactly(op, x, output):
        return None
    value, *lengths = x.owner.inputs
    own = [axis for axis, is_one in enumerate(tensor_type_of(value).broadcastable) if not is_one]
    count = prod([tensor_type_of(x).shape[axis] or 0 for axis in op.axis if axis not in own])
    # What the alloc compares of the axes that it does not repeat would be lost.
    if not 0 < count <= _MOST or not all(has_length(value, axis, lengths[axis]) for axis in own):
        return None
    found = cast(_counted(op, _reduced(op, value, own), count), dtype_of(output))
    kept = [axis for axis in range(len(lengths)) if axis not in op.axis]
    if any(axis not in own for axis in kept):
        left = [axis for axis in kept if axis in own]
        order = [left.index(axis) if axis in own else "x" for axis in kept]
        found = alloc(dimshuffle(found, order), *[lengths[axis] for axis in kept])
    return typed(node, found)


def _is_counted_exactly(op: Reduction, x: Variable, output: Variable) -> bool:
    """Return True if `op` needs no count, or computes in the float dtype that it is given."""
    return not isinstance(op, _COUNTED) or dtype_of(x) == dtype_of(output) in FLOATS


def _reduced(op: Reduction, value: Variable, own: Sequence[int]) -> Any:
    """Return `value`, of its `own` axes only, reduced by `op` along those that it reduces."""
    axes = tuple([place for place, axis in enumerate(own) if axis in op.axis])
    single = dimshuffle(value, own)
    return with_axis(op, axes).make_node(single).outputs[0] if axes else single


def _counted(op: Reduction, value: Any, count: int) -> Any:
    """Return the result of `op` over `count` of each element of `value`."""
    if not isinstance(op, _COUNTED) or count == 1:
        return value
    return apply_scalar(scalar.mul if isinstance(op, Sum) else scalar.pow, value, number(count, "int64"))
