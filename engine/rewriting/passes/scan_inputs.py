"""Removal of needless work and inputs from Scans.

Outputs and states without a use are dropped; repeated, constant and non-varying inputs are simplified; and
computations that do not change between steps move in front of the loop. There they run even if no step is
done, and may raise. An output that does not change fills its rows behind the loop.
"""

from __future__ import annotations

from typing import Any

from engine import scalar
from engine.graph import Constant, Variable, ancestors, rebuild
from engine.inner.scan_building import ScanBuilder
from engine.rewriting.opened_scans import Derived, OpenedScan
from engine.tensor import Alloc, alloc, dimshuffle, is_data
from engine.tensor.matching import operands_of, tensor_type_of
from engine.tensor.shape import folded_shape_i
from engine.tensor.type import tensor_type


def drop_unused_outputs(scan: OpenedScan) -> None:
    """Keep only the outputs that the graph uses, and the states that compute them."""
    loop = scan.loop
    wanted = {state for state, buffer in zip(loop.states, scan.buffers, strict=True) if scan.is_used(buffer)}
    used = [scan.is_used(output) for output in scan.mapped]
    fresh = [
        *(state.new for state in wanted),
        *(v for v, is_used in zip(loop.mapped, used, strict=True) if is_used),
    ]
    fresh += [] if loop.stop is None else [loop.stop]
    while fresh:
        reached = set(ancestors(fresh, loop.varying))
        found = [s for s in loop.states if s not in wanted and any(row in reached for row in s.rows)]
        wanted.update(found)
        fresh = [state.new for state in found]
    scan.buffers = [b for state, b in zip(loop.states, scan.buffers, strict=True) if state in wanted]
    loop.states = [state for state in loop.states if state in wanted]
    scan.mapped = [output for output, is_used in zip(scan.mapped, used, strict=True) if is_used]
    loop.mapped = [v for v, is_used in zip(loop.mapped, used, strict=True) if is_used]


def merge_inputs(scan: OpenedScan) -> None:
    """Merge equal inputs, put constants into the step, and make repeated rows a non-sequence."""
    loop = scan.loop
    for sequence, inside in list(loop.sequences):
        row = _only_row(sequence)
        if row is not None and inside.type.is_super(row.type):
            loop.sequences.remove((sequence, inside))
            loop.non_sequences.append((row, inside))
    memo: dict[Variable, Variable] = {}
    kept: dict[tuple[bool, Variable], Variable] = {}
    for is_row, pairs in ((True, loop.sequences), (False, loop.non_sequences)):
        for outside, inside in pairs:
            is_known = not is_row and isinstance(outside, Constant) and not is_data(outside)
            found = outside if is_known else kept.setdefault((is_row, outside), inside)
            if found is not inside and inside.type.is_super(found.type):
                memo[inside] = found
    if memo:
        _substitute(loop, memo)


def _substitute(loop: ScanBuilder, memo: dict[Variable, Variable]) -> None:
    loop.substitute(memo)
    loop.sequences = [pair for pair in loop.sequences if pair[1] not in memo]
    loop.non_sequences = [pair for pair in loop.non_sequences if pair[1] not in memo]


def _only_row(sequence: Variable) -> Variable | None:
    """Return the row that fills `sequence`, or None if its rows may differ."""
    filled = operands_of(sequence, scalar.second)
    node = sequence.owner
    if filled is not None:
        value = filled[1]
    elif node is not None and isinstance(node.op, Alloc):
        value = node.inputs[0]
    else:
        return None
    if not tensor_type_of(value).broadcastable[0]:
        return None
    row = _without_first_axis(value)
    type = tensor_type_of(sequence)
    if tensor_type_of(value).broadcastable[1:] == type.broadcastable[1:]:
        return row
    return alloc(row, *[folded_shape_i(sequence, axis) for axis in range(1, type.ndim)])


def _without_first_axis(value: Variable) -> Any:
    if isinstance(value, Constant) and not is_data(value):
        data = value.data[0]
        return tensor_type(data.dtype.name, data.shape).make_constant(data)
    return dimshuffle(value, range(1, tensor_type_of(value).ndim))


def push_out_invariants(scan: OpenedScan) -> None:
    """Move computations on non-sequences alone in front of the loop."""
    loop = scan.loop
    found = loop.invariants()
    outside = rebuild(found, {inner: outer for outer, inner in loop.non_sequences})
    loop.non_sequences += zip(outside, found, strict=True)


def fill_with_invariants(scan: OpenedScan) -> None:
    """Fill the rows of mapped outputs that do not change between steps, if the number of steps is known."""
    loop = scan.loop
    if loop.stop is not None:
        return
    kept = []
    for output, inner in zip(scan.mapped, loop.mapped, strict=True):
        row = scan.outside(inner) if output is not None and scan.is_used(output) else None
        if output is None or row is None:
            kept.append((output, inner))
        else:
            scan.derived[output] = _filled(row, loop.n_steps)
    scan.mapped, loop.mapped = [output for output, _ in kept], [inner for _, inner in kept]


def _filled(row: Any, n_steps: Any) -> Derived:
    lengths = [folded_shape_i(row, axis) for axis in range(row.type.ndim)]
    return lambda _: alloc(row, n_steps, *lengths)
