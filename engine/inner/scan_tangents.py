"""The tangents of a Scan: another Scan over the same steps, whose states are the tangents of the states.

It reads what the steps read and computed, and computes none of that again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.gradient.arguments import derivative_dtype
from engine.gradient.forward import push_forward
from engine.inner.scan_building import ScanBuilder, State
from engine.inner.scan_info import InnerInputs, InnerOutputs, OuterInputs, ScanLike
from engine.inner.scan_steps import Pairs, StepsDone, computed_inside
from engine.tensor.creation import zeros_like
from engine.tensor.elemwise import cast


def push_forward_scan(
    op: ScanLike, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Return the tangent of each outer output of `op`, given `tangents` of its inputs; None stands for
    no change.

    Raises NotImplementedError for a Scan that does not keep whole traces.
    """
    steps = StepsDone(op, inputs, outputs)
    given = op.info.outer_inputs(tangents)
    step = _StepForward(op, given)
    if not step.active and all(tangent is None for tangent in step.mapped):
        return [None] * len(outputs)
    loop = _loop(steps, given, step)
    found = loop.apply(type(op))
    buffers, mapped = iter(found.buffers), iter(found.mapped)
    of_states = [next(buffers) if state in step.active else None for state in range(op.info.n_states)]
    return [*of_states, *(None if tangent is None else next(mapped) for tangent in step.mapped)]


class _StepForward:
    """One step of `op` and its tangents, in new variables.

    `inputs` and `results` are those of the step. `rows`, `taps` and `constants` are the tangents of its
    inputs (None for no change), `active` are the states that have tangents, and `new` and `mapped` are
    those of the results.
    """

    def __init__(self, op: ScanLike, given: OuterInputs[Any]) -> None:
        info = op.info
        fresh = [nominal.type.make_variable() for nominal in op.inner_inputs]
        self.inputs: InnerInputs[Any] = info.inner_inputs(fresh)
        self.results: InnerOutputs[Any] = info.inner_outputs(op.fgraph.bind(fresh))
        self.rows = _tangents(self.inputs.rows, given.sequences)
        self.constants = _tangents(self.inputs.non_sequences, given.non_sequences)
        self.taps: list[list[Any]] = [[None] * len(taps) for taps in self.inputs.taps]
        self.active: set[int] = set()
        fresh_states = {state for state, tangent in enumerate(given.initials) if tangent is not None}
        while True:
            self._activate(fresh_states)
            self.new, self.mapped = self._push_forward()
            fresh_states = {
                state for state, tangent in enumerate(self.new) if tangent is not None
            } - self.active
            if not fresh_states:
                break

    def _activate(self, states: set[int]) -> None:
        for state in states:
            self.taps[state] = [_like(tap) for tap in self.inputs.taps[state]]
        self.active |= states

    def _push_forward(self) -> tuple[list[Any], list[Any]]:
        inputs, results = self.inputs, self.results
        variables = [*inputs.rows, *(tap for taps in inputs.taps for tap in taps), *inputs.non_sequences]
        tangents = [*self.rows, *(tap for taps in self.taps for tap in taps), *self.constants]
        found = push_forward([*results.states, *results.mapped], variables, tangents)
        return found[: len(results.states)], found[len(results.states) :]


def _loop(steps: StepsDone, given: OuterInputs[Any], step: _StepForward) -> ScanBuilder:
    """Return the parts of the Scan of the tangents."""
    active = sorted(step.active)
    new = [zeros_like(step.taps[s][0]) if step.new[s] is None else step.new[s] for s in active]
    mapped = [tangent for tangent in step.mapped if tangent is not None]
    read = [*steps.read(step.inputs, step.results), *_sequence_tangents(steps, given, step)]
    constants = list(zip(steps.outer.non_sequences, step.inputs.non_sequences, strict=True))
    constants += _paired(given.non_sequences, step.constants)
    taps = [tap for state in active for tap in step.taps[state]]
    arguments = [*(row for _, row in read), *taps, *(inside for _, inside in constants)]
    inside, computed = computed_inside(arguments, [*new, *mapped])
    fresh, results = iter(inside), iter(computed)
    loop = ScanBuilder(steps.number, [(sequence, next(fresh)) for sequence, _ in read])
    for state in active:
        start = _initial_tangent(steps.outer.initials[state], given.initials[state], step.taps[state][0])
        rows = [next(fresh) for _ in step.taps[state]]
        loop.states.append(State(start, steps.info.taps[state], rows, next(results)))
    loop.non_sequences = [(outside, next(fresh)) for outside, _ in constants]
    loop.mapped = list(results)
    return loop


def _sequence_tangents(steps: StepsDone, given: OuterInputs[Any], step: _StepForward) -> Pairs:
    """Return the tangents of the sequences that were read, paired with their rows."""
    used_up = [
        steps.use_up(s) for s, row in zip(steps.outer.sequences, step.rows, strict=True) if row is not None
    ]
    pairs = _paired(given.sequences, step.rows)
    return [
        (tangent if is_whole else tangent[: steps.number], row)
        for (tangent, row), is_whole in zip(pairs, used_up, strict=True)
    ]


def _paired(given: Sequence[Any], inside: Sequence[Any]) -> Pairs:
    """Return the `given` tangents that exist, in the dtypes of their inner variables, paired with these."""
    pairs = zip(given, inside, strict=True)
    return [(cast(tangent, v.type.dtype), v) for tangent, v in pairs if tangent is not None]


def _initial_tangent(initial: Any, tangent: Any, row: Any) -> Any:
    dtype = row.type.dtype
    return zeros_like(initial, dtype) if tangent is None else cast(tangent, dtype)


def _tangents(variables: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Return new variables for the tangents that are not None."""
    return [
        None if tangent is None else _like(variable)
        for variable, tangent in zip(variables, given, strict=True)
    ]


def _like(variable: Any) -> Any:
    return variable.type.clone(dtype=derivative_dtype(variable)).make_variable()
