"""The gradient of a Scan: another Scan, from the last step back to the first.

Its sequences are, in reverse, what the steps read and computed, and the gradients for their
results. Its states are the accumulators described below and the summed gradients of non-sequences;
gradients of sequences are mapped outputs. Results of the forward Scan are read, not computed again.

A state that is read up to K rows back has K *accumulators*: what later steps add to the gradients
of the current row and of the K - 1 rows before it, in this order. A step adds the first accumulator
to the gradient given for its own row, pulls the sum back, and adds the results for earlier rows to
the other accumulators.

Truncated gradients follow Sutskever, "Training recurrent neural networks" (2013), section 2.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from engine.gradient.backpropagation import pull_back
from engine.inner.scan_building import ScanBuilder, State
from engine.inner.scan_info import InnerInputs, InnerOutputs, OuterInputs, OuterOutputs, ScanLike
from engine.inner.scan_steps import Pairs, StepsDone, computed_inside
from engine.scalar.promotion import FLOATS
from engine.tensor.creation import zeros_like
from engine.tensor.elemwise import cast
from engine.tensor.joining import concatenate
from engine.tensor.math import add, eq, minimum, sub, switch
from engine.tensor.shape import expand_dims
from engine.tensor.slicing import set_part


def pull_back_scan(
    op: ScanLike,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[bool] | None,
) -> list[Any]:
    """Return the gradient for each `wanted` outer input of `op`, given those for its `outputs`; None
    where none flows.

    Raises NotImplementedError for a Scan that does not keep whole traces: only rewriting makes such
    Scans.
    """
    steps = StepsDone(op, inputs, outputs)
    given = op.info.outer_outputs(
        [_of_float(c, output) for c, output in zip(cotangents, outputs, strict=True)]
    )
    step = StepBack(op, op.info.outer_inputs(list(wanted or [True] * len(inputs))), given)
    return _Reverse(op, steps, given, step).gradients()


class _Reverse:
    """The application of a reverse Scan, each step of which is `step`."""

    def __init__(self, op: ScanLike, steps: StepsDone, given: OuterOutputs[Any], step: StepBack) -> None:
        self.op, self.info = op, op.info
        self.outer, self.given, self.step, self.steps = steps.outer, given, step, steps
        limit = op.truncate_gradient
        self.is_cut_off = limit != -1
        self.steps_back = minimum(steps.number, limit) if self.is_cut_off else steps.number

    def gradients(self) -> list[Any]:
        """Return the gradients for all outer inputs; None where none flows."""
        passed_on, step = self.step.gradients, self.step
        accumulated = [new for state in step.accumulators for new in step.passed_on(state)]
        rows = [g for g in passed_on.rows if g is not None]
        sums = [g for g in passed_on.non_sequences if g is not None]
        if not (accumulated or rows or sums):
            return [None, *self._outer_gradients(iter(()), iter(()))]
        loop, (accumulated, rows, sums) = self._inner_graph(accumulated, rows, sums)
        loop.mapped = rows
        for state, new in zip(loop.states, accumulated, strict=True):
            state.new = new
        summed = [
            v for v, g in zip(self.outer.non_sequences, passed_on.non_sequences, strict=True) if g is not None
        ]
        loop.states += [_sum_of(variable, gradient) for variable, gradient in zip(summed, sums, strict=True)]
        found = loop.apply(type(self.op))
        return [None, *self._outer_gradients(iter(found.mapped), iter(found.buffers))]

    def _inner_graph(self, *parts: list[Any]) -> tuple[ScanBuilder, list[list[Any]]]:
        """Return a builder with all that a step back may read, and `parts` computed from that."""
        step = self.step
        pairs = self._read()
        states = [(state, old) for state, every in step.accumulators.items() for old in every]
        constants = step.inputs.non_sequences
        arguments = [*(row for _, row in pairs), *(old for _, old in states), *constants]
        inside, found = computed_inside(arguments, [g for part in parts for g in part])
        computed, fresh = iter(found), iter(inside)
        sequences = [(trace[::-1], next(fresh)) for trace, _ in pairs]
        loop = ScanBuilder(self.steps_back, sequences)
        for state, old in states:
            initial = zeros_like(self.outer.initials[state][:1], old.type.dtype)
            loop.states.append(State(initial, (-1,), [next(fresh)], None))
        loop.non_sequences = list(zip(self.outer.non_sequences, fresh, strict=True))
        return loop, [[next(computed) for _ in part] for part in parts]

    def _read(self) -> Pairs:
        """Return pairs of sequence and row: what the step read and computed, and its results' gradients."""
        pairs = self.steps.read(self.step.inputs, self.step.results)
        states = zip(self.given.buffers, self.step.given.buffers, strict=True)
        for state, (trace, row) in enumerate(states):
            if trace is not None:
                pairs.append((trace[self.info.n_initial(state) :], row))
        mapped = zip(self.given.mapped, self.step.given.mapped, strict=True)
        return [*pairs, *((trace, row) for trace, row in mapped if trace is not None)]

    def _outer_gradients(self, mapped: Iterator[Any], buffers: Iterator[Any]) -> list[Any]:
        """Return the gradients for sequences, initial rows and non-sequences, from the reverse Scan's
        outputs.
        """
        step = self.step
        of_sequences = [
            None if gradient is None else self._placed(sequence, next(mapped)[::-1])
            for sequence, gradient in zip(self.outer.sequences, step.gradients.rows, strict=True)
        ]
        of_states = []
        for state, cotangent in enumerate(self.given.buffers):
            last = [next(buffers)[-1:] for _ in step.accumulators.get(state, ())]
            of_states.append(self._of_initial(state, cotangent, last))
        of_constants = [None if g is None else next(buffers)[-1] for g in step.gradients.non_sequences]
        return [*of_sequences, *of_states, *of_constants]

    def _placed(self, sequence: Any, rows: Any) -> Any:
        """Return the gradient for a sequence: `rows` for the last steps done, and 0 for all other rows."""
        if not self.is_cut_off and self.steps.use_up(sequence):
            return rows
        zeros = zeros_like(sequence, rows.type.dtype)
        done = self.steps.number
        if not self.is_cut_off:
            return set_part([":b"], zeros, rows, [done])
        return set_part(["a:b"], zeros, rows, [sub(done, self.steps_back), done])

    def _of_initial(self, state: int, cotangent: Any, last: Sequence[Any]) -> Any:
        """Return the gradient for the initial rows: the given one plus the last accumulators.

        The accumulators count only if the gradient goes back to the first step.
        """
        passed_on = None
        if last:
            passed_on = concatenate(last[::-1])
            if self.is_cut_off:
                is_first = eq(self.steps_back, self.steps.number)
                passed_on = switch(is_first, passed_on, zeros_like(passed_on))
        given = None if cotangent is None else cotangent[: self.info.n_initial(state)]
        return total([given, passed_on])


