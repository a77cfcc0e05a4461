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
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder
from engine.pytensor.scope import Rule, Scope
from engine.tensor.conversion import number


def _blockwise(scope: Scope, node: Any, *inputs: Any) -> list[Any]:
    op = node.op
    count = op.batch_ndim(node)
    # A node of the core Op on variables of its own.
    core = op._create_dummy_core_node(node.inputs)
    if count == 0:
        return scope.results_of(core, inputs)
    if type(op.core_op) is Dot and all(inputs[1].type.broadcastable[:count]):
        return [_times_one_matrix(inputs[0], _core_of(inputs[1], count), count)]
    batch = _batch_lengths(scope, inputs, count)
    loop = ScanBuilder(reduce(pt.mul, batch))
    arguments = [_argument(loop, value, batch) for value in inputs]
    within = scope.inner((), ())
    loop.mapped = within.results_of(core, arguments)
    n_results = len(loop.mapped)
    loop.mapped += [requirement.condition for requirement in within.requirements]
    loop.non_sequences += [(variable, variable) for variable in loop.invariants()]
    found = loop.apply(Scan).mapped
    scope.require_each(within.requirements, found[n_results:])
    return [_unmerged(rows, batch) for rows in found[:n_results]]


def _batched_dot(scope: Scope, node: Any, x: Any, y: Any) -> Any:
    scope.require(pt.eq(pt.shape_i(x, 0), pt.shape_i(y, 0)), TypeError, "Shape mismatch in dimension 0.")
    loop = ScanBuilder(pt.shape_i(x, 0))
    batch = [loop.n_steps]
    dtype = node.outputs[0].type.dtype
    matrices = [pt.cast(_argument(loop, value, batch), dtype) for value in (x, y)]
    loop.mapped = [pt.dot(*matrices)]
    return loop.apply(Scan).mapped[0]


def _times_one_matrix(x: Any, y: Any, count: int) -> Any:
    """Return the products of the matrices of `x` with the matrix `y`: one product of their rows."""
    lengths = [pt.shape_i(x, axis) for axis in range(count + 1)]
    rows = pt.reshape(x, (reduce(pt.mul, lengths), pt.shape_i(x, count + 1)))
    return pt.reshape(pt.dot(rows, y), (*lengths, pt.shape_i(y, 1)))


def _core_of(value: Any, count: int) -> Any:
    """Return `value` without its batch axes, all of length 1."""
    return pt.dimshuffle(value, range(count, value.type.ndim))


def _batch_lengths(scope: Scope, inputs: Sequence[Any], count: int) -> list[Any]:
    """Return the lengths of the batch axes; a call with inputs that do not fit raises ValueError."""
    lengths = []
    for axis in range(count):
        found = [pt.shape_i(value, axis) for value in inputs if not value.type.broadcastable[axis]]
        for other in found[1:]:
            message = f"Incompatible Blockwise batch input shapes along axis {axis}"
            scope.require(pt.eq(found[0], other), ValueError, message)
        lengths.append(found[0] if found else number(1, "int64"))
    return lengths


def _argument(loop: ScanBuilder, value: Any, batch: Sequence[Any]) -> Any:
    """Return the loop's variable for the part of `value` at one place of the batch."""
    count = len(batch)
    fixed = value.type.broadcastable[:count]
    if all(fixed):
        return _core_of(value, count)
    core = [pt.shape_i(value, axis) for axis in range(count, value.type.ndim)]
    if any(fixed):
        value = pt.alloc(value, *batch, *core)
    rows = pt.reshape(value, (loop.n_steps, *core))
    row = rows.type.clone(shape=value.type.shape[count:]).make_variable()
    loop.sequences.append((rows, row))
    return row


def _unmerged(rows: Any, batch: Sequence[Any]) -> Any:
    """Return `rows`, one for each place of the batch, with the batch's axes instead of their one."""
    return pt.reshape(rows, (*batch, *[pt.shape_i(rows, axis) for axis in range(1, rows.type.ndim)]))


RULES: dict[type, Rule] = {Blockwise: _blockwise, BatchedDot: _batched_dot}
