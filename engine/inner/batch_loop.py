"""A graph applied at each place of a batch: a loop over the batch axes, merged into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from engine.graph.op import Op
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder
from engine.tensor.conversion import number
from engine.tensor.creation import alloc
from engine.tensor.elemwise import dimshuffle
from engine.tensor.math import mul
from engine.tensor.shape import folded_shape_i, reshape


class BatchLoop(Scan):
    """A Scan of which each step computes one place of a batch: a Blockwise that is compiled.

    A Scan's rewrites and kernels are its own. A rewrite that gives it states makes it a Scan again.
    """

    @property
    def core_op(self) -> Op | None:
        """The Op that a step applies; None if a step is no node, or several."""
        nodes = self.fgraph.nodes
        return nodes[0].op if len(nodes) == 1 else None

    def __str__(self) -> str:
        return "BatchLoop" if self.core_op is None else f"BatchLoop{{{self.core_op}}}"

    __repr__ = __str__


def batch_lengths(inputs: Sequence[Any], count: int) -> list[Any]:
    """Return the lengths of the first `count` axes of `inputs` together, those of length 1 broadcast."""
    lengths = []
    for axis in range(count):
        along = [value for value in inputs if not value.type.broadcastable[axis]]
        lengths.append(folded_shape_i(along[0], axis) if along else number(1, "int64"))
    return lengths


def looped(
    inputs: Sequence[Any], batch: Sequence[Any], compute: Callable[[list[Any]], Sequence[Any]]
) -> list[Any]:
    """Return what `compute` makes of the parts of `inputs` at each place of the batch, along axes in front.

    `batch` has the lengths of the first axes of all inputs. An axis that is known to have length 1 is
    repeated. A ValueError is raised, when it runs, for one that has another length.
    """
    loop = ScanBuilder(reduce(mul, batch))
    varying = {v for v in inputs if not all(v.type.broadcastable[: len(batch)])}
    # Of several axes, one could be longer and another shorter: merged, they would seem to fit.
    checked = len(varying) > 1 and len(batch) > 1
    loop.mapped = list(compute([_part(loop, value, batch, checked) for value in inputs]))
    loop.non_sequences += [(variable, variable) for variable in loop.invariants()]
    found = loop.apply(BatchLoop).mapped
    return [reshape(rows, (*batch, *_lengths(rows, 1))) for rows in found]


def one_for_all(value: Any, count: int) -> Any:
    """Return `value` without its first `count` axes, all of length 1."""
    return dimshuffle(value, range(count, value.type.ndim))


def _part(loop: ScanBuilder, value: Any, batch: Sequence[Any], checked: bool) -> Any:
    """Return the loop's variable for the part of `value` at one place of the batch.

    Each of its lengths is `checked`, or only their product.
    """
    count = len(batch)
    fixed = value.type.broadcastable[:count]
    if all(fixed):
        return one_for_all(value, count)
    core = _lengths(value, count)
    if any(fixed) or checked:
        value = alloc(value, *batch, *core)
    rows = reshape(value, (loop.n_steps, *core))
    row = rows.type.clone(shape=value.type.shape[count:]).make_variable()
    loop.sequences.append((rows, row))
    return row


def _lengths(value: Any, first: int) -> list[Any]:
    return [folded_shape_i(value, axis) for axis in range(first, value.type.ndim)]
