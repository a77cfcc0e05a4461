"""One step of the gradient of a Scan: what a step passes back of the gradients for what it computed.

A state that is read up to K rows back has K *accumulators*: what later steps add to the gradients of the row at hand
and of the K - 1 rows before it, in this order. A step adds to the gradient given for its own row the first of them, pulls
that back, and adds what comes out for the rows before to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import engine.tensor as pt
from engine.gradient import pull_back
from engine.inner.scan_info import InnerInputs, InnerOutputs, OuterInputs, OuterOutputs
from engine.scalar.promotion import FLOATS

if TYPE_CHECKING:
    from engine.inner.scan import Scan


class StepBack:
    """A step of `op` and its gradients, for the outer inputs that are `asked`; in variables that nothing computes.

    `inputs` and `results` are those of the step, `given` has a row of the gradient for each result that has one (for
    states: from outside the loop), `accumulators` has those of each state that needs them, and `gradients` what is
    passed on to each of `inputs`: None where nothing is.
    """

    def __init__(self, op: Scan, asked: OuterInputs[bool], cotangents: OuterOutputs[Any]) -> None:
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
        """The inputs of the step whose gradient is needed: those asked for, and all rows of states that are floats."""
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
        """The gradient for the row that a step computes of a state: what is given, and what later steps add."""
        if self.results.states[state].type.dtype not in FLOATS:
            return None
        return total([self.given.buffers[state], *self.accumulators.get(state, [])[:1]])

    def _add_accumulators(self) -> bool:
        """Make accumulators of the states that something is passed on to now; whether there are such."""
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
        """The accumulators of a state after the step: each is what the one behind it was, and what the step adds."""
        own = self.accumulators[state]
        by_tap = dict(zip(self.info.taps[state], self.gradients.taps[state], strict=True))
        found = []
        for place in range(len(own)):
            added = total([*own[place + 1 : place + 2], by_tap.get(-1 - place)])
            found.append(pt.zeros_like(own[0]) if added is None else added)
        return found


def total(parts: Sequence[Any]) -> Any:
    """The sum of what is not None; None if nothing is."""
    found = [part for part in parts if part is not None]
    return reduce(pt.add, found) if found else None


def _row(trace: Any) -> Any:
    return None if trace is None else trace.type.clone(shape=trace.type.shape[1:]).make_variable()
