"""The numpy reference of Scan: one step after the other, by the reference of each Op of the inner graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.inner.base import computed_outputs
from engine.inner.scan_info import InnerOutputs, OuterInputs

if TYPE_CHECKING:
    from engine.inner.scan import Scan


def run_scan(op: Scan, inputs: Sequence[Any]) -> list[Any]:
    """The outer outputs of `op` on the arrays `inputs`.

    Refuses (ValueError) a negative number of steps, a sequence shorter than it, another number of initial rows than
    the taps reach back, and rows whose shape changes from step to step.
    """
    info = op.info
    outer = info.outer_inputs(inputs)
    steps = checked_steps(op, outer)
    # Copies, since a step may overwrite the row before it.
    traces = [list(initial.copy()) for initial in outer.initials]
    mapped: list[list[Any]] = [[] for _ in range(info.n_mapped)]
    for step in range(steps):
        done = _one_step(op, outer, traces, step)
        for number, (trace, row) in enumerate(
            zip([*traces, *mapped], [*done.states, *done.mapped], strict=True)
        ):
            _append(op, trace, row, number, step)
        if done.stop is not None and done.stop:
            break
    kept = [trace if keep is None else trace[-keep:] for trace, keep in zip(traces, info.keeps, strict=True)]
    if mapped and not mapped[0]:
        return [*map(np.stack, kept), *_no_rows(op, outer)]
    return [np.stack(rows) for rows in (*kept, *mapped)]


def checked_steps(op: Scan, outer: OuterInputs[Any]) -> int:
    """How many steps to do; refuses (ValueError) what the inputs do not allow."""
    steps = int(outer.n_steps)
    if steps < 0:
        raise ValueError(f"Running {op}: n_steps is {steps}; it must be 0 or more")
    for number, sequence in enumerate(outer.sequences):
        if len(sequence) < steps:
            raise ValueError(
                f"Running {op}: sequence {number} has {len(sequence)} rows, {steps} steps are to be done; give a longer "
                "sequence, or fewer steps"
            )
    for number, initial in enumerate(outer.initials):
        if len(initial) != op.info.n_initial(number):
            raise ValueError(
                f"Running {op}: state {number} has taps {op.info.taps[number]}, so {op.info.n_initial(number)} initial "
                f"rows are needed; {len(initial)} were given"
            )
    return steps


def _one_step(op: Scan, outer: OuterInputs[Any], traces: Sequence[list[Any]], step: int) -> InnerOutputs[Any]:
    """What step number `step` computes; each trace ends with the row before it."""
    rows = [sequence[step, ...] for sequence in outer.sequences]
    taps = [trace[tap] for trace, taps in zip(traces, op.info.taps, strict=True) for tap in taps]
    arguments = [*rows, *map(np.asarray, taps), *outer.non_sequences]
    return op.info.inner_outputs(computed_outputs(op.fgraph, arguments))


def _append(op: Scan, trace: list[Any], row: Any, number: int, step: int) -> None:
    if trace and np.shape(trace[-1]) != row.shape:
        kind = "state" if number < op.info.n_states else "mapped output"
        place = number if number < op.info.n_states else number - op.info.n_states
        raise ValueError(
            f"Running {op}: step {step} gives {kind} {place} a row of shape {row.shape}, the rows before it have shape "
            f"{np.shape(trace[-1])}; all rows must have one shape"
        )
    trace.append(np.array(row, order="C"))


def _no_rows(op: Scan, outer: OuterInputs[Any]) -> list[Any]:
    """The mapped outputs if no step is done: no row of the shape that a step on zeros would give, if it can be done."""
    rows = [np.zeros(sequence.shape[1:], sequence.dtype) for sequence in outer.sequences]
    taps = [
        initial[tap, ...].copy()
        for initial, taps in zip(outer.initials, op.info.taps, strict=True)
        for tap in taps
    ]
    outputs = op.info.inner_outputs(op.inner_outputs).mapped
    shapes = [tuple([length or 0 for length in output.type.shape]) for output in outputs]
    try:
        with np.errstate(all="ignore"):
            done = computed_outputs(op.fgraph, [*rows, *taps, *outer.non_sequences])
        shapes = [row.shape for row in op.info.inner_outputs(done).mapped]
    except (
        ValueError,
        IndexError,
    ):  # zeros are no index, or no matrix that has an inverse: the types say the rest
        pass
    return [np.zeros((0, *s), output.type.dtype) for s, output in zip(shapes, outputs, strict=True)]
