"""`OpenedScan`: a Scan of a graph taken apart, to be changed and put in its place again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.replace import rebuild
from engine.graph.traversal import ancestors
from engine.graph.variables import Variable
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder, State
from engine.tensor.matching import scalar_value

Read = tuple[Variable, Callable[[Variable], Variable]]
"""Something computed from a buffer, and how it is computed from the buffer that stands for it."""

Derived = Callable[["NewOutputs"], Variable]
"""How something is computed from what the changed Scan gives."""


class OpenedScan:
    """The Scan of `node`: what it is made of (`loop`), and the variables outside that are its outputs.

    `buffers` has one for each state of `loop`, `mapped` one for each mapped output, or None for one that was not there:
    what is dropped there is dropped here. `reads` has, for a state whose buffer becomes another one, all that is computed
    from it; `derived` has what is computed from other outputs now, `unread` the outputs of which all of that is, and
    `whole` the states whose buffers must stay as they are for it; `used_up` has the rows of sequences that are known to be
    as long as the loop. Nothing in the graph changes before `close`.
    """

    def __init__(self, fgraph: FunctionGraph, node: Apply) -> None:
        self.fgraph, self.node = fgraph, node
        self.op = cast(Scan, node.op)
        self.loop = ScanBuilder.of(self.op, node.inputs)
        outputs = self.op.info.outer_outputs(cast(list[Variable], list(node.outputs)))
        self.buffers = outputs.buffers
        self.mapped: list[Variable | None] = [*outputs.mapped]
        self.reads: dict[State, list[Read]] = {}
        self.derived: dict[Variable, Derived] = {}
        self.unread: set[Variable] = set()
        self.whole: set[State] = set()
        self.used_up: set[Variable] = set()

    @property
    def outputs(self) -> list[Variable]:
        """The outputs that the Scan had and has."""
        return [*self.buffers, *(output for output in self.mapped if output is not None)]

    def close(self, reason: str) -> bool:
        """Put the Scan as it is now in place of the one it was; whether anything changed."""
        outputs = NewOutputs(self)
        node = outputs.node
        if not self.derived and node is not None and self._is_like(node):
            return False
        pairs = [(old, new) for old, new in zip(self.mapped, outputs.mapped, strict=True) if old is not None]
        for state, old in zip(self.loop.states, self.buffers, strict=True):
            buffer, reads = outputs.buffers[state], self.reads.get(state)
            pairs += [(old, buffer)] if reads is None else [(v, read(buffer)) for v, read in reads]
        pairs += [(old, derive(outputs)) for old, derive in self.derived.items()]
        self.fgraph.replace_all(pairs, reason)
        return True

    def _is_like(self, node: Apply) -> bool:
        pairs = zip(node.inputs, self.node.inputs, strict=False)
        return node.op == self.op and all(new is old for new, old in pairs)

    def has_trace(self, variable: Variable) -> bool:
        """Whether the rows of `variable`, which steps read or compute, can be had from the Scan as it is."""
        loop = self.loop
        states = [state.new for state in loop.states if state.keep is None]
        return variable in self.used_up or any(found is variable for found in (*states, *loop.mapped))

    def add_trace(self, variable: Variable) -> None:
        """See to it that the rows of `variable` can be had."""
        if not self.has_trace(variable):
            self.loop.mapped.append(variable)
            self.mapped.append(None)

    def outside(self, variable: Variable) -> Variable | None:
        """What `variable` of a step is outside, if it does not change."""
        varying = set(self.loop.varying)
        if any(found in varying for found in ancestors([variable])):
            return None
        return rebuild([variable], {inner: outer for outer, inner in self.loop.non_sequences})[0]

    def is_used(self, output: Variable | None) -> bool:
        """Whether anything in the graph uses an output."""
        return output is None or (output not in self.unread and bool(self.fgraph.clients[output]))

    def does_at_least(self, steps: int) -> bool:
        """Whether it is known that so many steps are done."""
        known = scalar_value(self.loop.n_steps)
        return known is not None and known >= steps and (self.loop.stop is None or steps <= 1)


class NewOutputs:
    """What the changed loop of `scan` gives; `node` is that of its Scan, None if there are no outputs."""

    def __init__(self, scan: OpenedScan) -> None:
        self.scan, self.loop = scan, scan.loop
        self.buffers: dict[State, Variable] = {}
        self.mapped: list[Variable] = []
        self.node: Apply | None = None
        if self.loop.states or self.loop.mapped:
            op = scan.op
            buffers, self.mapped = self.loop.apply(Scan, op.truncate_gradient, op.name)
            self.buffers = dict(zip(self.loop.states, buffers, strict=True))
            self.node = [*buffers, *self.mapped][0].owner

    def instead_of(self, output: Variable) -> Variable:
        """What stands for an output that the Scan had."""
        new = [*self.buffers.values(), *self.mapped]
        pairs = zip([*self.scan.buffers, *self.scan.mapped], new, strict=True)
        return next(found for old, found in pairs if old is output)

    def trace(self, variable: Variable) -> Any:
        """The rows of `variable` at all steps done; the Scan must have them."""
        for sequence, row in self.loop.sequences:
            if row is variable and row in self.scan.used_up:
                return sequence
        for state, buffer in self.buffers.items():
            if state.new is variable and state.keep is None:
                return buffer[-state.taps[0] :]  # type: ignore[index]
        return next(m for m, inner in zip(self.mapped, self.loop.mapped, strict=True) if inner is variable)
