"""Rewriters that visit each node once, in one direction, and combinations of rewriters of nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from engine.configdefaults import config
from engine.graph import Apply, FunctionGraph, Op
from engine.graph.traversal import apply_ancestors, io_toposort
from engine.rewriting.equilibrium import (
    Affected,
    FailureCallback,
    NodeProcessingGraphRewriter,
)
from engine.rewriting.rewriters import NodeRewriter, Replacements, RewriteReport, Tracked, is_tracked

Direction = Literal["in_to_out", "out_to_in", "dfs"]


class WalkingGraphRewriter(NodeProcessingGraphRewriter):
    """Rewrites of nodes on one walk through the graph, from the inputs to the outputs, back, or depth first.

    Nodes that a rewrite makes are visited right after it, unless `ignore_newtrees`. Raises ValueError for
    another direction.
    """

    def __init__(
        self,
        rewriters: NodeRewriter | Sequence[NodeRewriter],
        order: Direction = "out_to_in",
        ignore_newtrees: bool = False,
        failure_callback: FailureCallback | None = None,
        name: str = "walk",
    ) -> None:
        if order not in ("in_to_out", "out_to_in", "dfs"):
            raise ValueError(
                f"Making a WalkingGraphRewriter: order is {order!r}; it must be 'in_to_out', 'out_to_in' "
                "or 'dfs'"
            )
        several = [rewriters] if isinstance(rewriters, NodeRewriter) else rewriters
        super().__init__(several, ignore_newtrees, failure_callback, name)
        self.order = order

    def _settle(self, fgraph: FunctionGraph, affected: Affected, report: RewriteReport) -> None:
        self._round(fgraph, affected, report, self._no_uses(fgraph))

    def _order(self, fgraph: FunctionGraph) -> Sequence[Apply]:
        if self.order == "dfs":
            return list(apply_ancestors(fgraph.outputs))
        nodes = io_toposort(fgraph.inputs, fgraph.outputs)  # also of a graph that overwrites too early
        return nodes if self.order == "in_to_out" else nodes[::-1]


def walking_rewriter(
    order: Direction,
    *node_rewriters: NodeRewriter,
    name: str | None = None,
    failure_callback: FailureCallback | None = None,
    ignore_newtrees: bool = False,
) -> WalkingGraphRewriter:
    """Return a rewriter of graphs that walks once in this direction and tries these rewrites on each node."""
    named = name or ", ".join(rewriter.name for rewriter in node_rewriters)
    return WalkingGraphRewriter(node_rewriters, order, ignore_newtrees, failure_callback, named)


in2out = partial(walking_rewriter, "in_to_out")
"""Return a rewriter of graphs that walks from the inputs to the outputs."""
out2in = partial(walking_rewriter, "out_to_in")
"""Return a rewriter of graphs that walks from the outputs to the inputs."""
dfs_rewriter = partial(walking_rewriter, "dfs")
"""Return a rewriter of graphs that walks from the outputs to the inputs, depth first."""


class SequentialNodeRewriter(NodeRewriter):
    """Rewriters of nodes tried in this order; the first that changes the node wins.

    With `apply_all_rewrites` they are tried again on the node of its replacements, until none applies.
    """

    def __init__(self, *rewriters: NodeRewriter, apply_all_rewrites: bool = False, name: str = "") -> None:
        self.rewrites = rewriters
        self.apply_all_rewrites = apply_all_rewrites
        self.name = name or ", ".join(rewriter.name for rewriter in rewriters)

    def tracks(self) -> Sequence[Tracked] | None:
        tracked = [rewriter.tracks() for rewriter in self.rewrites]
        if any(ops is None for ops in tracked):
            return None
        return [op for ops in tracked for op in ops or ()]

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for rewriter in self.rewrites:
            rewriter.add_requirements(fgraph)

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        found = self._first(fgraph, node)
        while self.apply_all_rewrites and found:
            following = _node_of(found)
            more = None if following is None else self._first(fgraph, following)
            if not more:
                break
            found = more
        return found

    def _first(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        for rewriter in self.rewrites:
            found = rewriter.transform_tracked(fgraph, node) if is_tracked(rewriter, node.op) else None
            if found:
                if config.is_printed(rewriter.name):
                    _print_rewrite(rewriter.name, node, found)
                return found
        return None


def _print_rewrite(name: str, node: Apply, replacements: Any) -> None:
    variables = replacements.values() if isinstance(replacements, dict) else replacements
    places = ", ".join(f"{v.owner.op}.{v.index}" if getattr(v, "owner", None) else str(v) for v in variables)
    sys.stdout.write(f"rewriting: rewrite {name} replaces node {node} with [{places}]\n")


def _node_of(replacements: Any) -> Apply | None:
    """Return the node that computes the first of `replacements`."""
    variables: Iterable[Any] = replacements.values() if isinstance(replacements, dict) else replacements
    return getattr(next(iter(variables)), "owner", None)


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
