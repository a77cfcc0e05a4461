"""PyTensor's module paths: where the engine has the names that PyTensor has in its modules.

A module under a path of PyTensor's asks `find` for the names that are not its own. A name is one of the
package at the path's root, or it is in the table: names that PyTensor's users import from a module only.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_TABLE: dict[str, dict[str, str]] = {
    "engine.compile": {
        "engine.compile.mode": "FAST_COMPILE OPT_FAST_RUN",
        "engine.compiling.mode": "OPT_FAST_COMPILE OPT_NONE predefined_optimizers",
        "engine.from_function": "FromFunctionOp as_op",
        "engine.rewriting": "optdb",
        "engine.shared_variables": "SharedVariable",
        "engine.tensor.copying": "DeepCopyOp deep_copy_op",
    },
    "engine.graph": {
        "engine.errors": "InconsistencyError MissingInputError",
        "engine.graph.connections": "io_connection_pattern",
        "engine.graph.rewrite_query": "RewriteDatabaseQuery",
        "engine.inner.base": "HasInnerGraph",
        "engine.rewriting.rewriters": "graph_rewriter node_rewriter",
    },
    "engine.scalar": {
        "engine.inner.composite": "Composite ScalarLoop",
        "engine.inner.slopes_of_numbers": "betainc_grad gammainc_grad gammaincc_grad",
        "engine.scalar.arithmetic": "Abs Add Ceil Floor IntDiv Mod Mul Neg Reciprocal Sign Sqr Sub "
        "TrueDiv Trunc",
        "engine.scalar.comparison": "AND EQ GE GT Invert IsInf IsNan LE LT Maximum Minimum NEQ OR Switch XOR",
        "engine.scalar.complex_numbers": "Complex Conj Imag Real",
        "engine.scalar.conversion": "Identity Second",
        "engine.scalar.exponential": "Exp Exp2 Expm1 Log Log10 Log1mexp Log1p Log2 Pow Sigmoid Softplus Sqrt",
        "engine.scalar.gamma": "Erf Erfc Gamma GammaLn PolyGamma Psi TriGamma",
        "engine.scalar.op": "BinaryScalarOp UnaryScalarOp",
        "engine.scalar.output_types": "float_out int_out real_out same_out same_out_float_only "
        "same_out_min8 same_out_nobool same_out_nocomplex specific_out upcast_out upcast_out_min8 "
        "upcast_out_no_complex upcast_out_nobool upgrade_to_float upgrade_to_float64 "
        "upgrade_to_float_no_complex",
        "engine.scalar.rounding": "round_half_away_from_zero_vec",
        "engine.scalar.trigonometric": "ArcCos ArcCosh ArcSin ArcSinh ArcTan ArcTan2 ArcTanh Cos Cosh Sin "
        "Sinh Tan Tanh",
    },
    "engine.scan": {
        "engine.scanning.checkpoints": "scan_checkpoints",
    },
    "engine.tensor": {
        "engine.graph.op": "Op",
        "engine.graph.variables": "Constant Variable",
        "engine.inner.einsum": "Einsum",
        "engine.tensor.copying": "CpuContiguous cpu_contiguous",
        "engine.tensor.creation": "AllocEmpty",
        "engine.tensor.distinct": "Unique",
        "engine.tensor.elementary": "variadic_add variadic_mul",
        "engine.tensor.dtypes": "all_dtypes complex_dtypes continuous_dtypes discrete_dtypes float_dtypes "
        "int_dtypes integer_dtypes uint_dtypes",
        "engine.tensor.index_entries": "flatten_index_variables get_idx_list indices_from_subtensor "
        "unflatten_index_variables",
        "engine.tensor.index_shapes": "as_index_constant as_index_literal basic_shape "
        "get_canonical_form_slice indexed_result_shape",
        "engine.tensor.indexing": "advanced_inc_subtensor advanced_set_subtensor advanced_subtensor",
        "engine.tensor.positions": "to_one_hot",
        "engine.tensor.quantifiers": "All Any",
        "engine.tensor.reduction": "ProdWithoutZeros",
        "engine.tensor.reduction_by": "CAReduce",
    },
    "engine.tensor.linalg": {
        "engine.tensor.linalg.equations": "SolveBase",
    },
    "engine.tensor.random": {
        "engine.random.shared": "UNSET",
    },
    "engine.tensor.random.rewriting": {
        "engine.rewriting.passes.draws": "local_dimshuffle_rv_lift local_rv_size_lift "
        "local_subtensor_rv_lift sidestep_unused_rng_consumer",
    },
    "engine.tensor.rewriting": {
        "engine.rewriting.batches": "local_blockwise_alloc local_useless_blockwise",
        "engine.rewriting.canonical_powers": "local_mul_exp_to_exp_add local_mul_pow_to_pow_add",
        "engine.rewriting.canonical_products": "local_mul_canonizer mul_canonizer",
        "engine.rewriting.canonical_reductions": "local_sum_prod_of_mul_or_div",
        "engine.rewriting.canonical_signs": "local_neg_to_mul",
        "engine.rewriting.canonical_sums": "add_canonizer local_add_canonizer",
        "engine.rewriting.distributed_products": "local_greedy_distributor",
        "engine.rewriting.inner_graphs": "inline_optimized_einsum",
        "engine.rewriting.linear_algebra.database": "DrainSpecifyAssumptions",
        "engine.rewriting.linear_algebra.decompositions": "cholesky_ldotlt cholesky_of_diag eigh_of_diag "
        "eigvalsh_of_diag lu_factor_of_diag lu_of_diag qr_of_diag qz_of_diag schur_of_diag svd_of_diag "
        "svd_uv_merge",
        "engine.rewriting.linear_algebra.determinants": "det_of_blockdiag det_of_factorized_matrix "
        "det_of_inv det_of_kronecker det_of_matrix_factorized_elsewhere det_of_triangular "
        "slogdet_specialization",
        "engine.rewriting.linear_algebra.diagonals": "extract_diag_lift_pass extract_diag_of_transpose "
        "local_extract_diag_of_alloc_diag local_extract_diag_of_eye",
        "engine.rewriting.linear_algebra.inverses": "inv_of_diag_to_diag_reciprocal inv_of_inv "
        "inv_of_orthogonal_to_transpose inv_to_solve lift_linalg_of_expanded_matrices transpose_of_inv",
        "engine.rewriting.linear_algebra.products": "diag_of_blockdiag diag_of_kronecker expm_of_diag "
        "fuse_blockdiagonal kron_of_diagonal_to_diagonal orthogonal_dot_transpose_to_eye "
        "useless_symmetric_transpose",
        "engine.rewriting.linear_algebra.selections": "det_of_permutation selection_dot_to_indexing",
        "engine.rewriting.linear_algebra.shared_factors": "reuse_decomposition_multiple_solves "
        "scan_split_non_sequence_decomposition_and_solve",
        "engine.rewriting.linear_algebra.solvers": "batched_vector_b_solve_to_matrix_b_solve "
        "block_diag_solve_to_block_diag_solves diagonal_solve_to_division "
        "generic_solve_to_solve_triangular orthogonal_solve_to_transpose_matmul "
        "paired_triangular_solves_to_cho_solve psd_solve_to_chol_solve scalar_solve_to_division "
        "solve_of_inv_to_matmul solve_sylvester_of_diag",
        "engine.rewriting.named_zeros": "local_0_dot_x local_incsubtensor_of_zeros local_mul_zero "
        "local_zero_div",
        "engine.rewriting.passes.arithmetic": "local_div_switch_sink local_mul_switch_sink",
        "engine.rewriting.passes.axes": "local_alloc_sink_dimshuffle local_dimshuffle_lift "
        "local_reshape_lift local_reshape_to_dimshuffle local_useless_alloc local_useless_reshape "
        "local_useless_subtensor",
        "engine.rewriting.passes.batched_products": "local_batched_matmul_to_core_matmul_with_reshape",
        "engine.rewriting.passes.branch_merging": "local_merge_switch_same_cond",
        "engine.rewriting.passes.checks": "local_lift_specify_shape_elemwise "
        "local_lift_specify_shape_inc_subtensor local_merge_consecutive_specify_shape "
        "local_remove_all_assert local_remove_useless_assert local_subtensor_SpecifyShape_lift "
        "local_useless_specify_shape",
        "engine.rewriting.passes.comparisons": "local_useless_elemwise_comparison local_useless_switch",
        "engine.rewriting.passes.constant_folding": "constant_folding topo_constant_folding "
        "topo_unconditional_constant_folding unconditional_constant_folding",
        "engine.rewriting.passes.distinct_elements": "local_Unique_lift local_Unique_scalar",
        "engine.rewriting.passes.dots": "local_dot_to_mul",
        "engine.rewriting.passes.fills": "local_useless_fill topological_second_sink",
        "engine.rewriting.passes.fusion": "FusionOptimizer",
        "engine.rewriting.passes.inplace": "local_inplace_setsubtensor",
        "engine.rewriting.passes.gamma_derivatives": "local_polygamma_to_digamma "
        "local_polygamma_to_tri_gamma",
        "engine.rewriting.passes.joined_slices": "local_join_subtensors",
        "engine.rewriting.passes.joins": "local_join_empty local_join_make_vector local_reduce_join",
        "engine.rewriting.passes.lifted_parts": "local_subtensor_of_alloc local_subtensor_of_batch_dims "
        "local_subtensor_of_dot local_subtensor_of_expand_dims local_subtensor_of_join "
        "local_subtensor_of_reduce local_subtensor_of_softmax local_subtensor_of_squeeze "
        "local_subtensor_of_transpose local_subtensor_remove_broadcastable_index",
        "engine.rewriting.passes.lifted_selections": "local_advanced_subtensor_of_dot "
        "local_subtensor_of_adv_subtensor",
        "engine.rewriting.passes.reads_of_writes": "local_advanced_read_of_write_constant_indices",
        "engine.rewriting.passes.repeated_reductions": "local_careduce_of_alloc",
        "engine.rewriting.passes.repeated_values": "local_elemwise_alloc",
        "engine.rewriting.passes.selected_slices": "local_adv_idx_to_diagonal local_adv_idx_to_slice",
        "engine.rewriting.passes.selected_writes": "local_set_to_inc_subtensor",
        "engine.rewriting.passes.shapes": "local_subtensor_make_vector local_useless_dimshuffle_makevector",
        "engine.rewriting.passes.single_numbers": "local_tensor_scalar_tensor",
        "engine.rewriting.passes.slices": "local_read_of_write_same_indices",
        "engine.rewriting.passes.slices_of_slices": "local_convert_negative_indices "
        "local_subtensor_merge_integer local_subtensor_merge_slice",
        "engine.rewriting.passes.softmaxes": "local_exp_log_softmax local_log_softmax_from_logsumexp",
        "engine.rewriting.passes.sums": "local_reduce_broadcastable local_reduce_chain local_useless_reduce",
        "engine.rewriting.passes.views_of_ones": "local_dimshuffle_alloc local_dimshuffle_subtensor "
        "local_fuse_expand_dims_reshape local_reshape_dimshuffle",
        "engine.rewriting.passes.whole_slices": "local_useless_slice",
        "engine.rewriting.passes.written_parts": "local_setsubtensor_of_constants "
        "local_useless_inc_subtensor local_write_of_write_same_indices",
        "engine.rewriting.passes.whole_powers": "local_pow_to_nested_squaring",
        "engine.raise_op": "assert_op",
        "engine.rewriting.registration": "register_canonicalize register_specialize register_stabilize "
        "register_uncanonicalize register_useless",
        "engine.rewriting.shape_feature": "ShapeFeature ShapeOptimizer",
        "engine.rewriting.specialized": "local_div_exp_to_mul_exp local_log_div",
    },
}
"""By the package at the root of paths: modules of the engine, and the names that are there."""

PLACES = {
    root: {name: module for module, names in modules.items() for name in names.split()}
    for root, modules in _TABLE.items()
}
"""By the package at the root of paths: the module of each name."""


def find(path: str, name: str) -> Any:
    """Return what PyTensor has as `name` in the module `path`, a path within the engine: also a module there.

    Raises AttributeError if the engine does not have it there.
    """
    root = max((each for each in PLACES if f"{path}.".startswith(f"{each}.")), key=len)
    place = PLACES[root].get(name)
    if place is not None and place != path:
        return getattr(import_module(place), name)
    if _has_module(path, name):
        return import_module(f"{path}.{name}")
    package = import_module(root)
    if root == path or name.startswith("_") or not hasattr(package, name):
        raise AttributeError(f"module {path!r} has no attribute {name!r}")
    return getattr(package, name)


def _has_module(path: str, name: str) -> bool:
    is_package = "__path__" in vars(sys.modules[path])
    return is_package and not name.startswith("_") and find_spec(f"{path}.{name}") is not None
