"""Rewriters of single nodes and of whole graphs, and the report of their work.

The result of a rewriter depends on the structure of the graph alone: it visits nodes in topological order,
never in an order that hashing or object identity decides.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Literal

from msgspec import Struct, field

from engine.graph import Apply, Feature, FunctionGraph, Op, Output, Variable, register_feature_callback
from engine.scalar.embedded import has_compiled_dtypes


class RewriteReport(Struct):
    """The number of applications of each rewrite, by name, and the seconds spent in each pass."""

    applied: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of rewrites applied."""
        return sum(self.applied.values())

    def count(self, name: str, times: int = 1) -> None:
        """Add `times` applications of the rewrite `name`."""
        if times:
            self.applied[name] = self.applied.get(name, 0) + times

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of the block to the pass `name`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start


Tracked = Op | type[Op]
Replacements = Sequence[Variable] | Literal[False] | None
Transform = Callable[[FunctionGraph, Apply], Replacements]

LOOK_BEHIND = 3
"""The distance downstream of a change that is visited again: the deepest pattern's depth, less one."""


class NodeRewriter:
    """A rewrite of one node, as `transform` gives replacements for its outputs."""

    name: str = ""

    def tracks(self) -> Sequence[Tracked] | None:
        """Return the Ops (or classes of Ops) with nodes to rewrite; None for all."""
        return None

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        """Return replacements for the outputs of `node`; None or False keeps the node."""
        raise NotImplementedError(f"{type(self).__name__} must implement transform()")


class FromFunctionNodeRewriter(NodeRewriter):
    """A node rewriter that calls a function."""

    def __init__(self, function: Transform, tracks: Sequence[Tracked] | None) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self._tracks = tracks

    def tracks(self) -> Sequence[Tracked] | None:
        return self._tracks

    def transform(self, fgraph: FunctionGraph, node: Apply) -> Replacements:
        return self.function(fgraph, node)


def node_rewriter(tracks: Sequence[Tracked] | None) -> Callable[[Transform], FromFunctionNodeRewriter]:
    """Return a decorator that makes a function of (fgraph, node) a rewriter.

    It rewrites the nodes of `tracks` (Ops or classes of Ops; None: all).
    """
    return lambda function: FromFunctionNodeRewriter(function, tracks)


class GraphRewriter:
    """A rewrite of a whole graph, in place."""

    name: str = ""

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        """Rewrite `fgraph` and count the applications in `report`."""
        raise NotImplementedError(f"{type(self).__name__} must implement apply()")

    def rewrite(self, fgraph: FunctionGraph) -> RewriteReport:
        """Rewrite `fgraph` and return the report."""
        report = RewriteReport()
        with report.timed(self.name or type(self).__name__):
            self.apply(fgraph, report)
        return report


