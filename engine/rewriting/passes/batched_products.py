"""Products of batches of vectors as products of fewer and larger matrices.

Of specialized forms alone: in functions a product with vectors is one loop of products of elements and a sum
(`batches`), whatever the lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.batches import as_typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.blockwise import Blockwise
from engine.tensor.elemwise import dimshuffle
from engine.tensor.matching import tensor_type_of
from engine.tensor.math import mul
from engine.tensor.products import Dot
from engine.tensor.shape import folded_shape_i, reshape


@node_rewriter([Blockwise])
def local_batched_matmul_to_core_matmul_with_reshape(
    fgraph: FunctionGraph, node: Apply
) -> list[Variable] | None:
    """A (m, k) times each of n columns (n, k, 1) -> A times the matrix (k, n), and so for rows.

    Only axes are merged along which the type tells that the other operand has length 1.
    """
    op, (x, y) = node.op, node.inputs[:2]
    assert isinstance(op, Blockwise)
    count = op.batch_ndim(node)
    if not isinstance(op.core_op, Dot) or [tensor_type_of(v).ndim - count for v in (x, y)] != [2, 2]:
        return None
    one_row, one_column = tensor_type_of(x).broadcastable[-2], tensor_type_of(y).broadcastable[-1]
    rows = _repeated_for(y, x, count) if one_row else []
    columns = _repeated_for(x, y, count) if one_column else []
    if not rows and not columns:
        return None
    return [as_typed(_merged(x, y, count, rows, columns), node.outputs[0])]


def _repeated_for(one: Variable, other: Variable, count: int) -> list[int]:
    """Return the batch axes along which `one` is known to have length 1, and `other` not."""
    pairs = zip(tensor_type_of(one).broadcastable, tensor_type_of(other).broadcastable, strict=True)
    return [axis for axis, (single, several) in enumerate(pairs) if axis < count and single and not several]


def _merged(x: Any, y: Any, count: int, rows: Sequence[int], columns: Sequence[int]) -> Any:
    """Return the product of `x` and `y`, with the axes `rows` of `x` as rows, `columns` of `y` as columns."""
    kept = [axis for axis in range(count) if axis not in (*rows, *columns)]
    row_axes, column_axes = rows or [count], columns or [count + 1]
    left = dimshuffle(x, [*kept, *row_axes, count + 1])
    right = dimshuffle(y, [*kept, count, *column_axes])
    row_lengths = [folded_shape_i(x, axis) for axis in row_axes]
    column_lengths = [folded_shape_i(y, axis) for axis in column_axes]
    left = reshape(left, [*_first(left, len(kept)), _product(row_lengths), folded_shape_i(x, count + 1)])
    right = reshape(right, [*_first(right, len(kept)), folded_shape_i(y, count), _product(column_lengths)])
    product: Any = Blockwise(Dot(), "(m,k),(k,n)->(m,n)")(left, right)
    apart = reshape(product, [*_first(product, len(kept)), *row_lengths, *column_lengths])
    places = {axis: place for place, axis in enumerate((*kept, *row_axes, *column_axes))}
    return dimshuffle(apart, [places.get(axis, "x") for axis in range(count + 2)])


def _first(x: Any, count: int) -> list[Any]:
    """Return the first `count` lengths of `x`."""
    return [folded_shape_i(x, axis) for axis in range(count)]


def _product(lengths: Sequence[Any]) -> Any:
    return reduce(mul, lengths)
