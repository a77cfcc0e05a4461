"""Axes of length 1 that come or go beside another view, which gives their place by itself."""

from __future__ import annotations

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.index_facts import WHOLE, indexed, only_user
from engine.rewriting.passes.lifted_parts import basic_indices
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import Alloc, DimShuffle, Reshape, Subtensor, dimshuffle
from engine.tensor.conversion import number
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import scalar_value, tensor_type_of


@node_rewriter([Reshape])
def local_reshape_dimshuffle(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """reshape(dimshuffle(x, "x", 1, 0), s) -> reshape(dimshuffle(x, 1, 0), s).

    So reshape(dimshuffle(x, "x", 0), s) is reshape(x, s), also if axes go that are known to have length 1.
    """
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, DimShuffle):
        return None
    (x,), order = inner.inputs, list(inner.op.shuffle)
    if order == sorted(order) and all(tensor_type_of(x).shape[axis] == 1 for axis in inner.op.drop):
        order = list(range(tensor_type_of(x).ndim))
    elif not inner.op.augment:
        return None
    result = node.op.make_node(dimshuffle(x, order), *node.inputs[1:]).outputs[0]
    return typed(node, result)


@node_rewriter([DimShuffle])
def local_fuse_expand_dims_reshape(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dimshuffle(reshape(x, (n, 1, m)), 0, 2, "x") -> reshape(x, (n, m, 1)), if nothing else uses the
    reshape, which may be a copy.
    """
    op, inner = node.op, only_user(fgraph, node)
    assert isinstance(op, DimShuffle)
    if inner is None or not isinstance(inner.op, Reshape) or list(op.shuffle) != sorted(op.shuffle):
        return None
    x, *lengths = inner.inputs
    if any(scalar_value(lengths[axis]) != 1 for axis in op.drop):
        return None
    one = number(1, "int64")
    shape = [one if isinstance(place, str) else lengths[place] for place in op.new_order]
    return typed(node, Reshape(len(shape)).make_node(x, *shape).outputs[0])


@node_rewriter([DimShuffle])
def local_dimshuffle_subtensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """squeeze(x[n:, :], 1) -> x[n:, 0], if the axis that goes is a whole axis of x, of length 1.

    The canonical form is the other one: `local_subtensor_remove_broadcastable_index` makes it.
    """
    part, op = node.inputs[0].owner, node.op
    assert isinstance(op, DimShuffle)
    if (
        part is None
        or not isinstance(part.op, Subtensor)
        or op.augment
        or list(op.shuffle) != sorted(op.shuffle)
    ):
        return None
    x, indices = part.inputs[0], basic_indices(part)
    indices += [WHOLE] * (tensor_type_of(x).ndim - len(indices))
    kept = [axis for axis, (entry, _) in enumerate(indices) if entry != INTEGER]
    ones = [kept[place] for place in op.drop]
    if not ones or any(indices[axis] != WHOLE or tensor_type_of(x).shape[axis] != 1 for axis in ones):
        return None
    first = (INTEGER, (number(0, "int64"),))
    result = indexed(x, [first if axis in ones else index for axis, index in enumerate(indices)])
    return typed(node, result)


@node_rewriter([DimShuffle])
def local_dimshuffle_alloc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dimshuffle(alloc(x, n, m), "x", 0, 1) -> alloc(x, 1, n, m).

    The canonical form is the other one: `local_alloc_sink_dimshuffle` makes it.
    """
    repeated, op = node.inputs[0].owner, node.op
    assert isinstance(op, DimShuffle)
    if repeated is None or not isinstance(repeated.op, Alloc):
        return None
    value, *lengths = repeated.inputs
    n_new = len(op.new_order) - len(lengths)
    if op.new_order != ("x",) * n_new + tuple(range(len(lengths))):
        return None
    ones = [number(1, "int64") for _ in range(n_new)]
    return typed(node, Alloc().make_node(dimshuffle(value, op.new_order), *ones, *lengths).outputs[0])
