"""`optimize_inner_graphs`: rewrites the inner graph of an Op like the graph around it, once for equal graphs.

Objects that users hold never change: the running rewriter rewrites a thawed copy of the inner graph, and a
new Op gets its frozen form, which includes the order of nodes if some of them overwrite. A `GraphStore` is
asked for an optimized graph first: so a second function, in this process or another, need not rewrite the
graphs that it shares with a first.

All inputs of an inner graph are protected from being overwritten: so one optimized form serves all Ops with
that graph. For an Op that lets some inputs be overwritten (`destroyable`: a state of a loop), the inplace
rewrites run on that form, once for all Ops with the same graph and the same such inputs.

A rewrite may recognize the inner graph of an Op and replace it by that Op. That is useful elsewhere, but
endless inside the Op itself: if the graph being optimized, or one around it, occurs inside itself, then it
replaces the Op that holds it. Results that depend on the graphs around are not kept for others.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any, Protocol, TypeGuard, cast

from engine.graph import Apply, Feature, FrozenFunctionGraph, FunctionGraph, Op, Supervisor, Variable
from engine.graph.user_ops import is_user_op
from engine.inner.base import HasInnerGraph
from engine.inner.diagonals import AllocDiag
from engine.inner.einsum import Einsum, einsum
from engine.inner.from_graph import OpFromGraph
from engine.inner.named_op import NamedOp
from engine.inner.rearranging import JoinDims, SplitDims
from engine.rewriting.rewriters import GraphRewriter, RewriteReport, node_rewriter
from engine.scalar import ScalarOp
from engine.tensor.matching import tensor_type_of


class GraphStore(Protocol):
    """A store of optimized inner graphs. Its methods never raise because of its contents."""

    def find(self, graph: FrozenFunctionGraph) -> FrozenFunctionGraph | None:
        """Return the optimized form of `graph`, or None on a miss."""

    def keep(self, graph: FrozenFunctionGraph, optimized: FrozenFunctionGraph, seconds: float) -> None:
        """Keep `optimized`, the form of `graph` that took `seconds` to make."""


class InnerGraphs(Feature):
    """The rewriting of inner graphs by `rewriter`, that of the graph itself, and its `inplace` part."""

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
        """Return `op`, which has an inner graph, with the optimized form; None within its own graph."""
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
            return graph  # only optimized graphs overwrite
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
        # A report of its own: the running pass includes the time of an inner graph's passes.
        within = RewriteReport(applied=report.applied)
        self.rewriter.run(inner, within)
        inner.remove_feature(self)
        return inner.freeze()

    def _freed(self, graph: FrozenFunctionGraph, destroyable: tuple[int, ...]) -> FrozenFunctionGraph:
        """Return the optimized `graph` with Ops that overwrite inputs at the positions `destroyable`."""
        if not destroyable or self.inplace is None:
            return graph
        found = self.freed.get((graph, destroyable))
        if found is None:
            inner = graph.unfreeze()
            protected = [v for place, v in enumerate(inner.inputs) if place not in destroyable]
            inner.attach_feature(Supervisor(protected))
            report = RewriteReport()
            self.inplace.run(inner, report)
            found = self.freed[graph, destroyable] = inner.freeze() if report.total else graph
        return found


class InlineGraphs(GraphRewriter):
    """The replacement of each OpFromGraph that asks for it by its inner graph, but for named Ops."""

    name = "inline_graphs"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        waiting = [node for node in fgraph.toposort() if self.is_inlined(node)]
        while waiting:
            node = waiting.pop()
            if node in fgraph.apply_nodes:
                waiting.extend(filter(self.is_inlined, replace_by_graph(fgraph, node, self.name)))
                report.count(self.name)

    def is_inlined(self, node: Apply) -> bool:
        """Return True for a node that is replaced."""
        return _is_inline(node) and not isinstance(node.op, NamedOp)


class InlineNamedOps(InlineGraphs):
    """The replacement of named Ops by their graphs, after the rewrites that look for them."""

    name = "inline_named_ops"

    def is_inlined(self, node: Apply) -> bool:
        return _is_inline(node)


@node_rewriter([OpFromGraph])
def inline_ofg_expansion(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """OpFromGraph(..., inline=True)(x) -> its graph of x."""
    return _graph_of(node) if _is_inline(node) else None


@node_rewriter([SplitDims])
def local_split_dims(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """split_dims(x, (n, m)) -> the reshape that it is."""
    return _graph_of(node)


@node_rewriter([JoinDims])
def local_join_dims(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """join_dims(x) -> the reshape that it is."""
    return _graph_of(node)


@node_rewriter([AllocDiag])
def late_inline_OpFromGraph(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """alloc_diag(v) -> zeros of which a diagonal is set to v."""
    return _graph_of(node)


@node_rewriter([Einsum])
def inline_optimized_einsum(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """einsum("ij,jk", x, y) -> its products, if it is known that no other order needs fewer operations."""
    op, inputs = node.op, node.inputs
    assert isinstance(op, Einsum)
    if op.optimized:
        return _graph_of(node)
    if any(None in tensor_type_of(v).shape for v in inputs):
        return None
    best = einsum(op.subscripts, *inputs).owner
    assert best is not None
    found = _graph_of(best)
    return found if node.outputs[0].type.is_super(found[0].type) else None


def _graph_of(node: Apply) -> list[Variable]:
    return list(cast(HasInnerGraph, node.op).fgraph.bind(list(node.inputs)))


class OptimizeInnerGraphs(GraphRewriter):
    """The replacement of inner graphs of tensors by optimized ones; see `InnerGraphs`.

    Composites have scalar graphs, which are not rewritten. Does nothing to graphs without an `InnerGraphs`,
    which `run_pipeline` attaches.
    """

    name = "optimize_inner_graphs"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
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
    """Return True if `op` has an inner graph to rewrite; other user Ops may use theirs in unknown ways."""
    if not isinstance(op, HasInnerGraph) or isinstance(op, ScalarOp):
        return False
    return isinstance(op, OpFromGraph) or (isinstance(op, Op) and not is_user_op(op))


def replace_by_graph(fgraph: FunctionGraph, node: Apply, reason: str) -> list[Apply]:
    """Replace `node` by a copy of the inner graph of its Op; return the nodes of the copy."""
    outputs, memo = cast(HasInnerGraph, node.op).fgraph.bind(list(node.inputs), return_memo=True)
    fgraph.replace_all(zip(cast(Iterable[Variable], node.outputs), outputs, strict=True), reason)
    return [item for item in memo.values() if isinstance(item, Apply)]


def _is_inline(node: Apply) -> bool:
    return isinstance(node.op, OpFromGraph) and node.op.is_inline
