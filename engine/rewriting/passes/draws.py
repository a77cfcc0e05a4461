"""Draws of other shapes instead of parts and arrangements of draws: `normal(mu)[0]` as `normal(mu[0])`.

The numbers are others, of the same distribution, so no function is compiled with these rewrites: libraries
apply them to models (densities of parts), by PyTensor's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.random.op import RandomVariable, RNGConsumerOp
from engine.random.size import as_vector, broadcast_params
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedSubtensor, DimShuffle, Shape_i, Subtensor, dimshuffle
from engine.tensor.conversion import number
from engine.tensor.index_entries import index_of
from engine.tensor.index_shapes import indexed_result_shape
from engine.tensor.masks import is_mask, nonzero
from engine.tensor.none_type import NoneConst, NoneTypeT
from engine.tensor.rearranging import broadcast_to
from engine.tensor.shape import elements_of, folded_shape_i

WHOLE = slice(None)


@node_rewriter([RandomVariable])
def local_rv_size_lift(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """normal(mu, sigma, size=(n, m)) -> normal of the parameters, repeated n x m times."""
    op = node.op
    assert isinstance(op, RandomVariable)
    rng, size, *params = node.inputs
    if isinstance(size.type, NoneTypeT):
        return None
    lengths = elements_of(size)
    repeated = [
        broadcast_to(param, [*lengths, *[folded_shape_i(param, axis - ndim) for axis in range(ndim)]])
        for param, ndim in zip(broadcast_params(params, op.ndims_params), op.ndims_params, strict=True)
    ]
    return list(op.make_node(rng, NoneConst, *repeated).outputs)


@node_rewriter([DimShuffle])
def local_dimshuffle_rv_lift(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """normal(mu, sigma).T -> normal(mu.T, sigma.T), of the axes of a batch, if nothing else reads it."""
    op = node.op
    assert isinstance(op, DimShuffle)
    draw = _draw_for(fgraph, node)
    if draw is None:
        return None
    batch = draw.op.batch_ndim(draw)
    ndim = draw.outputs[1].type.ndim
    order: list[Any] = list(op.new_order)
    count = len(order) - (ndim - batch)
    axes = order[:count]
    if order[count:] != list(range(batch, ndim)) or len(axes) - axes.count("x") != batch:
        return None  # the axes of one draw would move, or an axis would be dropped
    rng, size, *params = draw.inputs
    if not isinstance(size.type, NoneTypeT):
        lengths = elements_of(size)
        size = as_vector([number(1, "int64") if axis == "x" else lengths[axis] for axis in axes])
    moved = [
        dimshuffle(param, [*axes, *range(batch, batch + core)])
        for param, core in zip(params, draw.op.ndims_params, strict=True)
    ]
    return _redrawn(draw, node, draw.op.make_node(rng, size, *moved))


@node_rewriter([Subtensor, AdvancedSubtensor])
def local_subtensor_rv_lift(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """normal(mu, sigma)[i] -> normal(mu[i], sigma[i]), of the axes of a batch, if nothing else reads it.

    Integers, slices and masks: an array of integers could select a number twice.
    """
    op = node.op
    assert isinstance(op, Subtensor | AdvancedSubtensor)
    draw = _draw_for(fgraph, node)
    if draw is None:
        return None
    index = _of_batch(draw, index_of(op.entries, node.inputs[1:]))
    if index is None:
        return None
    rng, size, *params = draw.inputs
    drawn = draw.outputs[1].type
    if not isinstance(size.type, NoneTypeT):
        lengths = indexed_result_shape(elements_of(size), index)
        size = as_vector(lengths)
    parts = [_part(param, index, drawn.broadcastable) for param in params]
    return _redrawn(draw, node, draw.op.make_node(rng, size, *parts))


def _draw_for(fgraph: FunctionGraph, node: Apply) -> Any:
    """Return the node that draws the numbers that `node` is given, if nothing else reads them."""
    numbers = node.inputs[0]
    draw = numbers.owner
    if draw is None or not isinstance(draw.op, RandomVariable) or numbers is not draw.outputs[1]:
        return None
    readers = [client for client, _ in fgraph.clients[numbers]]
    return draw if all(each is node or isinstance(each.op, Shape_i) for each in readers) else None


def _redrawn(draw: Apply, node: Apply, new: Apply) -> dict[Variable, Variable] | None:
    """Return the outputs of `new` for those of `draw` and of what arranged its numbers."""
    if not node.outputs[0].type.is_super(new.outputs[1].type):
        return None
    if draw.outputs[1].name:
        new.outputs[1].name = f"{draw.outputs[1].name}_lifted"
    return {node.outputs[0]: new.outputs[1], draw.outputs[0]: new.outputs[0]}


def _of_batch(draw: Apply, index: Sequence[Any]) -> list[Any] | None:
    """Return the index of the axes of the batch; None if one draw is indexed, or by an array of integers."""
    op = draw.op
    assert isinstance(op, RandomVariable)
    batch, found = op.batch_ndim(draw), list(index)
    while found and isinstance(found[-1], slice) and found[-1] == WHOLE:
        found.pop()
    if any(not isinstance(item, slice) and not is_mask(item) and item.type.ndim for item in found):
        return None
    return found if sum(map(_n_axes, found)) <= batch else None


def _n_axes(item: Any) -> int:
    return int(item.type.ndim) if is_mask(item) else 1


def _part(param: Any, index: Sequence[Any], is_one: Sequence[bool]) -> Any:
    """Return the part of a parameter that draws with `index`; axes along which it repeats stay, or go."""
    repeats = [one and not whole for one, whole in zip(param.type.broadcastable, is_one, strict=False)]
    found: list[Any] = []
    axis = 0
    for item in index:
        axes = range(axis, axis + _n_axes(item))
        axis = axes.stop
        if not any(repeats[a] for a in axes):
            found.append(item)
        elif isinstance(item, slice):
            found.append(WHOLE)
        elif is_mask(item):
            places = zip(axes, nonzero(item), strict=True)
            found.extend([number(0, "int64") if repeats[a] else place for a, place in places])
        else:
            found.append(number(0, "int64"))
    return param[tuple(found)]


@node_rewriter([RNGConsumerOp])
def sidestep_unused_rng_consumer(fgraph: FunctionGraph, node: Apply) -> dict[Variable, Variable] | None:
    """The generator after a draw that nothing reads -> the generator before it, which nothing else has."""
    op = node.op
    assert isinstance(op, RNGConsumerOp)
    after = op.update(node)
    if not after or any(fgraph.clients[out] for out in node.outputs if out not in after.values()):
        return None
    if any(len(fgraph.clients[rng]) > 1 for rng in after):
        return None
    return {new: rng for rng, new in after.items() if fgraph.clients[new]}
