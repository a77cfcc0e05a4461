"""The pipeline: the engine's rewrites, their order, and what runs them on a function's graph or a user's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.graph import Constant, FunctionGraph, Supervisor, Variable, graph_inputs
from engine.graph.replace import clone as copied
from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.batches import BatchDB, local_blockwise_alloc, local_useless_blockwise
from engine.rewriting.by_name import BY_NAME
from engine.rewriting.changes import Changes
from engine.rewriting.database import Description, EquilibriumDB, SequenceDB
from engine.rewriting.inner_graphs import (
    GraphStore,
    InlineGraphs,
    InlineNamedOps,
    InnerGraphs,
    OptimizeInnerGraphs,
    inline_optimized_einsum,
    late_inline_OpFromGraph,
    local_join_dims,
    local_split_dims,
)
from engine.rewriting.linear_algebra import linear_algebra_database
from engine.rewriting.linear_algebra.database import DrainSpecifyAssumptions
from engine.rewriting.linear_algebra.shared_factors import scan_split_non_sequence_decomposition_and_solve
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.passes import (
    arithmetic,
    axes,
    batched_products,
    branch_merging,
    casts,
    checks,
    comparisons,
    dots,
    fills,
    gamma_derivatives,
    joined_slices,
    joins,
    reads_of_writes,
    repeated_reductions,
    repeated_values,
    shapes,
    single_numbers,
    slices,
    slices_of_slices,
    solver_inputs,
    sums,
    views_of_ones,
    whole_slices,
    written_parts,
)
from engine.rewriting.passes.branches import LazyBranches
from engine.rewriting.passes.constant_folding import constant_folding
from engine.rewriting.passes.distinct_elements import DISTINCT_ELEMENTS
from engine.rewriting.passes.fusion import FusionOptimizer, RecomputeForReductions
from engine.rewriting.passes.gradient_controls import local_gradient_control
from engine.rewriting.passes.inplace import INPLACE
from engine.rewriting.passes.lifted_batches import local_subtensor_of_blockwise
from engine.rewriting.passes.lifted_parts import (
    LIFTED_PARTS,
    OF_MOVED_AXES,
    local_subtensor_of_dimshuffle,
)
from engine.rewriting.passes.lifted_selections import LIFTED_SELECTIONS, local_subtensor_of_adv_subtensor
from engine.rewriting.passes.rerolling import RerollLayers
from engine.rewriting.passes.scan_merging import ScanMerge
from engine.rewriting.passes.selected_slices import SELECTED_SLICES
from engine.rewriting.passes.selected_writes import local_set_to_inc_subtensor
from engine.rewriting.passes.stabilize import STABILIZE
from engine.rewriting.passes.whole_powers import WholePowers
from engine.rewriting.replaced_ops import ReplaceOps, local_replace_op
from engine.rewriting.rewriters import GraphRewriter, NodeRewriter, RewriteReport
from engine.rewriting.scans import CLEAN, ScanDB, ScanRewriter
from engine.rewriting.selections import selection_database
from engine.rewriting.specialized import SPECIALIZED
from engine.rewriting.walking import WalkingGraphRewriter

CANONICALIZE: tuple[NodeRewriter, ...] = (
    local_gradient_control,
    local_useless_blockwise,
    local_blockwise_alloc,
    checks.local_remove_useless_assert,
    checks.local_useless_specify_shape,
    checks.local_merge_consecutive_specify_shape,
    checks.local_lift_specify_shape_elemwise,
    checks.local_lift_specify_shape_inc_subtensor,
    checks.local_subtensor_SpecifyShape_lift,
    constant_folding,
    single_numbers.local_tensor_scalar_tensor,
    solver_inputs.remove_constants_and_duplicate_inputs_scipy,
    shapes.local_shape_i,
    shapes.local_subtensor_make_vector,
    shapes.local_useless_dimshuffle_makevector,
    casts.local_useless_cast,
    casts.local_cast_of_cast,
    casts.local_cast_of_truth_sum,
    axes.local_dimshuffle_lift,
    axes.local_useless_reshape,
    axes.local_reshape_of_reshape,
    views_of_ones.local_reshape_dimshuffle,
    views_of_ones.local_fuse_expand_dims_reshape,
    axes.local_reshape_lift,
    axes.local_reshape_to_dimshuffle,
    axes.local_alloc_sink_dimshuffle,
    axes.local_useless_alloc,
    axes.local_useless_subtensor,
    slices.local_reverse_twice,
    whole_slices.local_useless_slice,
    slices_of_slices.local_convert_negative_indices,
    slices_of_slices.local_subtensor_merge_slice,
    slices_of_slices.local_subtensor_merge_integer,
    slices.local_read_of_write_same_indices,
    reads_of_writes.local_advanced_read_of_write_constant_indices,
    written_parts.local_write_of_write_same_indices,
    written_parts.local_useless_inc_subtensor,
    written_parts.local_setsubtensor_of_constants,
    slices.local_subtensor_of_fill,
    slices.local_initial_rows,
    *LIFTED_PARTS,
    local_subtensor_of_blockwise,
    *SELECTED_SLICES,
    *LIFTED_SELECTIONS,
    local_set_to_inc_subtensor,
    gamma_derivatives.local_polygamma_to_digamma,
    gamma_derivatives.local_polygamma_to_tri_gamma,
    fills.local_useless_fill,
    fills.local_fill_template,
    fills.local_fill_sink,
    repeated_values.local_elemwise_alloc,
    *DISTINCT_ELEMENTS,
    comparisons.local_useless_elemwise_comparison,
    comparisons.local_useless_switch,
    comparisons.local_int_div_by_one,
    joins.local_join_empty,
    joins.local_join_make_vector,
    joined_slices.local_join_subtensors,
    joins.local_reduce_join,
    dots.local_dot_to_mul,
    arithmetic.local_add_zero,
    arithmetic.local_sub_zero,
    arithmetic.local_mul_one,
    arithmetic.local_mul_constants,
    arithmetic.local_neg,
    arithmetic.local_add_sub_neg,
    arithmetic.local_mul_div_neg,
    arithmetic.local_div_by_constant,
    arithmetic.local_one_over,
    arithmetic.local_pow_constant,
    arithmetic.local_mul_switch_sink,
    arithmetic.local_div_switch_sink,
    branch_merging.local_merge_switch_same_cond,
    sums.local_useless_reduce,
    sums.local_reduce_broadcastable,
    sums.local_reduce_chain,
    sums.local_sum_of_multiple,
    sums.local_sum_of_fill,
    sums.local_extremum_of_fill,
    repeated_reductions.local_careduce_of_alloc,
)
"""Tried in this order on each node, together with the stabilizing ones, until none applies."""

FASTER: tuple[NodeRewriter, ...] = (repeated_values.local_alloc_sink, dots.local_outer_to_mul)
"""Tried with them in functions; their results are no canonical forms."""

_UNSAFE = frozenset(
    (
        axes.local_reshape_of_reshape.name,
        fills.local_useless_fill.name,
        fills.local_fill_template.name,
        fills.local_fill_sink.name,
        comparisons.local_useless_switch.name,
        *(rewriter.name for rewriter in STABILIZE),
    )
)
"""Rewrites after which a length may not be compared any more: x * y / y is x, also of another y. Their tag is
PyTensor's, `shape_unsafe`.
"""

_OWN_TAGS: dict[str, tuple[str, ...]] = {
    repeated_values.local_elemwise_alloc.name: ("fast_run", "canonicalize", "specialize"),
    repeated_values.local_alloc_sink.name: ("fast_run", "specialize"),
    arithmetic.local_one_over.name: ("fast_run", "fast_compile", "specialize"),
}
"""The tags of rewrites of which PyTensor's are in fewer sets: what is compiled fast repeats what it says, and
canonical forms have quotients.
"""

DEFAULT_QUERY = RewriteDatabaseQuery(include=("fast_run",))
"""All rewrites: the default for compiled functions."""


def _canonical_forms() -> EquilibriumDB:
    """Return the database of rewrites of nodes, by name and by PyTensor's tags."""
    canonicalize = EquilibriumDB("canonicalize")
    for named in BY_NAME:  # before all others, where a mode has them
        canonicalize.register(named.name, named, use_db_name_as_tag=False)
    canonicalize.register(
        local_replace_op.name, local_replace_op, "fast_run", "fast_compile", use_db_name_as_tag=False
    )
    canonicalize.register(
        local_subtensor_of_adv_subtensor.name, local_subtensor_of_adv_subtensor, use_db_name_as_tag=False
    )
    # In functions, graphs have taken the places of these Ops before, and loops those of batches.
    for inlining, tag in (
        (local_split_dims, "canonicalize"),
        (local_join_dims, "canonicalize"),
        (late_inline_OpFromGraph, "specialize"),
        (inline_optimized_einsum, "specialize"),
        (batched_products.local_batched_matmul_to_core_matmul_with_reshape, "specialize"),
    ):
        canonicalize.register(inlining.name, inlining, tag, use_db_name_as_tag=False)
    # It removes checks that may fail: functions have it where their mode names it.
    canonicalize.register(
        "local_remove_all_assert", checks.local_remove_all_assert, "unsafe", use_db_name_as_tag=False
    )
    # Functions are merged before and after; who asks for canonical forms alone has them merged, too.
    canonicalize.register("merge", MergeOptimizer(), "canonicalize", use_db_name_as_tag=False)
    as_in_pytensor = {
        local_useless_blockwise.name: ["local_eager_useless_unbatched_blockwise"],
        sums.local_useless_reduce.name: ["local_cut_useless_reduce"],
        local_subtensor_of_dimshuffle.name: OF_MOVED_AXES,
    }
    for tag, rewriters in (("canonicalize", CANONICALIZE), ("stabilize", STABILIZE)):
        tags = ("fast_run", "fast_compile", tag, "specialize")  # what PyTensor specializes, runs here at once
        for rewriter in rewriters:
            also = ["shape_unsafe"] if rewriter.name in _UNSAFE else []
            also += as_in_pytensor.get(rewriter.name, [])
            own = _OWN_TAGS.get(rewriter.name, tags)
            canonicalize.register(rewriter.name, rewriter, *own, *also, use_db_name_as_tag=False)
    for rewriter in FASTER:
        canonicalize.register(
            rewriter.name, rewriter, "fast_run", "fast_compile", "specialize", use_db_name_as_tag=False
        )
    for form in SPECIALIZED:
        canonicalize.register(form.name, form, "specialize", use_db_name_as_tag=False)
    return canonicalize


def _registered() -> SequenceDB:
    """Return the database of all rewrites of the engine, by name and by the tags below."""
    canonicalize = _canonical_forms()
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
