"""Rewriters that visit each node once, in one direction, and combinations of rewriters of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.graph import Apply, FunctionGraph, Op
from engine.rewriting.rewriters import (
    Affected,
    EquilibriumGraphRewriter,
    NodeRewriter,
    Replacements,
    RewriteReport,
    Tracked,
)

Direction = Literal["in_to_out", "out_to_in"]


class WalkingGraphRewriter(EquilibriumGraphRewriter):
    """Rewrites of nodes on one walk through the graph, from the inputs to the outputs or back.

    Nodes that a rewrite makes are visited right after it. Raises ValueError for another direction.
    """

    def __init__(
        self, rewriters: Sequence[NodeRewriter], order: Direction = "in_to_out", name: str = "walk"
    ) -> None:
        if order not in ("in_to_out", "out_to_in"):
            raise ValueError(
                f"Making a WalkingGraphRewriter: order is {order!r}; it must be 'in_to_out' or 'out_to_in'"
            )
        super().__init__(rewriters, name)
        self.order = order

    def _settle(self, fgraph: FunctionGraph, affected: Affected, report: RewriteReport) -> None:
        self._round(fgraph, affected, report, self.max_use_ratio * (len(fgraph.apply_nodes) + 10))

    def _order(self, fgraph: FunctionGraph) -> Sequence[Apply]:
        nodes = fgraph.toposort()
        return nodes if self.order == "in_to_out" else nodes[::-1]


def walking_rewriter(
    order: Direction, *node_rewriters: NodeRewriter, name: str | None = None
) -> WalkingGraphRewriter:
    """Return a rewriter of graphs that walks once in this direction and tries these rewrites on each node."""
    return WalkingGraphRewriter(
        node_rewriters, order, name or ", ".join(rewriter.name for rewriter in node_rewriters)
    )


def in2out(*node_rewriters: NodeRewriter, name: str | None = None) -> WalkingGraphRewriter:
    """Return a rewriter of graphs that walks from the inputs to the outputs."""
    return walking_rewriter("in_to_out", *node_rewriters, name=name)


def out2in(*node_rewriters: NodeRewriter, name: str | None = None) -> WalkingGraphRewriter:
    """Return a rewriter of graphs that walks from the outputs to the inputs."""
    return walking_rewriter("out_to_in", *node_rewriters, name=name)


class SequentialNodeRewriter(NodeRewriter):
    """Rewriters of nodes tried in this order; the first that changes the node wins."""

    def __init__(self, *rewriters: NodeRewriter, name: str = "") -> None:
        self.rewriters = rewriters
        self.name = name or ", ".join(rewriter.name for rewriter in rewriters)
        self._equilibrium = EquilibriumGraphRewriter(rewriters, self.name)

    def tracks(self) -> Sequence[Tracked] | None:
        tracked = [rewriter.tracks() for rewriter in self.rewriters]
        if any(ops is None for ops in tracked):
            return None
        return [op for ops in tracked for op in ops or ()]

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        for rewriter in self._equilibrium.rewriters_of(node.op):
            replacements = rewriter.transform(fgraph, node)
            if replacements:
                return replacements
        return None


class SubstitutionNodeRewriter(NodeRewriter):
    """Replaces one Op by another on the same inputs."""

    def __init__(self, old: Op, new: Op) -> None:
        self.old, self.new = old, new
        self.name = f"{old} -> {new}"

    def tracks(self) -> Sequence[Tracked]:
        return (self.old,)

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        if node.op != self.old:
            return None
        return self.new.make_node(*node.inputs).outputs
