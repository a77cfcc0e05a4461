"""Changes by index arrays that are known to select no element twice.

Then a part that was added to is the old part and what was added, a part that is set and added to is set to
the sum, and a part that is set to itself and more is added to. Every check of an index and of a length stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.index_facts import are_distinct, are_equal
from engine.rewriting.replacing import typed_alike
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedIncSubtensor, AdvancedSubtensor, DimShuffle
from engine.tensor.index_entries import parts_of
from engine.tensor.matching import operands_of, tensor_type_of


def _selects_each_once(fgraph: FunctionGraph, x: Variable, op: Any, numbers: Sequence[Variable]) -> bool:
    arrays = [index for index, *_ in parts_of(op.entries, numbers) if index is not None]
    return are_distinct(fgraph, x, arrays)


def selection_of_increment(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Return x[i] + y for x[i].inc(y)[i]."""
    op, before, numbers = node.op, node.inputs[0].owner, node.inputs[1:]
    assert isinstance(op, AdvancedSubtensor)
    if before is None or not isinstance(before.op, AdvancedIncSubtensor) or before.op.set_instead_of_inc:
        return None
    x, y, *changed = before.inputs
    if before.op.entries != op.entries or not are_equal(changed, numbers):
        return None
    if tensor_type_of(y).broadcastable != tensor_type_of(node.outputs[0]).broadcastable:
        return None
    if not _selects_each_once(fgraph, x, op, numbers):
        return None
    return typed_alike(node, apply_scalar(scalar.add, op.make_node(x, *numbers).outputs[0], y))


def increment_of_selection(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Return x[i].set(a + b) for x[i].set(a)[i].inc(b), for a and b of as many elements."""
    op, before = node.op, node.inputs[0].owner
    assert isinstance(op, AdvancedIncSubtensor)
    if before is None or not isinstance(before.op, AdvancedIncSubtensor) or op.set_instead_of_inc:
        return None
    if not before.op.set_instead_of_inc or len(fgraph.clients[node.inputs[0]]) != 1:
        return None
    (x, a), (_, b, *numbers) = before.inputs[:2], node.inputs
    if before.op.entries != op.entries or not are_equal(before.inputs[2:], numbers):
        return None
    if tensor_type_of(a).broadcastable != tensor_type_of(b).broadcastable:
        return None
    if not _selects_each_once(fgraph, x, op, numbers):
        return None
    new = AdvancedIncSubtensor(op.entries, set_instead_of_inc=True)
    return typed_alike(node, new.make_node(x, _sum(a, b), *numbers).outputs[0])


def _sum(a: Variable, b: Variable) -> Variable:
    """Return a + b, added before the axes are reordered, if both are reordered in the same way.

    What is written has new axes if it has fewer than what is indexed, so the sum is written as a user would.
    """
    first, second = a.owner, b.owner
    if first is None or second is None or not isinstance(first.op, DimShuffle) or first.op != second.op:
        return apply_scalar(scalar.add, a, b)
    return first.op.make_node(apply_scalar(scalar.add, *first.inputs, *second.inputs)).outputs[0]


@node_rewriter([AdvancedIncSubtensor])
def local_set_to_inc_subtensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[i].set(x[i] + y) -> x[i].inc(y)."""
    op, (x, y, *numbers) = node.op, node.inputs
    assert isinstance(op, AdvancedIncSubtensor)
    operands = operands_of(y, scalar.add) if op.set_instead_of_inc else None
    for part, other in (operands, operands[::-1]) if operands else ():
        source = part.owner
        if source is None or source.op != AdvancedSubtensor(op.entries) or source.inputs[0] is not x:
            continue
        if not are_equal(source.inputs[1:], numbers) or not _selects_each_once(fgraph, x, op, numbers):
            continue
        if tensor_type_of(other).broadcastable != tensor_type_of(part).broadcastable:
            continue
        return typed_alike(node, AdvancedIncSubtensor(op.entries).make_node(x, other, *numbers).outputs[0])
    return None