def _sum_of(outer: Any, gradient: Any) -> State:
    """Return the state that sums the gradient for a non-sequence."""
    dtype = gradient.type.dtype
    before = outer.type.clone(dtype=dtype).make_variable()
    zeros = zeros_like(expand_dims(outer, 0), dtype)
    return State(zeros, (-1,), [before], add(before, gradient))


def _of_float(cotangent: Any, output: Any) -> Any:
    """Return the gradient for an output in its dtype, or None for an integer output."""
    if cotangent is None or output.type.dtype not in FLOATS:
        return None
    return cast(cotangent, output.type.dtype)


class StepBack:
    """One step of `op` and its gradients for the outer inputs that are `asked`, in new variables.

    `inputs` and `results` are those of the step. `given` has a row of the gradient from outside the
    loop for each result that has one, `accumulators` has the accumulators of each state that needs
    them, and `gradients` is what flows to each of `inputs`, or None.
    """

    def __init__(self, op: ScanLike, asked: OuterInputs[bool], cotangents: OuterOutputs[Any]) -> None:
        info = op.info
        self.info = info
        fresh = [nominal.type.make_variable() for nominal in op.inner_inputs]
        self.inputs: InnerInputs[Any] = info.inner_inputs(fresh)
        self.results: InnerOutputs[Any] = info.inner_outputs(op.fgraph.bind(fresh))
        self.given = OuterOutputs([_row(c) for c in cotangents.buffers], [_row(c) for c in cotangents.mapped])
        self.accumulators: dict[int, list[Any]] = {}
        self.wanted = self._wanted(asked)
        self.gradients = self._pull_back()
        while self._add_accumulators():
            self.gradients = self._pull_back()

    def _wanted(self, asked: OuterInputs[bool]) -> list[Any]:
        """Return the inputs of the step whose gradient is needed: those asked for, and float states' rows."""
        found = [row for row, is_asked in zip(self.inputs.rows, asked.sequences, strict=True) if is_asked]
        for taps, is_asked in zip(self.inputs.taps, asked.initials, strict=True):
            found += taps if is_asked or taps[0].type.dtype in FLOATS else []
        constants = zip(self.inputs.non_sequences, asked.non_sequences, strict=True)
        return [*found, *(variable for variable, is_asked in constants if is_asked)]

    def _pull_back(self) -> InnerInputs[Any]:
        outputs = [*self.results.states, *self.results.mapped]
        cotangents = [self._cotangent(state) for state in range(self.info.n_states)] + self.given.mapped
        found = dict(zip(self.wanted, pull_back(outputs, cotangents, self.wanted), strict=True))
        taps = [tap for taps in self.inputs.taps for tap in taps]
        every = [*self.inputs.rows, *taps, *self.inputs.non_sequences]
        return self.info.inner_inputs([found.get(variable) for variable in every])

    def _cotangent(self, state: int) -> Any:
        """Return the gradient for the new row of a state: the given one plus the first accumulator."""
        if self.results.states[state].type.dtype not in FLOATS:
            return None
        return total([self.given.buffers[state], *self.accumulators.get(state, [])[:1]])

    def _add_accumulators(self) -> bool:
        """Add accumulators for states that a gradient now flows to; return True if there are any."""
        found = dict(self.accumulators)
        for state, gradients in enumerate(self.gradients.taps):
            if state not in found and any(gradient is not None for gradient in gradients):
                row = self.inputs.taps[state][0].type
                type = row if row.dtype in FLOATS else row.clone(dtype="float64")
                found[state] = [type.make_variable() for _ in range(self.info.n_initial(state))]
        is_changed = len(found) > len(self.accumulators)
        self.accumulators = dict(sorted(found.items()))
        return is_changed

    def passed_on(self, state: int) -> list[Any]:
        """Return the accumulators of a state after a step: each is the next plus what this step gives."""
        own = self.accumulators[state]
        by_tap = dict(zip(self.info.taps[state], self.gradients.taps[state], strict=True))
        found = []
        for place in range(len(own)):
            added = total([*own[place + 1 : place + 2], by_tap.get(-1 - place)])
            found.append(zeros_like(own[0]) if added is None else added)
        return found


def total(parts: Sequence[Any]) -> Any:
    """Return the sum of the items that are not None, or None."""
    found = [part for part in parts if part is not None]
    return reduce(add, found) if found else None


def _row(trace: Any) -> Any:
    return None if trace is None else trace.type.clone(shape=trace.type.shape[1:]).make_variable()
