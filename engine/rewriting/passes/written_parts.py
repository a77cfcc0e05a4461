"""Parts of tensors that are written once more, or with what is there, and tensors written as a whole.

Like PyTensor's rewrites, these trust shapes that only a removed write would have checked. They keep the order
of additions, and the signs of zeros: adding 0.0 to a part stays, since it makes 0.0 of -0.0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.index_facts import are_equal
from engine.rewriting.passes.selected_writes import increment_of_selection
from engine.rewriting.replacing import typed_alike
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor import AdvancedIncSubtensor, Alloc, DimShuffle, IncSubtensor, Reshape, Subtensor
from engine.tensor.index_entries import FULL
from engine.tensor.matching import dtype_of, operands_of, scalar_value
from engine.tensor.type import is_data

_SAME_ELEMENTS = (Alloc, DimShuffle, Reshape, Subtensor)
"""Ops all of whose elements are elements of their first input."""


@node_rewriter([IncSubtensor, AdvancedIncSubtensor])
def local_write_of_write_same_indices(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[i].set(a)[i].set(b) -> x[i].set(b); x[i].set(a)[i].inc(b) -> x[i].set(a + b).

    Of an index with arrays only the second.
    """
    if isinstance(node.op, AdvancedIncSubtensor):
        return increment_of_selection(fgraph, node)
    op, before = node.op, node.inputs[0].owner
    assert isinstance(op, IncSubtensor)
    if before is None or not isinstance(before.op, IncSubtensor) or before.op.entries != op.entries:
        return None
    if len(fgraph.clients[node.inputs[0]]) != 1 or not are_equal(before.inputs[2:], node.inputs[2:]):
        return None
    (x, a), b = before.inputs[:2], node.inputs[1]
    if not op.set_instead_of_inc and not before.op.set_instead_of_inc:
        return None
    written = b if op.set_instead_of_inc else apply_scalar(scalar.add, a, b)
    new = IncSubtensor(op.entries, set_instead_of_inc=True).make_node(x, written, *node.inputs[2:])
    return typed_alike(node, new.outputs[0])


@node_rewriter([IncSubtensor])
def local_useless_inc_subtensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[:].set(y) -> y; x[:].inc(y) -> x + y; x[::-1].set(y) -> y[::-1]."""
    op, (x, y, *numbers) = node.op, node.inputs
    assert isinstance(op, IncSubtensor)
    if any(entry not in (FULL, "::c") for entry in op.entries):
        return None
    if any(scalar_value(step) != -1 for step in numbers):
        return None
    part = Subtensor(op.entries).make_node(y, *numbers).outputs[0] if op.entries else y
    return typed_alike(node, apply_scalar(scalar.second if op.set_instead_of_inc else scalar.add, x, part))


@node_rewriter([IncSubtensor, AdvancedIncSubtensor])
def local_setsubtensor_of_constants(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """zeros[i].set(0) -> zeros; zeros[i].inc(0) -> zeros; n[i].inc(0) -> n for whole numbers."""
    op: Any = node.op
    x, y = node.inputs[:2]
    there, written = number_in(x), number_in(y)
    if written is None or math.isnan(written):
        return None
    is_same = there == written and math.copysign(1, there) == math.copysign(1, written)
    is_nothing = written == 0 and (is_same or dtype_of(x) not in FLOATS)
    return [x] if (is_same if op.set_instead_of_inc else is_nothing) else None


def number_in(variable: Variable) -> Any:
    """Return the real number that every element of `variable` is, or None."""
    filled = operands_of(variable, scalar.second)
    if filled is not None:
        return number_in(filled[1])
    node = variable.owner
    if node is not None:
        return number_in(node.inputs[0]) if isinstance(node.op, _SAME_ELEMENTS) else None
    if not isinstance(variable, Constant) or is_data(variable) or not variable.data.size:
        return None
    first = variable.data.flat[0]
    is_one = not np.iscomplexobj(first) and variable.data.tobytes() == first.tobytes() * variable.data.size
    return first.item() if is_one else None
