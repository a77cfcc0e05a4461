"""The rule for loops: PyTensor's Scan as the engine's; see scan_buffers.py for the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.scan.op import Scan

import engine.tensor as pt
from engine.inner.scan import Scan as EngineScan
from engine.inner.scan_building import ScanBuilder, State
from engine.pytensor.representation import Untranslatable, static_shape
from engine.pytensor.rules.scan_buffers import Window, cut, difference, length_of
from engine.pytensor.scope import Rule, Scope
from engine.tensor.shape import folded_shape_i


def _scan(scope: Scope, node: Any, *inputs: Any) -> list[Any]:
    return _Loop(scope, node, inputs).outputs()


class _Loop:
    """A Scan under translation. `given` and `inside` are PyTensor's outer and inner inputs, `outer` the
    engine's outer inputs, `inner` the engine's variables for the inner ones."""

    def __init__(self, scope: Scope, node: Any, inputs: Sequence[Any]) -> None:
        self.scope, self.op, self.info = scope, node.op, node.op.info
        self.given, self.inside = list(node.inputs), list(node.op.fgraph.inputs)
        self.steps = pt.cast(inputs[0], "int64")
        self.outer = [self.steps, *inputs[1:]]
        self.inner: dict[Any, Any] = {}
        self.loop = ScanBuilder(self.steps)
        if self.info.as_while and self.info.n_mit_mot:
            raise Untranslatable("a loop that may end early fills buffers that it also reads")

    def outputs(self) -> list[Any]:
        """Return the engine's variables for the outputs of the Scan."""
        op = self.op
        for row, sequence in zip(op.inner_seqs(self.inside), op.outer_seqs(self.outer), strict=True):
            self.inner[row] = self.row(row, sequence)
            self.loop.sequences.append((sequence, self.inner[row]))
        windows = self.windows()
        states = self.states()
        carried = zip(
            op.inner_untraced_sit_sot(self.inside), op.outer_untraced_sit_sot(self.outer), strict=True
        )
        states += [self.state([row], (-1,), pt.expand_dims(value, 0), True) for row, value in carried]
        # A step reads what does not change as it is outside: what depends on it alone can leave the loop.
        self.inner.update(zip(op.inner_non_seqs(self.inside), op.outer_non_seqs(self.outer), strict=True))
        requirements, n_mapped = self.step(windows, states)
        found = self.loop.apply(EngineScan)
        n_results = len(windows) + n_mapped
        self.scope.require_each(requirements, found.mapped[n_results:])
        return self.in_order(windows, found.buffers, found.mapped[:n_results])

    def row(self, row: Any, rows: Any) -> Any:
        """Return a new variable for `row` of PyTensor's, one of the engine's `rows`."""
        lengths = rows.type.shape[1:]
        for due, known in zip(static_shape(row.type), lengths, strict=True):
            if due == 1 and known != 1:
                raise Untranslatable(f"{row} broadcasts, and what it is read from may not")
        return rows.type.clone(shape=lengths).make_variable(row.name)

    def windows(self) -> list[Window]:
        """Return the mit-mots, whose last rows are sequences."""
        op, info, found = self.op, self.info, []
        places = zip(info.mit_mot_in_slices, info.mit_mot_out_slices, strict=True)
        rows = zip(op.inner_mitmot_grouped(self.inside), op.outer_mitmot(self.outer), strict=True)
        for (reads, writes), (inside, buffer) in zip(places, rows, strict=True):
            oldest = min(0, *reads)
            window = Window(buffer, [place - oldest for place in reads], [place - oldest for place in writes])
            self.inner.update(zip(inside, window.read, strict=True))
            self.loop.sequences.append(window.sequence(self.steps))
            found.append(window)
        return found

    def states(self) -> list[State]:
        """Return the mit-sots and sit-sots."""
        op, info = self.op, self.info
        rows = [*op.inner_mitsot_grouped(self.inside), *[[row] for row in op.inner_sitsot(self.inside)]]
        taps = [*info.mit_sot_in_slices, *info.sit_sot_in_slices]
        buffers = [*op.outer_mitsot(self.outer), *op.outer_sitsot(self.outer)]
        return [self.state(*group) for group in zip(rows, taps, buffers, strict=True)]

    def state(self, rows: Sequence[Any], taps: Sequence[int], buffer: Any, last: bool = False) -> State:
        """Return the state that starts with the first rows of `buffer`; `rows` of a step read its taps.

        It keeps as many rows as it starts with if the buffer has no more, or if only the `last` is needed.
        """
        count = -min(taps)
        is_full = buffer.type.shape[0] == count
        initial = buffer if is_full else buffer[:count]
        by_tap = sorted(zip(taps, rows, strict=True), key=lambda pair: pair[0])
        inside = [self.row(row, initial) for _, row in by_tap]
        self.inner.update(zip([row for _, row in by_tap], inside, strict=True))
        return State(
            initial, tuple(tap for tap, _ in by_tap), inside, None, count if is_full or last else None
        )

    def step(self, windows: list[Window], states: list[State]) -> tuple[list[Any], int]:
        """Translate a step; return what it requires, and the number of outputs that no step reads."""
        op, loop = self.op, self.loop
        within = self.scope.inner(list(self.inner), self.inner.values())
        results = within.translate_graph(op.fgraph)
        for window, written in zip(windows, op.inner_mitmot_outs_grouped(results), strict=True):
            window.write(written)
        new = [*op.inner_mitsot_outs(results), *op.inner_sitsot_outs(results)]
        new += op.inner_untraced_sit_sot_outs(results)
        for state, value in zip(states, new, strict=True):
            state.new = value
        mapped = op.inner_nitsot_outs(results)
        conditions = [requirement.condition for requirement in within.requirements]
        loop.states = [state for window in windows for state in window.states] + states
        loop.mapped = [*[window.leaving for window in windows], *mapped, *conditions]
        loop.stop = pt.cast(results[-1], "bool") if self.info.as_while else None
        loop.non_sequences = [(variable, variable) for variable in loop.invariants()]
        return within.requirements, len(mapped)

    def in_order(self, windows: list[Window], buffers: list[Any], mapped: list[Any]) -> list[Any]:
        """Return the results of the engine's loop as the outputs of PyTensor's."""
        op, rest = self.op, iter(buffers)
        found = [
            window.whole([next(rest) for _ in window.states], left, self.steps)
            for window, left in zip(windows, mapped, strict=False)
        ]
        given = [*op.outer_mitsot(self.given), *op.outer_sitsot(self.given)]
        traced = [*op.outer_mitsot(self.outer), *op.outer_sitsot(self.outer)]
        taps = [*self.info.mit_sot_in_slices, *self.info.sit_sot_in_slices]
        for variable, buffer, of_state in zip(given, traced, taps, strict=True):
            rows, count = next(rest), -min(of_state)
            behind = difference(length_of(variable), self.given[0])
            is_whole = buffer.type.shape[0] == count or behind == count
            found.append(rows if is_whole else self.cut(rows, folded_shape_i(buffer, 0)))
        lengths = zip(op.outer_nitsot(self.given), op.outer_nitsot(self.outer), strict=True)
        for (variable, length), rows in zip(lengths, mapped[len(windows) :], strict=True):
            is_whole = difference(variable, self.given[0]) == 0
            found.append(rows if is_whole else self.cut(rows, pt.cast(length, "int64")))
        return [*found, *[rows[-1] for rows in rest]]

    def cut(self, rows: Any, length: Any) -> Any:
        """Return `rows` as a buffer of that `length`; that of a loop that ends early is never longer."""
        return cut(rows, length, not self.info.as_while)


RULES: dict[type, Rule] = {Scan: _scan}
