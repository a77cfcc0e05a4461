"""Rewriting of Blockwise Ops as loops, after the graph around has its canonical form.

Lengths are taken from inputs before: a batch of which only the shape is used is no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.inner.batch_loop import batch_lengths, looped, one_for_all
from engine.rewriting.database import Description, EquilibriumDB, RewriteDatabase
from engine.rewriting.equilibrium import EquilibriumGraphRewriter, replace_outputs
from engine.rewriting.rewriters import GraphRewriter, RewriteReport, node_rewriter
from engine.scalar import Cast
from engine.scalar.promotion import COMPILED
from engine.tensor.blockwise import Blockwise
from engine.tensor.creation import Alloc, alloc
from engine.tensor.elemwise import Elemwise, cast, dimshuffle
from engine.tensor.linalg.callback_op import CallbackOp
from engine.tensor.matching import DEEPEST, tensor_type_of
from engine.tensor.math import mul
from engine.tensor.products import Dot, matrix_product
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import expand_dims, folded_shape_i, reshape
from engine.tensor.signature import parsed


class BatchRewriter(GraphRewriter):
    """A rewrite of every Blockwise that is no callback as a loop, and of the new nodes around by
    `canonicalize`.
    """

    def __init__(self, name: str, canonicalize: EquilibriumGraphRewriter) -> None:
        self.name = name
        self.canonicalize = canonicalize

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        if any(isinstance(node.op, Blockwise) for node in fgraph.apply_nodes):
            self.canonicalize.apply_after(lambda: self._change(fgraph, report), fgraph, report)

    def _change(self, fgraph: FunctionGraph, report: RewriteReport) -> bool:
        for node in fgraph.toposort():
            if isinstance(node.op, Blockwise) and not _is_one_callback(node):
                replace_outputs(fgraph, node, without_blockwise(node), self.name)
                report.count(self.name)
        return True


def _is_one_callback(node: Apply) -> bool:
    """Return True for a Blockwise that Python computes at once."""
    op = node.op
    assert isinstance(op, Blockwise)
    if not isinstance(op.core_op, CallbackOp):
        return False
    return op.core_op.is_called_back or tensor_type_of(node.inputs[0]).dtype not in COMPILED


class BatchDB(RewriteDatabase[Any]):
    """The rewrite of Blockwise Ops, with those of `canonicalize` for the graph around."""

    def __init__(self, name: str, canonicalize: EquilibriumDB) -> None:
        super().__init__(name)
        self.canonicalize = canonicalize

    def query(self, *query: RewriteDatabaseQuery | str) -> BatchRewriter:
        """Return the rewriter of Blockwise Ops, with what `query` chooses for the graph around."""
        return BatchRewriter(self.name, self.canonicalize.query(*query))

    def describe(self, query: RewriteDatabaseQuery) -> Description:
        return self.canonicalize.describe(query)


@node_rewriter([Blockwise])
def local_useless_blockwise(fgraph: FunctionGraph, node: Apply) -> Sequence[Variable] | None:
    """f at each place of no batch -> f; at each place of a batch -> what f is on a batch, if no Blockwise.

    A signature with a length, "(2,n)", knows more than f, and stays.
    """
    op, inputs = node.op, node.inputs
    assert isinstance(op, Blockwise)
    if any(name.isdigit() for axes in parsed(op.signature).outputs for name in axes):
        return None
    core = op.core_node(inputs)
    is_one = op.batch_ndim(node) == 0
    found = op.core_op.make_node(*inputs).outputs if is_one else core.op.vectorized(core, inputs)
    if found is None or any(v.owner is not None and isinstance(v.owner.op, Blockwise) for v in found):
        return None
    return [as_typed(new, old) for new, old in zip(found, node.outputs, strict=True)]


@node_rewriter([Blockwise])
def local_blockwise_alloc(fgraph: FunctionGraph, node: Apply) -> Sequence[Variable] | None:
    """alloc(x, n) at each place of a batch -> an alloc of the batch, if n is the same at all places."""
    op, (value, *lengths) = node.op, node.inputs
    assert isinstance(op, Blockwise)
    count = op.batch_ndim(node)
    if not isinstance(op.core_node(node.inputs).op, Alloc):
        return None
    numbers = [_number_in(length, tensor_type_of(value).shape[:count]) for length in lengths]
    if None in numbers:
        return None
    found = alloc(value, [*(folded_shape_i(value, axis) for axis in range(count)), *numbers])
    return [as_typed(found, node.outputs[0])]


def _number_in(length: Variable, batch: Sequence[int | None], steps: int = DEEPEST) -> Any:
    """Return the number that all elements of `length` are; None if that is not known.

    It is not used, either, if its shape may not be one that `batch` has along axes of another length than 1.
    """
    known = tensor_type_of(length)
    if all(known.broadcastable):
        return dimshuffle(length, ())
    if any(own != 1 and (own is None or own != due) for own, due in zip(known.shape, batch, strict=True)):
        return None
    node = length.owner
    is_cast = node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast)
    if node is None or not (is_cast or isinstance(node.op, Alloc)) or not steps:
        return None
    found = _number_in(node.inputs[0], batch, steps - 1)
    return None if found is None else cast(found, known.dtype)


def without_blockwise(node: Apply) -> Sequence[Variable]:
    """Return what a Blockwise node computes as a loop over the batch.

    A product of all matrices with one is one product of their rows; one with rows or columns is a product of
    elements and a sum, which are one loop.
    """
    op, inputs = node.op, node.inputs
    assert isinstance(op, Blockwise)
    count, core = op.batch_ndim(node), op.core_node(node.inputs)
    if count == 0:
        return core.clone_with_new_inputs(inputs).outputs
    if isinstance(core.op, Dot) and (vectors := _product_of_vectors(core, *inputs)) is not None:
        return [as_typed(vectors, node.outputs[0])]
    is_one = all(tensor_type_of(inputs[-1]).broadcastable[:count])
    if isinstance(core.op, Dot) and is_one and [tensor_type_of(v).ndim for v in core.inputs] == [2, 2]:
        found = [_rows_times(inputs[0], one_for_all(inputs[1], count), count)]
    else:
        batch = batch_lengths(inputs, count)
        found = looped(inputs, batch, lambda parts: core.clone_with_new_inputs(parts, strict=False).outputs)
        if any(tensor_type_of(v).dtype not in COMPILED for v in inputs):
            found = _with_lengths(found, op, inputs, count)
    return [as_typed(new, old) for new, old in zip(found, node.outputs, strict=True)]


def _product_of_vectors(core: Apply, x: Any, y: Any) -> Any:
    """Return the sum of the products of the rows `x`, or the columns `y`, with the other matrices; None if
    they are neither, or if one length of the sum is known to be 1: then elements would be repeated.
    """
    rows, columns = (tensor_type_of(v) for v in core.inputs)
    if [rows.ndim, columns.ndim] != [2, 2] or 1 in (rows.shape[1], columns.shape[0]):
        return None
    place = x.type.ndim - 2
    one_row, one_column = rows.shape[0] == 1, columns.shape[1] == 1
    batch = range(place)
    if one_column:  # of one row, too, the products need no axis of it
        left = dimshuffle(x, (*batch, place + 1)) if one_row else x
        right = dimshuffle(y, (*batch, place) if one_row else (*batch, "x", place))
        axis = place if one_row else place + 1
    elif one_row:
        left, right, axis = dimshuffle(x, (*batch, place + 1, "x")), y, place
    else:
        return None
    dtype = core.outputs[0].type.dtype
    total = sum_over(mul(cast(left, dtype), cast(right, dtype)), axis, dtype=dtype)
    return expand_dims(total, (place, place + 1) if one_row and one_column else axis)


def _rows_times(x: Any, y: Any, count: int) -> Any:
    """Return the products of the matrices of `x` with the matrix `y`: one product of their rows."""
    lengths = [folded_shape_i(x, axis) for axis in range(count + 1)]
    rows = reshape(x, (reduce(mul, lengths), folded_shape_i(x, count + 1)))
    return reshape(matrix_product(rows, y), (*lengths, folded_shape_i(y, 1)))


def _with_lengths(found: Sequence[Any], op: Blockwise, inputs: Sequence[Any], count: int) -> list[Any]:
    """Return `found` in the lengths of the signature: a loop over no places tells none of callbacks."""
    signature = parsed(op.signature)
    lengths: dict[str, Any] = {}
    for variable, axes in zip(inputs, signature.inputs, strict=True):
        first = variable.type.ndim - len(axes)
        for axis, name in enumerate(axes, first):
            lengths.setdefault(name, folded_shape_i(variable, axis))
    return [
        reshape(
            new,
            [
                *(folded_shape_i(new, axis) for axis in range(count)),
                *(lengths.get(name, folded_shape_i(new, axis)) for axis, name in enumerate(axes, count)),
            ],
        )
        for new, axes in zip(found, signature.outputs, strict=True)
    ]


def as_typed(new: Any, old: Variable) -> Any:
    """Return `new` with every static length that `old` has."""
    known = tensor_type_of(old)
    shape = [
        folded_shape_i(new, axis) if length is None else length for axis, length in enumerate(known.shape)
    ]
    return new if known.is_super(new.type) else reshape(new, shape)
