"""Rules for Ops on the last axes of their inputs, for each place of the batch axes before them.

They become a loop over the batch, whose axes are merged into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pytensor.tensor.blas.batched import BatchedDot
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot

import engine.tensor as pt
from engine.inner.batch_loop import batch_lengths, looped, one_for_all
from engine.pytensor.scope import Rule, Scope
from engine.tensor.shape import folded_shape_i


def _blockwise(scope: Scope, node: Any, *inputs: Any) -> list[Any]:
    op = node.op
    count = op.batch_ndim(node)
    # A node of the core Op on variables of its own.
    core = op._create_dummy_core_node(node.inputs)
    if count == 0:
        return scope.results_of(core, inputs)
    if type(op.core_op) is Dot and all(inputs[1].type.broadcastable[:count]):
        return [_times_one_matrix(inputs[0], one_for_all(inputs[1], count), count)]
    _require_equal_lengths(scope, inputs, count)
    within = scope.inner((), ())

    def computed(parts: list[Any]) -> list[Any]:
        results = within.results_of(core, parts)
        return [*results, *(requirement.condition for requirement in within.requirements)]

    found = looped(inputs, batch_lengths(inputs, count), computed)
    n_results = len(core.outputs)
    scope.require_each(within.requirements, found[n_results:])
    return found[:n_results]


def _batched_dot(scope: Scope, node: Any, x: Any, y: Any) -> Any:
    scope.require(
        pt.eq(folded_shape_i(x, 0), folded_shape_i(y, 0)), TypeError, "Shape mismatch in dimension 0."
    )
    dtype = node.outputs[0].type.dtype
    both = [pt.cast(value, dtype) for value in (x, y)]
    return looped(both, [folded_shape_i(x, 0)], lambda matrices: [pt.dot(*matrices)])[0]


def _times_one_matrix(x: Any, y: Any, count: int) -> Any:
    """Return the products of the matrices of `x` with the matrix `y`: one product of their rows."""
    lengths = [folded_shape_i(x, axis) for axis in range(count + 1)]
    rows = pt.reshape(x, (reduce(pt.mul, lengths), folded_shape_i(x, count + 1)))
    return pt.reshape(pt.dot(rows, y), (*lengths, folded_shape_i(y, 1)))


def _require_equal_lengths(scope: Scope, inputs: Sequence[Any], count: int) -> None:
    """Have a call with inputs whose batch axes do not fit raise ValueError."""
    for axis in range(count):
        found = [folded_shape_i(value, axis) for value in inputs if not value.type.broadcastable[axis]]
        for other in found[1:]:
            message = f"Incompatible Blockwise batch input shapes along axis {axis}"
            scope.require(pt.eq(found[0], other), ValueError, message)


RULES: dict[type, Rule] = {Blockwise: _blockwise, BatchedDot: _batched_dot}
