"""Reorderings of axes and reshapes: those without effect, and two in sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import Alloc, DimShuffle, Elemwise, Reshape, Shape_i, Subtensor, dimshuffle
from engine.tensor.checks import specify_shape
from engine.tensor.matching import scalar_value, tensor_type_of


@node_rewriter([DimShuffle], for_all_dtypes=True)
def local_dimshuffle_lift(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dimshuffle(dimshuffle(x)) -> dimshuffle(x); dimshuffle(x) -> x, if all axes stay in place."""
    op = node.op
    assert isinstance(op, DimShuffle)
    if _keeps_axes(op.new_order, tensor_type_of(node.inputs[0]).shape):
        return typed(node, node.inputs[0])
    result = dimshuffle(node.inputs[0], op.new_order)
    if result.owner is not None and result.owner.op == op and result.owner.inputs[0] is node.inputs[0]:
        return None
    return typed(node, result)


def _keeps_axes(order: Sequence[Any], shape: Sequence[int | None]) -> bool:
    """Return True if `order` has each axis in its place, or a new one in the place of one of length 1."""
    if len(order) != len(shape):
        return False
    return all(place == axis or (place == "x" and shape[axis] == 1) for axis, place in enumerate(order))


@node_rewriter([Reshape])
def local_useless_reshape(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """reshape(x) -> x, if the lengths are those of x; -> specify_shape(x), if all but a constant are.

    That constant is the only one that fits. A reshape of a vector is such a check itself, and says better
    what is wrong.
    """
    x, *lengths = node.inputs
    if tensor_type_of(x).ndim != len(lengths):
        return None
    unknown = [axis for axis, length in enumerate(lengths) if not is_length(length, x, axis)]
    if not unknown or (len(unknown) == 1 and scalar_value(lengths[unknown[0]]) == -1):
        return typed(node, x)
    if len(lengths) == 1 or len(unknown) > 1 or not _has_elements(x, unknown[0]):
        return None
    if (scalar_value(lengths[unknown[0]]) or -1) < 0:
        return None
    return typed(node, specify_shape(x, [n if axis in unknown else None for axis, n in enumerate(lengths)]))


def _has_elements(x: Variable, axis: int) -> bool:
    """Return True if `x` is known to have a length above 0 along all axes but `axis`."""
    return all(length for place, length in enumerate(tensor_type_of(x).shape) if place != axis)


def is_length(length: Variable, x: Variable, axis: int) -> bool:
    """Return True if `length` is the length of `x` along `axis`."""
    known = tensor_type_of(x).shape[axis]
    if known is not None:
        return bool(scalar_value(length) == known)
    node = length.owner
    return node is not None and node.op == Shape_i(axis) and node.inputs[0] is x


@node_rewriter([Reshape])
def local_reshape_of_reshape(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """reshape(reshape(x)) -> reshape(x)."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Reshape):
        return None
    result = node.op.make_node(inner.inputs[0], *node.inputs[1:]).outputs[0]
    return typed(node, result)


@node_rewriter([Reshape])
def local_reshape_lift(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """reshape(f(x)) -> f(reshape(x)), of an input x, if nothing else uses f(x): one loop can do f and what
    follows.

    Of a computed x, the loop that computes it would be parted from that of f.
    """
    value, *lengths = node.inputs
    source = value.owner
    if source is None or not isinstance(source.op, Elemwise) or len(fgraph.clients[value]) != 1:
        return None
    if len(source.inputs) != 1 or len(source.outputs) != 1 or source.inputs[0].owner is not None:
        return None
    reshaped = node.op.make_node(source.inputs[0], *lengths).outputs[0]
    result = source.op.make_node(reshaped).outputs[0]
    return typed(node, result)


@node_rewriter([Reshape])
def local_reshape_to_dimshuffle(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """reshape(x, (1, n, 1)) -> dimshuffle(x, "x", 0, "x"), if only axes of length 1 come and go; a length of
    -1 is 1 for one element. For a shape of ones all axes go: that checks their lengths.
    """
    x, *lengths = node.inputs
    shape = tensor_type_of(x).shape
    axes = [axis for axis, length in enumerate(shape) if length != 1]
    places = [place for place, length in enumerate(lengths) if scalar_value(length) != 1]
    if not axes and [scalar_value(lengths[place]) for place in places] == [-1]:
        places = []
    if not places and all(length in (1, None) for length in shape):
        axes = []
    if len(axes) != len(places):
        return None
    pairs = list(zip(axes, places, strict=True))
    unknown = [place for axis, place in pairs if not is_length(lengths[place], x, axis)]
    if unknown and (len(unknown) > 1 or scalar_value(lengths[unknown[0]]) != -1):
        return None
    sources: dict[int, int] = {place: axis for axis, place in pairs}
    result = dimshuffle(x, [sources.get(place, "x") for place in range(len(lengths))])
    return typed(node, result)


@node_rewriter([Alloc])
def local_alloc_sink_dimshuffle(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """alloc(x, 1, n) -> alloc(x, n) with a new axis in front."""
    value, *lengths = node.inputs
    shape = tensor_type_of(value).shape
    count = 0
    while count < len(lengths) and scalar_value(lengths[count]) == 1 == shape[count]:
        count += 1
    if not count:
        return None
    inner: Variable = dimshuffle(value, range(count, len(lengths)))
    if count < len(lengths):
        inner = Alloc().make_node(inner, *lengths[count:]).outputs[0]
    result = dimshuffle(inner, ["x"] * count + list(range(len(lengths) - count)))
    return typed(node, result)


@node_rewriter([Alloc])
def local_useless_alloc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """alloc(x, n, m) -> specify_shape(x, (n, m)), if no axis of x is repeated."""
    value, *lengths = node.inputs
    known = tensor_type_of(value).shape
    if any(own == 1 != scalar_value(length) for own, length in zip(known, lengths, strict=True)):
        return None
    due = [None if is_length(length, value, axis) else length for axis, length in enumerate(lengths)]
    return typed(node, specify_shape(value, due) if due else value)


@node_rewriter([Subtensor])
def local_useless_subtensor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[...] -> x."""
    op = node.op
    assert isinstance(op, Subtensor)
    return None if op.entries else [node.inputs[0]]