class FromFunctionGraphRewriter(GraphRewriter):
    """A rewriter of graphs that calls a function."""

    def __init__(self, function: Callable[[FunctionGraph], object]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        self.function(fgraph)


def graph_rewriter(function: Callable[[FunctionGraph], object]) -> FromFunctionGraphRewriter:
    """Return a function of a FunctionGraph, which changes it in place, as a rewriter."""
    return FromFunctionGraphRewriter(function)


class SequentialGraphRewriter(GraphRewriter):
    """A sequence of rewriters of graphs, each timed under its own name."""

    def __init__(self, *rewriters: GraphRewriter, name: str = "sequence") -> None:
        self.rewriters = rewriters
        self.name = name

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for rewriter in self.rewriters:
            with report.timed(rewriter.name):
                rewriter.apply(fgraph, report)


class EquilibriumGraphRewriter(GraphRewriter):
    """Rewrites of nodes that run together until none applies.

    Each round goes through the graph once, from inputs to outputs, and visits only nodes that are new or
    have changed surroundings. It stops with a RuntimeWarning after `max_use_ratio` applications per node:
    then two rewrites undo each other.
    """

    def __init__(
        self, rewriters: Sequence[NodeRewriter], name: str = "equilibrium", max_use_ratio: int = 20
    ) -> None:
        self.rewriters = tuple(rewriters)
        self.name = name
        self.max_use_ratio = max_use_ratio
        self._found: dict[Op, tuple[NodeRewriter, ...]] = {}

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        affected = Affected()
        affected.nodes.update(fgraph.apply_nodes)
        fgraph.attach_feature(affected)
        try:
            self._settle(fgraph, affected, report)
        finally:
            fgraph.remove_feature(affected)

    def apply_after(self, change: Callable[[], bool], fgraph: FunctionGraph, report: RewriteReport) -> bool:
        """Make a `change` of a rewritten graph, and rewrite the nodes that it affects.

        Return the result of `change`: True if it changed anything.
        """
        affected = Affected()
        fgraph.attach_feature(affected)
        try:
            is_changed = change()
            self._settle(fgraph, affected, report)
        finally:
            fgraph.remove_feature(affected)
        return is_changed

    def _settle(self, fgraph: FunctionGraph, affected: Affected, report: RewriteReport) -> None:
        remaining = self.max_use_ratio * (len(fgraph.apply_nodes) + 10)
        while affected.nodes and remaining > 0:
            remaining = self._round(fgraph, affected, report, remaining)
        if remaining <= 0:
            warnings.warn(
                f"Rewriting with {self.name}: stopped after {self.max_use_ratio} applications per node; "
                f"two of its rewrites undo each other. Applied: {report.applied}",
                RuntimeWarning,
                stacklevel=3,
            )

    def _round(self, fgraph: FunctionGraph, affected: Affected, report: RewriteReport, remaining: int) -> int:
        """Go through the graph once; return the number of applications that are still allowed."""
        for visited in self._order(fgraph):
            if visited not in affected.nodes:
                continue
            queue = deque([visited])
            while queue and remaining > 0:
                node = queue.popleft()
                affected.nodes.discard(node)
                if node in fgraph.apply_nodes and self._rewrite_node(fgraph, node, report):
                    remaining -= 1
                    queue.extend(affected.take_new())
        affected.nodes = {node for node in affected.nodes if node in fgraph.apply_nodes}
        return remaining

    def _order(self, fgraph: FunctionGraph) -> Sequence[Apply]:
        return fgraph.toposort()

    def _rewrite_node(self, fgraph: FunctionGraph, node: Apply, report: RewriteReport) -> bool:
        """Apply the first rewrite that changes `node`; return True if one did.

        Nodes with complex numbers or float16 stay as they are: rewrites are about numbers that kernels
        compute.
        """
        if not has_compiled_dtypes(node):
            return False
        for rewriter in self.rewriters_of(node.op):
            replacements = rewriter.transform(fgraph, node)
            if replacements and replace_outputs(fgraph, node, replacements, rewriter.name):
                report.count(rewriter.name)
                return True
        return False

    def rewriters_of(self, op: Op) -> tuple[NodeRewriter, ...]:
        """Return the rewrites that may apply to nodes of `op`, in order."""
        found = self._found.get(op)
        if found is None:
            found = self._found[op] = tuple(
                rewriter for rewriter in self.rewriters if _is_tracked(rewriter, op)
            )
        return found


def replace_outputs(
    fgraph: FunctionGraph, node: Apply, replacements: Sequence[Variable], reason: str
) -> bool:
    """Replace the outputs of `node` by `replacements`; return True if that changes anything.

    Refuse (ValueError, TypeError) a wrong number of replacements, or one of another type.
    """
    if len(replacements) != len(node.outputs):
        raise ValueError(
            f"Rewriting {node} by {reason}: {len(node.outputs)} outputs need {len(node.outputs)} "
            f"replacements, {len(replacements)} were given"
        )
    pairs = [(old, new) for old, new in zip(node.outputs, replacements, strict=True) if new is not old]
    fgraph.replace_all(pairs, reason)
    return bool(pairs)


def _is_tracked(rewriter: NodeRewriter, op: Op) -> bool:
    tracked = rewriter.tracks()
    return tracked is None or any(
        isinstance(op, item) if isinstance(item, type) else item == op for item in tracked
    )


class Affected(Feature):
    """The nodes with changed surroundings, and the nodes imported since `take_new`."""

    def __init__(self) -> None:
        self.nodes: set[Apply] = set()
        self.new: list[Apply] = []

    @register_feature_callback
    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        self.nodes.add(node)
        self.new.append(node)

    @register_feature_callback
    def on_change_input(
        self, fgraph: FunctionGraph, node: Apply, index: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        level = [node]
        for _ in range(LOOK_BEHIND):
            level = [changed for changed in level if not isinstance(changed.op, Output)]
            self.nodes.update(level)
            level = [
                client
                for changed in level
                for output in changed.outputs
                for client, _ in fgraph.clients[output]
            ]

    def take_new(self) -> list[Apply]:
        """Return the nodes imported since the last call, each after those it needs."""
        new, self.new = self.new, []
        return new
