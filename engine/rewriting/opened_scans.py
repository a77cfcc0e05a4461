"""`OpenedScan`: a Scan of a graph taken apart, to be changed and put in its place again."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.inner.scan import Scan
from engine.inner.scan_building import Loop, State
from engine.rewriting.pattern import scalar_value

Read = tuple[Variable, Callable[[Variable], Variable]]
"""Something computed from a buffer, and how it is computed from the buffer that stands for it."""


class OpenedScan:
    """The Scan of `node`: what it is made of (`loop`), and the variables outside that are its outputs.

    `buffers` has one for each state of `loop`, `mapped` one for each mapped output: what is dropped there is dropped
    here. `reads` has, for a state whose buffer becomes another one, all that is computed from it. Nothing in the graph
    changes before `close`.
    """

    def __init__(self, fgraph: FunctionGraph, node: Apply) -> None:
        self.fgraph, self.node = fgraph, node
        self.op = cast(Scan, node.op)
        self.loop = Loop.of(self.op, node.inputs)
        self.buffers, self.mapped = self.op.info.outer_outputs(list(node.outputs))
        self.reads: dict[State, list[Read]] = {}

    def close(self, reason: str) -> Apply | None:
        """Put the Scan as it is now in place of the one it was; its node, or None if nothing changed."""
        buffers, mapped = self.loop.apply(Scan, self.op.truncate_gradient, self.op.name)
        node: Apply = [*buffers, *mapped][0].owner
        if node.op == self.op and all(a is b for a, b in zip(node.inputs, self.node.inputs, strict=True)):
            return None
        pairs = list(zip(self.mapped, mapped, strict=True))
        for state, old, new in zip(self.loop.states, self.buffers, buffers, strict=True):
            reads = self.reads.get(state)
            pairs += [(old, new)] if reads is None else [(variable, read(new)) for variable, read in reads]
        self.fgraph.replace_all(pairs, reason)
        return node

    def is_used(self, output: Variable) -> bool:
        """Whether anything in the graph uses an output."""
        return bool(self.fgraph.clients[output])

    def does_at_least(self, steps: int) -> bool:
        """Whether it is known that so many steps are done."""
        known = scalar_value(self.loop.n_steps)
        return known is not None and known >= steps and (self.loop.stop is None or steps <= 1)
