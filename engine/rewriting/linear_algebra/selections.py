"""Rewrites of products with matrices that select: `S = eye(n)[:, index]` and its transposed.

The numbers of a selection are 0, and a single 1 in each column. A product with it is an index; with the
transposed one, from the other side, a sum into places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cachegraph.named_tuples import NamedTuple
from engine.assumptions import PERMUTATION, SELECTION, check_assumption
from engine.assumptions.rules.products import factors_of, transposed
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.linear_algebra.core_rewriter import (
    core_rewriter,
    is_identity,
    turned,
    unbatched,
)
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros
from engine.tensor.diagonals import triu
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.index_entries import FULL, Entry
from engine.tensor.indexing import inc_subtensor
from engine.tensor.linalg.factorizations import Det
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.math import gt, mod, mul, sub
from engine.tensor.ordering import argmax
from engine.tensor.products import Dot
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import folded_shape_i
from engine.tensor.subtensor import ROWS, AdvancedSubtensor

COLUMNS: tuple[Entry, ...] = (FULL, *ROWS)


class Selection(NamedTuple):
    """The places that a matrix selects, of `length`; `is_turned` if it is the transposed one."""

    index: Any
    length: Any
    is_turned: bool


@core_rewriter(Dot)
def selection_dot_to_indexing(fgraph: FunctionGraph, node: Apply) -> Any:
    """x @ S -> x[..., index], S.T @ x -> x[..., index, :], and sums into zeros for S @ x and x @ S.T."""
    factors = factors_of(node.outputs[0])
    if factors is None:
        return None
    left, right = factors
    found = _selection(fgraph, right)
    if found is not None:
        return _selected(found, left) if not found.is_turned else _summed(found, left, node)
    found = _selection(fgraph, left)
    if found is None:
        return None
    # The same of the transposed matrices: (S @ x).T is x.T @ S.T.
    right = turned(right)
    return turned(_selected(found, right) if found.is_turned else _summed(found, right, node))


def _selection(fgraph: FunctionGraph, matrix: Variable) -> Selection | None:
    """Return what `matrix`, one for all of a batch, selects; None if it is no selection."""
    matrix = unbatched(matrix)
    if tensor_type_of(matrix).ndim != 2:
        return None
    base = transposed(matrix)
    index = _index_of_identity(matrix, ROWS, base, COLUMNS)
    if index is not None:
        return Selection(index, folded_shape_i(matrix, 1), True)
    index = _index_of_identity(matrix, COLUMNS, base, ROWS)
    if index is not None:
        return Selection(index, folded_shape_i(matrix, 0), False)
    if check_assumption(fgraph, matrix, SELECTION):
        return Selection(_places(matrix), folded_shape_i(matrix, 0), False)
    if base is not None and check_assumption(fgraph, base, SELECTION):
        return Selection(_places(base), folded_shape_i(base, 0), True)
    return None


def _index_of_identity(
    matrix: Variable, entries: tuple[Entry, ...], turned_matrix: Variable | None, of_turned: tuple[Entry, ...]
) -> Variable | None:
    """Return the vector of integers by which `entries` index an identity matrix to get `matrix`.

    The transposed matrix, if it is in the graph, may be indexed too, as `of_turned` says.
    """
    for found, due in ((matrix, entries), (turned_matrix, of_turned)):
        index = None if found is None else _index_by(found, due)
        if index is not None:
            return index
    return None


def _index_by(matrix: Variable, entries: tuple[Entry, ...]) -> Variable | None:
    node = matrix.owner
    if node is None or not isinstance(node.op, AdvancedSubtensor) or node.op.entries != entries:
        return None
    base, index = node.inputs
    if tensor_type_of(index).ndim != 1 or dtype_of(index) == "bool":
        return None
    other = transposed(base)
    return index if is_identity(base) or (other is not None and is_identity(other)) else None


def _places(matrix: Variable) -> Any:
    """Return the place of the 1 in each column."""
    if isinstance(matrix, Constant):
        return as_tensor_variable(np.argmax(matrix.data, axis=0))
    return argmax(matrix, 0)


def _selected(found: Selection, x: Any) -> Any:
    """Return `x @ S`."""
    return _checked(x, found.length)[..., found.index]


def _summed(found: Selection, x: Any, node: Apply) -> Any:
    """Return `x @ S.T`."""
    x = cast(_checked(x, folded_shape_i(found.index, 0)), dtype_of(node.outputs[0]))
    lengths = [folded_shape_i(x, axis) for axis in range(x.type.ndim - 1)]
    return inc_subtensor(zeros((*lengths, found.length), x.type.dtype)[..., found.index], x)


def _checked(x: Any, length: Any) -> Any:
    """Return `x`, whose last axis must have this length: a product would be refused otherwise."""
    return specify_shape(x, [*[None] * (x.type.ndim - 1), length])


@core_rewriter(Det)
def det_of_permutation(fgraph: FunctionGraph, node: Apply) -> Any:
    """det(P) -> 1 or -1, by the pairs that a permutation puts into the opposite order."""
    (x,) = node.inputs
    if tensor_type_of(x).ndim != 2 or not check_assumption(fgraph, x, PERMUTATION):
        return None
    index = _places(x)
    turned_pairs = triu(cast(gt(dimshuffle(index, (0, "x")), dimshuffle(index, ("x", 0))), "int64"))
    return sub(1, mul(2, mod(sum_over(turned_pairs), 2)))


SELECTIONS = (selection_dot_to_indexing, det_of_permutation)
