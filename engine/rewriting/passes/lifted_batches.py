"""Parts of batches as batches of parts: `(A @ B)[i]` is `A[i] @ B[i]`, a product of two matrices.

Like PyTensor's `local_subtensor_of_batch_dims`. The engine's Ops that refuse some matrices, singular ones,
look at all of them as before: the part might be one that they do not refuse.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.base import HasInnerGraph
from engine.rewriting.index_facts import WHOLE, Index, indexed, only_user
from engine.rewriting.passes.lifted_parts import basic_indices, lengths_fit, operand_part, split_at
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import Subtensor
from engine.tensor.blockwise import Blockwise
from engine.tensor.index_entries import INTEGER
from engine.tensor.linalg.matrix_op import MatrixOp
from engine.tensor.matching import tensor_type_of
from engine.tensor.replaced_op import ReplacedOp

REFUSING = (MatrixOp, ReplacedOp, HasInnerGraph)
"""Ops that may refuse an element of a batch, and those that may consist of such."""


@node_rewriter([Subtensor])
def local_subtensor_of_blockwise(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(x, y)[i] -> f(x[i], y[i]) at each place of batches whose lengths are known to fit; an index of the
    axes of one place stays outside.
    """
    source = only_user(fgraph, node)
    if source is None or not isinstance(source.op, Blockwise) or isinstance(source.op.core_op, REFUSING):
        return None
    whole = source.outputs[0]
    count, ndim = source.op.batch_ndim(source), tensor_type_of(whole).ndim
    inside, outside = split_at(range(count, ndim), basic_indices(node))
    batch = inside[:count]
    if all(index == WHOLE for index in batch) or not lengths_fit(source, batch):
        return None
    if not _has_places(batch, tensor_type_of(node.outputs[0]).shape):
        return None
    parts = []
    for v in source.inputs:
        _, chosen = operand_part(v, whole, batch)
        if chosen is None:
            return None
        parts.append(indexed(v, chosen))
    return typed(node, indexed(source.op.make_node(*parts).outputs[0], outside))


def _has_places(batch: Sequence[Index], selected: Sequence[int | None]) -> bool:
    """Return True if no slice in `batch` may select nothing. Of a batch without places, nothing would compare
    the lengths within. `selected` are the lengths of what the indices select.
    """
    slices = [index for index in batch if index[0] != INTEGER]
    return all(index == WHOLE or length for index, length in zip(slices, selected, strict=False))
