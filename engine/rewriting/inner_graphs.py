"""`optimize_inner_graphs`: the graph that an Op holds is rewritten as the graph around it, once for all equal graphs.

Nothing that a user holds changes: a thawed copy of the inner graph is rewritten, by the rewriter that is running, and
its frozen form goes into a new Op. Where something in it overwrites, its order is a part of that form. An optimized
graph is asked for before it is made (`GraphStore`), so that a second function, in this process or another, need not
rewrite what it shares with a first.

All inputs of an inner graph are protected from being overwritten, whatever Op holds it: so one form serves all Ops.
An Op that lets some be overwritten (`destroyable`: a state of a loop) gets that form with what is inplace added, which
is done once for all Ops that hold the same graph and let the same inputs be overwritten.

A rewrite may recognise an Op's own graph and replace it by that Op. Outside that is what it is for; inside of the Op
itself it would never end. So where the graph that is being optimized, or one around it, turns up inside of itself, it is
put in the place of the Op that holds it. What a graph became because of those around it is not kept for others.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any, Protocol, TypeGuard, cast

from engine.graph.apply import Apply
from engine.graph.features import Feature, Supervisor
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import is_users
from engine.graph.variables import Variable
from engine.inner.base import HasInnerGraph
from engine.inner.from_graph import OpFromGraph
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.scalar import ScalarOp


class GraphStore(Protocol):
    """Where optimized inner graphs are kept. It never raises because of what it holds."""

    def find(self, graph: FrozenFunctionGraph) -> FrozenFunctionGraph | None:
        """The optimized form of `graph`, if it is known."""

    def keep(self, graph: FrozenFunctionGraph, optimized: FrozenFunctionGraph, seconds: float) -> None:
        """Keep what `graph` became, in that time."""


class InnerGraphs(Feature):
    """How the inner graphs of a graph are rewritten: by `rewriter`, which is rewriting the graph itself; `inplace` is
    the part of it that makes Ops overwrite."""

    provides = ("optimized_op",)

    def __init__(
        self, rewriter: GraphRewriter, store: GraphStore | None = None, inplace: GraphRewriter | None = None
    ) -> None:
        self.rewriter = rewriter
        self.store = store
        self.inplace = inplace
        self.known: dict[FrozenFunctionGraph, FrozenFunctionGraph] = {}
        self.freed: dict[tuple[FrozenFunctionGraph, tuple[int, ...]], FrozenFunctionGraph] = {}
        self.made: dict[tuple[Op, FrozenFunctionGraph], Op] = {}
        self.open: list[FrozenFunctionGraph] = []
        self.outermost = 0

    def optimized_op(self, fgraph: FunctionGraph, op: Op, report: RewriteReport) -> Op | None:
        """`op`, which holds a graph, with its optimized form; None within its own graph."""
        assert isinstance(op, HasInnerGraph)
        plain: Any = op.for_compilation()
        graph = self._optimized(plain.fgraph, report)
        if graph is None:
            return None
        graph = self._freed(graph, plain.destroyable)
        found = self.made.get((plain, graph))
        if found is None:
            found = self.made[plain, graph] = (
                plain if graph is plain.fgraph else plain.with_inner_graph(graph)
            )
        return found

    def _optimized(self, graph: FrozenFunctionGraph, report: RewriteReport) -> FrozenFunctionGraph | None:
        if any(node.op.destroy_map for node in graph.nodes):
            return graph  # only what is optimized overwrites anything
        if graph in self.open:
            self.outermost = min(self.outermost, self.open.index(graph))
            return None
        found = self.known.get(graph) or (self.store.find(graph) if self.store is not None else None)
        if found is None:
            return self._optimize(graph, report)
        self.known[graph] = found
        return found

    def _optimize(self, graph: FrozenFunctionGraph, report: RewriteReport) -> FrozenFunctionGraph:
        begin = perf_counter()
        depth, around = len(self.open), self.outermost
        self.outermost = depth
        self.open.append(graph)
        try:
            found = self._rewritten(graph, report)
        finally:
            self.open.pop()
        if self.outermost >= depth:
            self.known[graph] = found
            if self.store is not None:
                self.store.keep(graph, found, perf_counter() - begin)
        self.outermost = min(around, self.outermost)
        report.count(OptimizeInnerGraphs.name)
        return found

    def _rewritten(self, graph: FrozenFunctionGraph, report: RewriteReport) -> FrozenFunctionGraph:
        inner = graph.unfreeze()
        inner.attach_feature(Supervisor(inner.inputs))
        inner.attach_feature(self)
        # The passes of an inner graph take part of the time of the pass that is running: they are not listed.
        within = RewriteReport(applied=report.applied)
        self.rewriter.apply(inner, within)
        inner.remove_feature(self)
        return inner.freeze()

    def _freed(self, graph: FrozenFunctionGraph, destroyable: tuple[int, ...]) -> FrozenFunctionGraph:
        """The optimized `graph` where the inputs at the places `destroyable` may be overwritten."""
        if not destroyable or self.inplace is None:
            return graph
        found = self.freed.get((graph, destroyable))
        if found is None:
            inner = graph.unfreeze()
            protected = [v for place, v in enumerate(inner.inputs) if place not in destroyable]
            inner.attach_feature(Supervisor(protected))
            report = RewriteReport()
            self.inplace.apply(inner, report)
            found = self.freed[graph, destroyable] = inner.freeze() if report.total else graph
        return found


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
    """Replaces each Op that holds a graph by one that holds the graph rewritten; see `InnerGraphs`. A Composite is
    made of scalars, which are not rewritten.

    Does nothing to a graph whose rewriter did not say how: `rewrite_graph` does.
    """

    name = "optimize_inner_graphs"

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        optimized_op = getattr(fgraph, "optimized_op", None)
        waiting = [node for node in fgraph.toposort() if holds_graph(node.op)]
        while waiting and optimized_op is not None:
            node = waiting.pop()
            found = optimized_op(node.op, report)
            if found is None:
                copied = replace_by_graph(fgraph, node, self.name)
                waiting.extend(new for new in copied if holds_graph(new.op))
            elif found is not node.op:
                outputs: list[Variable] = [output.type.make_variable(output.name) for output in node.outputs]
                fresh = Apply(found, node.inputs, outputs)
                fgraph.replace_all(zip(node.outputs, fresh.outputs, strict=True), self.name)


def holds_graph(op: object) -> TypeGuard[HasInnerGraph]:
    """Whether `op` holds a graph of tensors that is rewritten. What else a user's Op does with one, nobody knows."""
    if not isinstance(op, HasInnerGraph) or isinstance(op, ScalarOp):
        return False
    return isinstance(op, OpFromGraph) or (isinstance(op, Op) and not is_users(op))


def replace_by_graph(fgraph: FunctionGraph, node: Apply, reason: str) -> list[Apply]:
    """Use a copy of the graph that the Op of `node` holds in place of `node`; the nodes of that copy."""
    outputs, memo = cast(HasInnerGraph, node.op).fgraph.bind(list(node.inputs), return_memo=True)
    fgraph.replace_all(zip(cast(Iterable[Variable], node.outputs), outputs, strict=True), reason)
    return [item for item in memo.values() if isinstance(item, Apply)]


def _is_inline(node: Apply) -> bool:
    return isinstance(node.op, OpFromGraph) and node.op.is_inline
