"""The pipeline: the engine's rewrites, their order, and what runs them on a function's graph or a user's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.graph import Constant, FunctionGraph, Supervisor, Variable, graph_inputs
from engine.graph.replace import clone as copied
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.batches import BatchDB
from engine.rewriting.changes import Changes
from engine.rewriting.database import Description, SequenceDB
from engine.rewriting.inner_graphs import (
    GraphStore,
    InlineGraphs,
    InlineNamedOps,
    InnerGraphs,
    OptimizeInnerGraphs,
)
from engine.rewriting.linear_algebra import linear_algebra_database
from engine.rewriting.linear_algebra.database import DrainSpecifyAssumptions
from engine.rewriting.linear_algebra.shared_factors import scan_split_non_sequence_decomposition_and_solve
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.node_rewrites import canonical_forms
from engine.rewriting.passes import repeated_values, views_of_ones
from engine.rewriting.passes.branches import LazyBranches
from engine.rewriting.passes.fusion import FusionOptimizer, RecomputeForReductions
from engine.rewriting.passes.inplace import INPLACE
from engine.rewriting.passes.rerolling import RerollLayers
from engine.rewriting.passes.scan_merging import ScanMerge
from engine.rewriting.passes.whole_powers import WholePowers
from engine.rewriting.replaced_ops import ReplaceOps
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.rewriting.scans import CLEAN, ScanDB, ScanRewriter
from engine.rewriting.selections import selection_database
from engine.rewriting.walking import WalkingGraphRewriter

DEFAULT_QUERY = RewriteDatabaseQuery(include=("fast_run",))
"""All rewrites: the default for compiled functions."""


def _registered() -> SequenceDB:
    """Return the database of all rewrites of the engine, by name and by the tags below."""
    canonicalize = canonical_forms()
    database = SequenceDB("optdb")
    database.register("inline_graphs", InlineGraphs(), "fast_run", "fast_compile", position=-4)
    drain = DrainSpecifyAssumptions()
    database.register(drain.name, drain, "fast_run", "fast_compile", position=-3)
    selections = selection_database()
    database.register(selections.name, selections, position=-2.5)
    linear_algebra = linear_algebra_database()
    database.register(linear_algebra.name, linear_algebra, position=-2)
    database.register("inline_named_ops", InlineNamedOps(), "fast_run", "fast_compile", position=-1.5)
    database.register("replace_ops", ReplaceOps(), "fast_run", "fast_compile", position=-1)
    database.register("merge_first", MergeOptimizer(), "fast_run", "fast_compile", "merge", position=0)
    reroll = RerollLayers()
    database.register(reroll.name, reroll, "fast_run", "fast_compile", position=0.5)
    database.register("canonicalize", canonicalize, "fast_run", "fast_compile", position=1)
    lazy = LazyBranches()
    database.register(lazy.name, lazy, "fast_run", "fast_compile", position=1.5)
    batches = BatchDB("batches", canonicalize)
    database.register(batches.name, batches, "fast_run", "fast_compile", position=1.6)
    split = scan_split_non_sequence_decomposition_and_solve
    walk = WalkingGraphRewriter(split, ignore_newtrees=True, name=split.name)
    database.register(split.name, walk, position=1.9)
    fewer_views = WalkingGraphRewriter([views_of_ones.local_dimshuffle_subtensor], "out_to_in")
    database.register("local_dimshuffle_subtensor", fewer_views, "uncanonicalize", position=3)
    repeated = WalkingGraphRewriter([views_of_ones.local_dimshuffle_alloc], "out_to_in")
    database.register("local_dimshuffle_alloc", repeated, "uncanonicalize", position=3)
    database.register("scans", ScanDB("scans", canonicalize), "fast_run", "fast_compile", "scan", position=2)
    database.register(ScanMerge.name, ScanMerge(), "fast_run", "scan", position=3)
    optimize = OptimizeInnerGraphs()
    database.register(optimize.name, optimize, "fast_run", "fast_compile", position=44)
    clean = ScanRewriter("clean_scans", CLEAN)
    database.register(clean.name, clean, "fast_run", "fast_compile", "scan", position=44.5)
    database.register("merge_last", MergeOptimizer(), "fast_run", "fast_compile", "merge", position=45)
    database.register(WholePowers.name, WholePowers(), "fast_run", "specialize", position=47)
    database.register("recompute_for_reductions", RecomputeForReductions(), "fast_run", position=48)
    as_in_pytensor = ("elemwise_fusion", "local_elemwise_fusion")
    database.register("fusion", FusionOptimizer(), "fast_run", *as_in_pytensor, position=49)
    filled = repeated_values.FillOptimizer()
    database.register(filled.name, filled, "fast_run", "specialize", position=49.5)
    for inplace in INPLACE:
        database.register(inplace.name, inplace, "fast_run", "inplace", position=50.1)
    database.seal()
    return database


optdb = _registered()
"""All rewrites of the engine, and those that users add."""


def describe(query: RewriteDatabaseQuery = DEFAULT_QUERY) -> Description:
    """Return the names and positions of the chosen rewrites, in running order, for a cache key."""
    return optdb.describe(query)


def run_pipeline(
    fgraph: FunctionGraph,
    query: RewriteDatabaseQuery | GraphRewriter = DEFAULT_QUERY,
    graphs: GraphStore | None = None,
) -> RewriteReport:
    """Rewrite `fgraph` in place by the rewrites that `query` chooses, or by a rewriter of a user's; return
    counts and times.

    Types, broadcasting and, except for rounding, values stay. Equal graphs become equal graphs, in every
    process. Optimized inner graphs are looked up and kept in `graphs`. No input of `fgraph` is overwritten,
    unless its own Supervisor permits it. Refuse (InconsistencyError) a graph that overwrites a protected
    input already.
    """
    report = RewriteReport()
    if isinstance(query, GraphRewriter):
        rewriter, inner = query, InnerGraphs(query)
    else:
        rewriter = optdb.query(query)
        inner = InnerGraphs(rewriter, graphs, optdb.query(query.requiring("inplace")))
    fgraph.attach_feature(Supervisor(fgraph.inputs))
    fgraph.validate()
    fgraph.attach_feature(inner)
    rewriter.add_requirements(fgraph)
    try:
        rewriter.run(fgraph, report)
    finally:
        fgraph.remove_feature(inner)
    return report


def rewrite_graph(
    graph: Variable | Sequence[Variable] | FunctionGraph,
    include: Iterable[str] = ("canonicalize",),
    custom_rewrite: GraphRewriter | None = None,
    clone: bool = False,
    exclude: Iterable[str] = (),
    require: Iterable[str] = (),
) -> Any:
    """Return `graph` rewritten by the engine's rewrites of the tags `include`, then by `custom_rewrite`.

    Variables stay as they are: the result is new variables of the same inputs, or `graph` itself if nothing
    is rewritten in it. A FunctionGraph is rewritten in place unless `clone`. Tags that no rewrite has choose
    none.
    """
    query = RewriteDatabaseQuery(include, require, exclude)
    if isinstance(graph, FunctionGraph):
        fgraph = graph.clone() if clone else graph
        _rewrite_by(fgraph, query, custom_rewrite)
        return fgraph
    outputs = [graph] if isinstance(graph, Variable) else list(graph)
    fgraph, changes = _graph_of(outputs), Changes()
    fgraph.attach_feature(changes)
    _rewrite_by(fgraph, query, custom_rewrite)
    fgraph.remove_feature(changes)
    found = list(fgraph.outputs) if changes.are_made else outputs
    return found[0] if isinstance(graph, Variable) else found


def _graph_of(outputs: Sequence[Variable]) -> FunctionGraph:
    """Return a graph of copies of all nodes that `outputs` need, on the same inputs."""
    inputs = [v for v in graph_inputs(outputs) if not isinstance(v, Constant)]
    _, copies = copied(inputs, outputs, copy_inputs=False, copy_orphans=False)
    return FunctionGraph(inputs, copies, clone=False)


def _rewrite_by(
    fgraph: FunctionGraph, query: RewriteDatabaseQuery, custom_rewrite: GraphRewriter | None
) -> None:
    run_pipeline(fgraph, query)
    if custom_rewrite is not None:
        custom_rewrite.rewrite(fgraph)
