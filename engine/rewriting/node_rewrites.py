"""The rewrites of nodes, for canonical and stable forms and for faster functions: their order and tags."""

from __future__ import annotations

from collections.abc import Sequence

from engine.rewriting.batches import local_blockwise_alloc, local_useless_blockwise
from engine.rewriting.by_name import BY_NAME
from engine.rewriting.database import EquilibriumDB
from engine.rewriting.inner_graphs import (
    inline_optimized_einsum,
    late_inline_OpFromGraph,
    local_join_dims,
    local_split_dims,
)
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.named_zeros import NAMED_ZEROS
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
from engine.rewriting.passes.constant_folding import constant_folding
from engine.rewriting.passes.distinct_elements import DISTINCT_ELEMENTS
from engine.rewriting.passes.gradient_controls import local_gradient_control
from engine.rewriting.passes.lifted_batches import local_subtensor_of_blockwise
from engine.rewriting.passes.lifted_parts import (
    LIFTED_PARTS,
    OF_MOVED_AXES,
    local_subtensor_of_dimshuffle,
)
from engine.rewriting.passes.lifted_selections import LIFTED_SELECTIONS, local_subtensor_of_adv_subtensor
from engine.rewriting.passes.selected_slices import SELECTED_SLICES
from engine.rewriting.passes.selected_writes import local_set_to_inc_subtensor
from engine.rewriting.passes.stabilize import STABILIZE
from engine.rewriting.replaced_ops import local_replace_op
from engine.rewriting.rewriters import NodeRewriter
from engine.rewriting.specialized import SPECIALIZED

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

_EVERYWHERE = ("fast_run", "fast_compile", "specialize")
"""The tags of most: what PyTensor specializes later, runs here at once."""

_FIRST: dict[NodeRewriter, tuple[str, ...]] = {
    **dict.fromkeys(BY_NAME, ()),
    **dict.fromkeys(NAMED_ZEROS, ("shape_unsafe",)),
    local_replace_op: ("fast_run", "fast_compile"),
    local_subtensor_of_adv_subtensor: (),
    # In functions, graphs have taken the places of these Ops before, and loops those of batches.
    local_split_dims: ("canonicalize",),
    local_join_dims: ("canonicalize",),
    late_inline_OpFromGraph: ("specialize",),
    inline_optimized_einsum: ("specialize",),
    batched_products.local_batched_matmul_to_core_matmul_with_reshape: ("specialize",),
    # It removes checks that may fail.
    checks.local_remove_all_assert: ("unsafe",),
}
"""Rewrites that are tried before these, and their tags. Functions have those without a mode's tag where their
mode names them.
"""

_LAST: dict[NodeRewriter, tuple[str, ...]] = {
    repeated_values.local_alloc_sink: ("fast_run", "specialize"),
    dots.local_outer_to_mul: _EVERYWHERE,
    **dict.fromkeys(SPECIALIZED, ("specialize",)),
}
"""Rewrites whose results are no canonical forms, and their tags."""

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
    arithmetic.local_one_over.name: ("fast_run", "fast_compile", "specialize"),
}
"""The tags of rewrites of which PyTensor's are in fewer sets: what is compiled fast repeats what it says, and
canonical forms have quotients.
"""

_IN_PYTENSOR: dict[str, Sequence[str]] = {
    local_useless_blockwise.name: ["local_eager_useless_unbatched_blockwise"],
    sums.local_useless_reduce.name: ["local_cut_useless_reduce"],
    local_subtensor_of_dimshuffle.name: OF_MOVED_AXES,
}
"""Other names of a rewrite, which are its tags."""


def canonical_forms() -> EquilibriumDB:
    """Return the database of rewrites of nodes, by name and by PyTensor's tags."""
    database = EquilibriumDB("canonicalize")
    for rewriter, tags in _FIRST.items():
        _register(database, rewriter, *tags)
    # Functions are merged before and after; who asks for canonical forms alone has them merged, too.
    database.register("merge", MergeOptimizer(), "canonicalize", use_db_name_as_tag=False)
    for tag, rewriters in (("canonicalize", CANONICALIZE), ("stabilize", STABILIZE)):
        for rewriter in rewriters:
            tags = _OWN_TAGS.get(rewriter.name, (*_EVERYWHERE, tag))
            unsafe = ["shape_unsafe"] if rewriter.name in _UNSAFE else []
            _register(database, rewriter, *tags, *unsafe, *_IN_PYTENSOR.get(rewriter.name, []))
    for rewriter, tags in _LAST.items():
        _register(database, rewriter, *tags)
    return database


def _register(database: EquilibriumDB, rewriter: NodeRewriter, *tags: str) -> None:
    database.register(rewriter.name, rewriter, *tags, use_db_name_as_tag=False)
