"""Rewriters that apply rewrites of nodes throughout a graph: once, or until none applies.

Nodes are visited in topological order, never in an order that hashing or object identity decides.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.errors import InconsistencyError
from engine.graph import Apply, Feature, FunctionGraph, Op, Output, Variable, register_feature_callback
from engine.rewriting.rewriters import GraphRewriter, NodeRewriter, Replacements, RewriteReport, is_tracked
from engine.scalar.embedded import has_compiled_dtypes

LOOK_BEHIND = 3
"""The distance downstream of a change that is visited again: the deepest pattern's depth, less one."""


FailureCallback = Callable[
    [Exception, "NodeProcessingGraphRewriter", list[tuple[Variable, Any]], NodeRewriter, Apply], object
]
"""A function of an exception, the rewriter of the graph, the replacements, the rewrite and the node."""


class NodeProcessingGraphRewriter(GraphRewriter):
    """Rewrites of nodes, applied to the nodes of a graph.

    With `ignore_newtrees` nodes that a rewrite makes are left alone while the graph is walked. A
    `failure_callback` is called with an exception that a rewrite raises, and the walk goes on; without it,
    the exception ends the walk. It ends, too, when a rewrite is applied more than `max_use_ratio` times for
    each node that the graph has or had, or all of them for each that it had before and 10 more.
    """

    def __init__(
        self,
        rewriters: Sequence[NodeRewriter],
        ignore_newtrees: bool = False,
        failure_callback: FailureCallback | None = None,
        name: str = "",
        max_use_ratio: float = 20,
    ) -> None:
        self.rewriters = tuple(rewriters)
        self.ignore_newtrees = ignore_newtrees
        self.failure_callback = failure_callback
        self.name = name
        self.max_use_ratio = max_use_ratio
        self._found: dict[Op, tuple[NodeRewriter, ...]] = {}

    @staticmethod
    def warn(error: Exception, rewriter: Any, pairs: Any, node_rewriter: NodeRewriter, node: Apply) -> None:
        """Warn of a rewrite that failed; an AssertionError is raised again."""
        if isinstance(error, AssertionError):
            raise error
        warnings.warn(f"Rewriting {node} by {node_rewriter} failed: {error!r}", RuntimeWarning, stacklevel=2)

    @staticmethod
    def warn_inplace(
        error: Exception, rewriter: Any, pairs: Any, node_rewriter: NodeRewriter, node: Apply
    ) -> None:
        """Warn of a rewrite that failed, unless a Feature forbade the graph that it made."""
        if not isinstance(error, InconsistencyError):
            NodeProcessingGraphRewriter.warn(error, rewriter, pairs, node_rewriter, node)

    @staticmethod
    def warn_ignore(
        error: Exception, rewriter: Any, pairs: Any, node_rewriter: NodeRewriter, node: Apply
    ) -> None:
        """Do nothing about a rewrite that failed."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for rewriter in self.rewriters:
            rewriter.add_requirements(fgraph)

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        affected = Affected()
        affected.nodes.update(fgraph.apply_nodes)
        fgraph.attach_feature(affected)
        try:
            self._settle(fgraph, affected, report)
        finally:
            fgraph.remove_feature(affected)

    def _settle(self, fgraph: FunctionGraph, affected: Affected, report: RewriteReport) -> None:
        raise NotImplementedError(f"{type(self).__name__} must implement _settle()")

    def _no_uses(self, fgraph: FunctionGraph) -> _Uses:
        """Return the count of applications to `fgraph`, of which there are none yet."""
        return _Uses(self.max_use_ratio, fgraph)

    def _round(self, fgraph: FunctionGraph, affected: Affected, report: RewriteReport, uses: _Uses) -> None:
        """Go through the graph once, until a rewrite has more `uses` than allowed."""
        for visited in self._order(fgraph):
            if visited not in affected.nodes:
                continue
            queue = deque([visited])
            while queue and uses.too_many is None:
                node = queue.popleft()
                affected.nodes.discard(node)
                rewriter = self._rewrite_node(fgraph, node, report) if node in fgraph.apply_nodes else None
                if rewriter is not None:
                    uses.count(rewriter, fgraph)
                    new = affected.take_new()
                    queue.extend(() if self.ignore_newtrees else new)
        affected.nodes = {node for node in affected.nodes if node in fgraph.apply_nodes}

    def _order(self, fgraph: FunctionGraph) -> Sequence[Apply]:
        return fgraph.toposort()

    def _rewrite_node(self, fgraph: FunctionGraph, node: Apply, report: RewriteReport) -> NodeRewriter | None:
        """Apply the first rewrite that changes `node`; return it, or None.

        Nodes with complex numbers or float16 are left to the rewrites `for_all_dtypes`: the others are about
        numbers that kernels compute.
        """
        rewriters = self.rewriters_of(node.op)
        if not has_compiled_dtypes(node):
            rewriters = tuple([rewriter for rewriter in rewriters if rewriter.for_all_dtypes])
        for rewriter in rewriters:
            if self._is_rewritten(fgraph, node, rewriter):
                report.count(rewriter.name)
                return rewriter
        return None

    def _is_rewritten(self, fgraph: FunctionGraph, node: Apply, rewriter: NodeRewriter) -> bool:
        replacements: Replacements = None
        try:
            replacements = rewriter.transform_tracked(fgraph, node)
            return bool(replacements) and replace_outputs(fgraph, node, replacements, rewriter.name)
        except Exception as error:
            if self.failure_callback is None:
                raise
            new = replacements if isinstance(replacements, list | tuple) else [None] * len(node.outputs)
            self.failure_callback(error, self, list(zip(node.outputs, new, strict=False)), rewriter, node)
            return False

    def rewriters_of(self, op: Op) -> tuple[NodeRewriter, ...]:
        """Return the rewrites that may apply to nodes of `op`, in order."""
        found = self._found.get(op)
        if found is None:
            found = self._found[op] = tuple(
                rewriter for rewriter in self.rewriters if is_tracked(rewriter, op)
            )
        return found


class EquilibriumGraphRewriter(NodeProcessingGraphRewriter):
    """Rewrites of nodes that run together until none applies.

    Rewrites of graphs among them run before each round, `final_rewriters` when no rewrite of nodes applies.

    Each round goes through the graph once, from inputs to outputs, and visits only nodes that are new or
    have changed surroundings. It stops with a RuntimeWarning when a rewrite is applied more often than
    `max_use_ratio` allows: then two rewrites undo each other, or one has no end.
    """

    def __init__(
        self,
        rewriters: Sequence[NodeRewriter | GraphRewriter],
        failure_callback: FailureCallback | None = None,
        ignore_newtrees: bool = False,
        *,
        name: str = "equilibrium",
        max_use_ratio: float = 20,
        final_rewriters: Sequence[GraphRewriter] = (),
    ) -> None:
        of_nodes = [rewriter for rewriter in rewriters if isinstance(rewriter, NodeRewriter)]
        super().__init__(of_nodes, ignore_newtrees, failure_callback, name, max_use_ratio)
        self.global_rewriters = [r for r in rewriters if isinstance(r, GraphRewriter)]
        self.final_rewriters = list(final_rewriters)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        super().add_requirements(fgraph)
        for rewriter in (*self.global_rewriters, *self.final_rewriters):
            rewriter.add_requirements(fgraph)

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
        uses = self._no_uses(fgraph)
        while affected.nodes and uses.too_many is None:
            for rewriter in self.global_rewriters:
                rewriter.run(fgraph, report)
            self._round(fgraph, affected, report, uses)
            for rewriter in self.final_rewriters if not affected.nodes else ():
                rewriter.run(fgraph, report)
                uses.count(rewriter, fgraph)
        if uses.too_many is not None:
            warnings.warn(
                f"Rewriting with {self.name}: stopped at {uses.too_many}, after {self.max_use_ratio} "
                f"applications per node; two of its rewrites undo each other. Applied: {report.applied}",
                RuntimeWarning,
                stacklevel=3,
            )


class _Uses:
    """The applications of rewriters to a graph: at most `ratio` of each for every node that it has, or had,
    and of all together for every node that it had before and 10 more, so that no growth goes on for ever.

    `too_many` is the first that exceeds them, or None.
    """

    def __init__(self, ratio: float, fgraph: FunctionGraph) -> None:
        self.too_many: NodeRewriter | GraphRewriter | None = None
        self._ratio = ratio
        self._of_each = ratio * len(fgraph.apply_nodes)
        self._of_all = ratio * (len(fgraph.apply_nodes) + 10)
        self._counts: Counter[int] = Counter()

    def count(self, rewriter: NodeRewriter | GraphRewriter, fgraph: FunctionGraph) -> None:
        """Count an application to `fgraph`."""
        self._counts[id(rewriter)] += 1
        self._of_all -= 1
        self._of_each = max(self._of_each, self._ratio * len(fgraph.apply_nodes))
        if self._counts[id(rewriter)] > self._of_each or self._of_all <= 0:
            self.too_many = rewriter


def replace_outputs(fgraph: FunctionGraph, node: Apply, replacements: Any, reason: str) -> bool:
    """Replace the outputs of `node` by `replacements`; return True if that changes anything.

    Refuse (ValueError, TypeError) a wrong number of replacements, one of another type, and None for an
    output in use; and (InconsistencyError), in a graph that knows its destroyers, what cannot be ordered.
    """
    if isinstance(replacements, Mapping):
        found = dict(replacements)
        removed = found.pop("remove", ())
        fgraph.replace_all_validate_remove(list(found.items()), remove=removed, reason=reason)
        return bool(found)
    if len(replacements) != len(node.outputs):
        raise ValueError(
            f"Rewriting {node} by {reason}: {len(node.outputs)} outputs need {len(node.outputs)} "
            f"replacements, {len(replacements)} were given"
        )
    pairs = [(old, new) for old, new in zip(node.outputs, replacements, strict=True) if new is not old]
    used = [old for old, new in pairs if new is None and fgraph.clients[old]]
    if used:
        raise ValueError(f"Rewriting {node} by {reason}: nothing replaces {used[0]}, which is used")
    wanted = [(old, new) for old, new in pairs if new is not None]
    if hasattr(fgraph, "destroyers"):
        fgraph.replace_all_validate(wanted, reason)
    else:
        fgraph.replace_all(wanted, reason)
    return bool(pairs)


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

    @register_feature_callback
    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Visit what `node` used, and not itself: some rewrites are of what nothing else uses."""
        self.nodes.discard(node)
        self.nodes.update([v.owner for v in node.inputs if v.owner is not None])

    def take_new(self) -> list[Apply]:
        """Return the nodes imported since the last call, each after those it needs."""
        new, self.new = self.new, []
        return new
