"""Lengths of axes, taken from what a tensor is computed from: a shape keeps no computation alive."""

from __future__ import annotations

from functools import reduce

from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.rewriting.pattern import apply_scalar, scalar_value, tensor_type_of
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import add
from engine.tensor import (
    AdvancedIncSubtensor1,
    AdvancedSubtensor1,
    Alloc,
    DimShuffle,
    Dot,
    Elemwise,
    IncSubtensor,
    Join,
    LogSoftmax,
    MakeVector,
    Reshape,
    Shape_i,
    Softmax,
    Subtensor,
    WrapIndex,
    shape_i,
)
from engine.tensor.reduction import Reduction
from engine.tensor.slicing import FULL, INTEGER

Axis = tuple[Variable, int]
"""A tensor and the number of one of its axes."""


@node_rewriter([Shape_i])
def local_shape_i(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """shape_i(f(x)) -> shape_i(x), as far up as it goes; a known length -> a constant."""
    op = node.op
    assert isinstance(op, Shape_i)
    x, axis = node.inputs[0], op.i
    while tensor_type_of(x).shape[axis] is None:
        source = _source(x, axis)
        if source is None:
            break
        if isinstance(source, Variable):
            return [source]
        x, axis = source
    if x is node.inputs[0]:
        return None if tensor_type_of(x).shape[axis] is None else [shape_i(x, axis)]
    return [shape_i(x, axis)]


def _source(x: Variable, axis: int) -> Axis | Variable | None:
    """Where the length of `x` along `axis` comes from: another axis, a variable that is it, or x itself (None)."""
    node = x.owner
    if node is None:
        return None
    op, inputs = node.op, node.inputs
    if isinstance(op, Elemwise):
        return next(((v, axis) for v in inputs if not tensor_type_of(v).broadcastable[axis]), None)
    if isinstance(op, DimShuffle):
        place = op.new_order[axis]
        return None if isinstance(place, str) else (inputs[0], place)
    if isinstance(op, Reduction):
        kept = [a for a in range(tensor_type_of(inputs[0]).ndim) if a not in op.axis]
        return inputs[0], kept[axis]
    if isinstance(op, Dot):
        return (inputs[0], 0) if axis == 0 and tensor_type_of(inputs[0]).ndim == 2 else (inputs[1], 1)
    if isinstance(op, AdvancedSubtensor1):
        return (inputs[1], 0) if axis == 0 else (inputs[0], axis)
    if isinstance(op, AdvancedIncSubtensor1 | IncSubtensor | WrapIndex | Softmax | LogSoftmax):
        return inputs[0], axis
    if isinstance(op, Alloc):
        return inputs[1 + axis]
    if isinstance(op, Join):
        return (inputs[0], axis) if axis != op.axis else _sum([shape_i(v, axis) for v in inputs])
    if isinstance(op, Subtensor):
        return _source_of_part(op, inputs[0], axis)
    if isinstance(op, Reshape) and scalar_value(inputs[1 + axis]) is None:
        return inputs[1 + axis]
    return None


def _sum(lengths: list[Variable]) -> Variable:
    return reduce(lambda total, length: apply_scalar(add, total, length), lengths)


def _source_of_part(op: Subtensor, x: Variable, axis: int) -> Axis | None:
    """The axis of `x` that is `axis` of the part, if all of it is in the part."""
    entries = op.entries + (FULL,) * (tensor_type_of(x).ndim - len(op.entries))
    source = [a for a, entry in enumerate(entries) if entry != INTEGER][axis]
    return (x, source) if entries[source] == FULL else None


@node_rewriter([Subtensor])
def local_subtensor_make_vector(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """MakeVector(a, b, ...)[1] -> b."""
    op, vector = node.op, node.inputs[0].owner
    assert isinstance(op, Subtensor)
    if vector is None or not isinstance(vector.op, MakeVector) or op.entries != (INTEGER,):
        return None
    position = scalar_value(node.inputs[1])
    if position is None or not -len(vector.inputs) <= position < len(vector.inputs):
        return None
    return [vector.inputs[position]]
