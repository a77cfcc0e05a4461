"""`OpenedScan`: a Scan of a graph taken apart, to be changed and rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from engine.graph import Apply, FunctionGraph, Variable, ancestors, rebuild
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder, State
from engine.tensor.matching import scalar_value

Read = tuple[Variable, Callable[[Variable], Variable]]
"""A variable computed from a buffer, and a function that computes it from the buffer's replacement."""

Derived = Callable[["NewOutputs"], Variable]
"""A function that computes a variable from the outputs of the changed Scan."""


class OpenedScan:
    """The Scan of `node` as parts that can be changed (`loop`), with its outputs in the outer graph.

    - `buffers` has the output of each state of `loop`.
    - `mapped` has each mapped output, or None for one that was added.
    - `reads` has all variables computed from a buffer that is replaced by a shorter one, by state.
    - `derived` has the outer variables to compute from other outputs.
    - `unread` has the outputs of which `derived` covers all uses.
    - `whole` has the states with buffers that must stay complete.
    - `used_up` has the rows of sequences that are known to be as long as the loop.

    Edits that drop a part of `loop` drop its output here too. The graph changes only in `close`.
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
        """The present outputs that the Scan had before."""
        return [*self.buffers, *(output for output in self.mapped if output is not None)]

    def close(self, reason: str) -> bool:
        """Replace the Scan by its changed form; return True if anything changed."""
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
        """Return True if the Scan has all rows of `variable`, which steps read or compute."""
        loop = self.loop
        states = [state.new for state in loop.states if state.keep is None]
        return variable in self.used_up or any(found is variable for found in (*states, *loop.mapped))

    def add_trace(self, variable: Variable) -> None:
        """Make the Scan return all rows of `variable`."""
        if not self.has_trace(variable):
            self.loop.mapped.append(variable)
            self.mapped.append(None)

    def outside(self, variable: Variable) -> Variable | None:
        """Return `variable` of a step as a variable of the outer graph; None if it changes between steps."""
        varying = set(self.loop.varying)
        if any(found in varying for found in ancestors([variable])):
            return None
        return rebuild([variable], {inner: outer for outer, inner in self.loop.non_sequences})[0]

    def is_used(self, output: Variable | None) -> bool:
        """Return True if the graph uses an output."""
        return output is None or (output not in self.unread and bool(self.fgraph.clients[output]))

    def does_at_least(self, steps: int) -> bool:
        """Return True if the loop is known to do at least `steps` steps."""
        known = scalar_value(self.loop.n_steps)
        return known is not None and known >= steps and (self.loop.stop is None or steps <= 1)


class NewOutputs:
    """The outputs of the changed `scan`; `node` is the node of its Scan, None if there are no outputs."""

    def __init__(self, scan: OpenedScan) -> None:
        self.scan, self.loop = scan, scan.loop
        self.buffers: dict[State, Variable] = {}
        self.mapped: list[Variable] = []
        self.node: Apply | None = None
        if self.loop.states or self.loop.mapped:
            op = scan.op
            kind = type(op) if len(self.loop.states) == len(op.info.taps) else Scan
            buffers, self.mapped = self.loop.apply(kind, op.truncate_gradient, op.name)
            self.buffers = dict(zip(self.loop.states, buffers, strict=True))
            self.node = [*buffers, *self.mapped][0].owner

    def instead_of(self, output: Variable) -> Variable:
        """Return the new output that replaces `output`."""
        new = [*self.buffers.values(), *self.mapped]
        pairs = zip([*self.scan.buffers, *self.scan.mapped], new, strict=True)
        return next(found for old, found in pairs if old is output)

    def trace(self, variable: Variable) -> Any:
        """Return the rows of `variable` at all steps; the Scan must have them."""
        for sequence, row in self.loop.sequences:
            if row is variable and row in self.scan.used_up:
                return sequence
        for state, buffer in self.buffers.items():
            if state.new is variable and state.keep is None:
                return buffer[-state.taps[0] :]  # type: ignore[index]
        return next(m for m, inner in zip(self.mapped, self.loop.mapped, strict=True) if inner is variable)
