"""The steps that a Scan did, for its derivatives: their number, and what each read and computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.variables import Constant
from engine.inner.scan_info import InnerInputs, InnerOutputs, OuterInputs, OuterOutputs, ScanLike
from engine.tensor.known_lengths import known_length
from engine.tensor.math import sub
from engine.tensor.shape import Shape_i, shape_i

Pairs = list[tuple[Any, Any]]


class StepsDone:
    """The steps of `op` applied to `inputs`, with results `outputs`.

    Raises NotImplementedError for a Scan that does not keep whole traces: only rewriting makes such
    Scans.
    """

    def __init__(self, op: ScanLike, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        if any(keep is not None for keep in op.info.keeps):
            raise NotImplementedError(
                f"Differentiating {op}: take the derivative of the graph before it is rewritten"
            )
        self.info = op.info
        self.outer: OuterInputs[Any] = op.info.outer_inputs(inputs)
        self.traces: OuterOutputs[Any] = op.info.outer_outputs(outputs)
        self.number = self._number()

    def _number(self) -> Any:
        if not self.info.is_while:
            return self.outer.n_steps
        if self.traces.mapped:
            return shape_i(self.traces.mapped[0], 0)
        return sub(shape_i(self.traces.buffers[0], 0), self.info.n_initial(0))

    def use_up(self, sequence: Any) -> bool:
        """Return True if the graph says that there were as many steps as `sequence` has rows."""
        known, node = known_length(self.number), self.number.owner
        if known is not None:
            return known == sequence.type.shape[0]
        return node is not None and node.op == Shape_i(0) and node.inputs[0] is sequence

    def read(self, inputs: InnerInputs[Any], results: InnerOutputs[Any]) -> Pairs:
        """Return what each step read and computed: pairs of a sequence and the variable of its row in one
        step.

        Non-sequences have no pair, nor has a row whose type is more specific than the trace's.
        """
        pairs: Pairs = [
            (sequence if self.use_up(sequence) else sequence[: self.number], row)
            for sequence, row in zip(self.outer.sequences, inputs.rows, strict=True)
        ]
        for state, buffer in enumerate(self.traces.buffers):
            first = self.info.n_initial(state)
            taps = zip(self.info.taps[state], inputs.taps[state], strict=True)
            pairs += [(buffer[first + tap : tap], row) for tap, row in taps]
            pairs.append((buffer[first:], results.states[state]))
        pairs += zip(self.traces.mapped, results.mapped, strict=True)
        return [(trace, row) for trace, row in pairs if _is_row(row, trace)]


def _is_row(row: Any, trace: Any) -> bool:
    return not isinstance(row, Constant) and row.type.is_super(trace.type.clone(shape=trace.type.shape[1:]))


def computed_inside(arguments: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return new variables for `arguments`, and `outputs` computed from them.

    Subexpressions of `outputs` that equal an argument are replaced by its variable, not computed again.
    """
    graph = FrozenFunctionGraph.from_structural_inputs(arguments, outputs)
    inside = [variable.type.make_variable() for variable in arguments]
    return inside, graph.bind(inside)
