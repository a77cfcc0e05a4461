"""Parts of tensors that were changed, filled or sliced before.

Like PyTensor's rewrites, these trust indices that only a removed part would have checked.
"""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.scan import Scan
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.index_facts import are_equal
from engine.rewriting.passes.selected_writes import selection_of_increment
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedSubtensor, IncSubtensor, Subtensor
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import operands_of, scalar_value, tensor_type_of

REVERSE = ("::c",)


@node_rewriter([Subtensor])
def local_reverse_twice(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[::-1][::-1] -> x."""
    before = node.inputs[0].owner
    if before is None or not (_reverses(node) and _reverses(before)):
        return None
    x = before.inputs[0]
    return typed(node, x)


def _reverses(node: Apply) -> bool:
    return node.op == Subtensor(REVERSE) and scalar_value(node.inputs[1]) == -1


@node_rewriter([Subtensor, AdvancedSubtensor])
def local_read_of_write_same_indices(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Take a part of a changed tensor from its sources.

    set(x[i], y)[i] -> y; inc(x[i], y)[i] -> x[i] + y, of zeros, too: that makes 0.0 of -0.0; and x[:k] of x
    changed from row k on -> x[:k]. Of an index with arrays only inc(x[i], y)[i].
    """
    if isinstance(node.op, AdvancedSubtensor):
        return selection_of_increment(fgraph, node)
    before = node.inputs[0].owner
    if before is None or not isinstance(before.op, IncSubtensor):
        return None
    assert isinstance(node.op, Subtensor)
    x, y, *changed = before.inputs
    numbers = node.inputs[1:]
    output = node.outputs[0]
    if before.op.entries == node.op.entries and are_equal(changed, numbers):
        if not before.op.set_instead_of_inc:
            part = node.op.make_node(x, *numbers).outputs[0]
            return typed(node, apply_scalar(scalar.add, part, y))
        if tensor_type_of(y).broadcastable != tensor_type_of(output).broadcastable:
            y = apply_scalar(scalar.second, node.op.make_node(x, *numbers).outputs[0], y)
        return typed(node, y)
    if node.op.entries == (":b",) and before.op.entries in (("a:",), (INTEGER,)):
        stop, start = scalar_value(numbers[0]), scalar_value(changed[0])
        if stop is not None and start is not None and 0 <= stop <= start:
            return [node.op.make_node(x, *numbers).outputs[0]]
    return None


@node_rewriter([Subtensor])
def local_subtensor_of_fill(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """second(a, b)[slices] -> second(a[slices], b), if b has length 1 along the sliced axes."""
    assert isinstance(node.op, Subtensor)
    operands = operands_of(node.inputs[0], scalar.second)
    entries = node.op.entries
    if operands is None or INTEGER in entries:
        return None
    template, value = operands
    if not all(tensor_type_of(value).broadcastable[axis] for axis in range(len(entries))):
        return None
    part = node.op.make_node(template, *node.inputs[1:]).outputs[0]
    result = apply_scalar(scalar.second, part, value)
    return typed(node, result)


@node_rewriter([Subtensor])
def local_initial_rows(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """The first rows of the buffer of a Scan -> its initial rows."""
    assert isinstance(node.op, Subtensor)
    buffer, entries = node.inputs[0], node.op.entries
    scan = buffer.owner
    if scan is None or not isinstance(scan.op, Scan) or entries[:1] not in ((":b",), (INTEGER,)):
        return None
    info, state, number = scan.op.info, buffer.index, scalar_value(node.inputs[1])
    assert state is not None
    if state >= info.n_states or info.keeps[state] is not None or number is None:
        return None
    given = info.n_initial(state)
    if not 0 <= number < given + (entries[0] != INTEGER):
        return None
    initial = info.outer_inputs(scan.inputs).initials[state]
    result = node.op.make_node(initial, *node.inputs[1:]).outputs[0]
    if entries == (":b",) and number == given:
        result = initial
    return typed(node, result)
