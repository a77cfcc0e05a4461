"""`optimize_inner_graphs`: the graph that an Op holds is rewritten as the graph around it, once for all equal Ops.

Nothing that a user holds changes: a thawed copy of the inner graph is rewritten, by the rewriter that is running, and
its frozen form goes into a new Op. An optimized Op is asked for before it is made (`OpStore`), so that a second
function, in this process or another, need not rewrite what it shares with a first.

A rewrite may recognise an Op's own graph and replace it by that Op. Outside that is what it is for; inside of the Op
itself it would never end. So where the Op that is being optimized, or one around it, turns up inside of its own graph,
that graph is put in its place again. What an Op became because of those around it is not kept for others.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Protocol, cast

from engine.graph.apply import Apply
from engine.graph.features import Feature
from engine.graph.fgraph import FunctionGraph
from engine.graph.frozen import FrozenFunctionGraph
from engine.graph.variables import Variable
from engine.inner.from_graph import OpFromGraph
from engine.rewriting.report import RewriteReport
from engine.rewriting.rewriters import GraphRewriter


class OpStore(Protocol):
    """Where optimized Ops are kept. It never raises because of what it holds."""

    def find(self, op: OpFromGraph) -> OpFromGraph | None:
        """The optimized form of `op`, if it is known."""

    def keep(self, op: OpFromGraph, optimized: OpFromGraph, seconds: float) -> None:
        """Keep what `op` became, in that time."""


class InnerGraphs(Feature):
    """How the inner graphs of a graph are rewritten: by `rewriter`, which is rewriting the graph itself."""

    provides = ("optimized_op",)

    def __init__(self, rewriter: GraphRewriter, store: OpStore | None) -> None:
        self.rewriter = rewriter
        self.store = store
        self.known: dict[OpFromGraph, OpFromGraph] = {}
        self.open: list[OpFromGraph] = []
        self.outermost = 0

    def optimized_op(
        self, fgraph: FunctionGraph, op: OpFromGraph, report: RewriteReport
    ) -> OpFromGraph | None:
        """The optimized form of `op`, a plain Op; None within its own graph."""
        if op in self.open:
            self.outermost = min(self.outermost, self.open.index(op))
            return None
        found = self.known.get(op) or (self.store.find(op) if self.store is not None else None)
        if found is None:
            return self._optimize(op, report)
        self.known[op] = found
        return found

    def _optimize(self, op: OpFromGraph, report: RewriteReport) -> OpFromGraph:
        begin = perf_counter()
        depth, around = len(self.open), self.outermost
        self.outermost = depth
        self.open.append(op)
        try:
            found = cast(OpFromGraph, op.with_inner_graph(self._rewritten(op, report)))
        finally:
            self.open.pop()
        if self.outermost >= depth:
            self.known[op] = found
            if self.store is not None:
                self.store.keep(op, found, perf_counter() - begin)
        self.outermost = min(around, self.outermost)
        report.count(OptimizeInnerGraphs.name)
        return found

    def _rewritten(self, op: OpFromGraph, report: RewriteReport) -> FrozenFunctionGraph:
        inner = op.fgraph.unfreeze()
        inner.attach_feature(self)
        # The passes of an inner graph take part of the time of the pass that is running: they are not listed.
        within = RewriteReport(applied=report.applied)
        self.rewriter.apply(inner, within)
        inner.remove_feature(self)
        return inner.freeze()


class InlineGraphs(GraphRewriter):
    """Replaces each OpFromGraph that asks for it by its graph."""

    name = "inline_graphs"

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        waiting = [node for node in fgraph.toposort() if _is_inline(node)]
        while waiting:
            node = waiting.pop()
            if node in fgraph.apply_nodes:
                waiting.extend(filter(_is_inline, replace_by_graph(fgraph, node, self.name)))
                report.count(self.name)


class OptimizeInnerGraphs(GraphRewriter):
    """Replaces each Op that holds a graph by one that holds the graph rewritten; see `InnerGraphs`.

    Does nothing to a graph whose rewriter did not say how: `rewrite_graph` does.
    """

    name = "optimize_inner_graphs"

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        optimized_op = getattr(fgraph, "optimized_op", None)
        waiting = [node for node in fgraph.toposort() if isinstance(node.op, OpFromGraph)]
        while waiting and optimized_op is not None:
            node = waiting.pop()
            op = cast(OpFromGraph, node.op).for_compilation()
            found = optimized_op(op, report)
            if found is None:
                copied = replace_by_graph(fgraph, node, self.name)
                waiting.extend(new for new in copied if isinstance(new.op, OpFromGraph))
            elif found is not node.op:
                outputs = [output.type.make_variable(output.name) for output in node.outputs]
                fresh = Apply(found, node.inputs, outputs)
                fgraph.replace_all(zip(node.outputs, fresh.outputs, strict=True), self.name)


def replace_by_graph(fgraph: FunctionGraph, node: Apply, reason: str) -> list[Apply]:
    """Use a copy of the graph that the Op of `node` holds in place of `node`; the nodes of that copy."""
    outputs, memo = cast(OpFromGraph, node.op).fgraph.bind(list(node.inputs), return_memo=True)
    fgraph.replace_all(zip(cast(Iterable[Variable], node.outputs), outputs, strict=True), reason)
    return [item for item in memo.values() if isinstance(item, Apply)]


def _is_inline(node: Apply) -> bool:
    return isinstance(node.op, OpFromGraph) and node.op.is_inline
