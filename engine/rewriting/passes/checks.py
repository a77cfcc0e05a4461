"""Checks that are known to pass, and those of lengths that are made earlier, where they part no loops."""

from __future__ import annotations

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.index_facts import WHOLE, indexed, only_user
from engine.rewriting.passes.axes import is_length
from engine.rewriting.passes.lifted_parts import basic_indices
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import Elemwise, Subtensor
from engine.tensor.checks import Assert, CheckAndRaise, SpecifyShape
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.slicing import IncSubtensor


@node_rewriter([CheckAndRaise])
def local_remove_useless_assert(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """check(x, True, c) -> check(x, c); check(x) -> x."""
    value, *conditions = node.inputs
    open_ones = [condition for condition in conditions if not scalar_value(condition)]
    if len(open_ones) == len(conditions) and conditions:
        return None
    return [node.op.make_node(value, *open_ones).outputs[0] if open_ones else value]


@node_rewriter([Assert])
def local_remove_all_assert(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Assert(x, c) -> x, without knowing that c holds: only where somebody names this rewrite."""
    return [node.inputs[0]]


@node_rewriter([SpecifyShape])
def local_useless_specify_shape(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """specify_shape(x, lengths) -> x, if x has these lengths: by its type, or because they are its own."""
    x, *lengths = node.inputs
    assert isinstance(node.op, SpecifyShape)
    known = [is_length(length, x, axis) for axis, length in zip(node.op.axes, lengths, strict=True)]
    return [x] if all(known) else None


@node_rewriter([SpecifyShape])
def local_lift_specify_shape_elemwise(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """specify_shape(f(x, y), (n,)) -> f(specify_shape(x, (n,)), y), if nothing else uses f(x, y)."""
    value, *lengths = node.inputs
    source = value.owner
    assert isinstance(node.op, SpecifyShape)
    if source is None or not isinstance(source.op, Elemwise) or len(source.outputs) != 1:
        return None
    if len(fgraph.clients[value]) != 1:
        return None
    inputs = list(source.inputs)
    for axis, length in zip(node.op.axes, lengths, strict=True):
        places = [at for at, v in enumerate(inputs) if not tensor_type_of(v).broadcastable[axis]]
        if not places or any(tensor_type_of(inputs[at]).shape[axis] is not None for at in places):
            return None
        inputs[places[0]] = SpecifyShape([axis]).make_node(inputs[places[0]], length).outputs[0]
    result = source.op.make_node(*inputs).outputs[0]
    return typed(node, result)


@node_rewriter([SpecifyShape])
def local_lift_specify_shape_inc_subtensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """specify_shape(x[a:b].set(y), (n,)) -> specify_shape(x, (n,))[a:b].set(y), if nothing else uses the
    tensor with the written part. It has the lengths of x.
    """
    value, *lengths = node.inputs
    source = value.owner
    assert isinstance(node.op, SpecifyShape)
    if source is None or not isinstance(source.op, IncSubtensor) or len(fgraph.clients[value]) != 1:
        return None
    x, *others = source.inputs
    checked = node.op.make_node(x, *lengths).outputs[0]
    result = source.op.make_node(checked, *others).outputs[0]
    return typed(node, result)


@node_rewriter([Subtensor])
def local_subtensor_SpecifyShape_lift(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """specify_shape(x, (n, m))[i] -> specify_shape(specify_shape(x, (n, None))[i], (m,)), for integers.

    What computes x may then compute x[i] alone. The lengths of the axes that go are compared before.
    """
    source, indices = only_user(fgraph, node), basic_indices(node)
    if source is None or not isinstance(source.op, SpecifyShape):
        return None
    gone = [axis for axis, index in enumerate(indices) if index != WHOLE]
    if any(indices[axis][0] != INTEGER for axis in gone):
        return None
    x, *lengths = source.inputs
    due = dict(zip(source.op.axes, lengths, strict=True))
    kept = [axis for axis in due if axis not in gone]
    if not kept:
        return None
    part = indexed(_checked(x, {axis: due[axis] for axis in due if axis in gone}), indices)
    places = {axis - sum(other < axis for other in gone): due[axis] for axis in kept}
    return typed(node, _checked(part, places))


def _checked(x: Variable, due: dict[int, Variable]) -> Variable:
    """Return `x`, whose lengths along the axes in `due` are compared."""
    return SpecifyShape(list(due)).make_node(x, *due.values()).outputs[0] if due else x


@node_rewriter([SpecifyShape])
def local_merge_consecutive_specify_shape(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """specify_shape(specify_shape(x, (n, None)), (None, m)) -> specify_shape(x, (n, m))."""
    inner = node.inputs[0].owner
    assert isinstance(node.op, SpecifyShape)
    if inner is None or not isinstance(inner.op, SpecifyShape):
        return None
    due = dict(zip(inner.op.axes, inner.inputs[1:], strict=True))
    for axis, length in zip(node.op.axes, node.inputs[1:], strict=True):
        if due.setdefault(axis, length) is not length:
            return None
    return [_checked(inner.inputs[0], dict(sorted(due.items())))]
