"""Public names of engine.tensor that many models do not use, by their modules: imported at first use.

Ops that hold a graph are above this package.
"""

from __future__ import annotations

MODULES = {
    **{name: f"engine.tensor.{name}" for name in ("fft", "interpolate", "linalg", "signal", "special")},
    "random": "engine.random",
}
"""Modules that are names themselves."""

_NAMES = {
    "engine.inner.diagonals": "AllocDiag ExtractDiag FillDiagonal FillDiagonalOffset alloc_diag diag "
    "diagonal extract_diag fill_diagonal fill_diagonal_offset trace",
    "engine.inner.einsum": "einsum",
    "engine.inner.padding": "Pad pad",
    "engine.inner.rearranging": "JoinDims Repeat Split SplitDims join_dims repeat split split_dims",
    "engine.inner.special": "LogSoftmax LogSumExp Softmax XLog1PY XLogY log_softmax logsumexp softmax",
    "engine.tensor.blockwise": "Blockwise vectorize",
    "engine.tensor.comparison": "equal not_equal less less_equal greater greater_equal bitwise_and "
    "bitwise_or bitwise_xor bitwise_not isfinite isinf isnan isposinf isneginf isclose allclose logical_and "
    "logical_or logical_xor logical_not values_eq_approx_always_true",
    "engine.tensor.conditional": "ifelse",
    "engine.tensor.checks": "SpecifyShape specify_broadcastable specify_shape",
    "engine.tensor.common_shape": "broadcast_shape broadcast_shape_iter",
    "engine.tensor.constants": "pi e euler_gamma inf nan newaxis",
    "engine.tensor.constant_values": "NotScalarConstantError get_scalar_constant_value "
    "get_underlying_scalar_constant_value",
    "engine.tensor.contractions": "dense_dot dot tensordot vecdot matvec vecmat cross",
    "engine.tensor.copying": "transfer",
    "engine.tensor.creation": "empty empty_like",
    "engine.tensor.diagonals": "Eye identity_like",
    "engine.tensor.elementary": "square sgn int_div log1pexp round tensor_copy "
    "round_half_away_from_zero iround deg2rad rad2deg divmod ceil_intdiv real conj conjugate imag angle "
    "complex_from_polar nan_to_num smallest largest gammau gammal chi2sf kv kn iv",
    "engine.tensor.conversion": "as_tensor",
    "engine.tensor.grids": "linspace logspace geomspace mgrid ogrid tril_indices triu_indices "
    "tril_indices_from triu_indices_from bartlett meshgrid",
    "engine.tensor.joining": "Join concatenate join stack",
    "engine.tensor.none_type": "NoneConst NoneTypeT none_type_t",
    "engine.tensor.ordering": "Argmax Argmin ArgSortOp SortOp argmax argmin argsort sort",
    "engine.tensor.distinct": "unique isin",
    "engine.tensor.interpolate": "interp interpolate1d",
    "engine.tensor.packing": "concat_with_broadcast pack unpack",
    "engine.tensor.gamma_derivatives": "polygamma",
    "engine.tensor.positions": "unravel_index ravel_multi_index choose permute_row_elements "
    "inverse_permutation",
    "engine.tensor.products": "Dot matmul outer",
    "engine.tensor.quantifiers": "all any",
    "engine.tensor.rearranging": "moveaxis swapaxes matrix_transpose shape_padleft shape_padright "
    "shape_padaxis atleast_Nd atleast_1d atleast_2d atleast_3d is_flat broadcast_to broadcast_arrays "
    "flip roll unstack tile horizontal_stack vertical_stack stacklists "
    "slice_at_axis",
    "engine.tensor.shape": "make_vector shape_tuple",
    "engine.tensor.slice_type": "NoneSliceConst make_slice slicetype",
    "engine.tensor.single_numbers": "ScalarFromTensor TensorFromScalar scalar_from_tensor tensor_from_scalar",
    "engine.tensor.searching": "SearchsortedOp searchsorted take take_along_axis nonzero_values compress "
    "ptp get_vector_length",
    "engine.tensor.several": " ".join(
        f"{prefix}{kind}"
        for prefix in ("", "d", "f", "i", "l", "c", "z")
        for kind in (
            "scalars vectors matrices rows cols tensor3s tensor4s tensor5s tensor6s tensor7s"
        ).split()
    ),
    "engine.tensor.type_groups": "TensorLike "
    + " ".join(
        f"{number}{rank}_types"
        for number in ("int", "float", "complex")
        for rank in ("", "_scalar", "_vector", "_matrix")
    ),
    "engine.tensor.math": "copysign hypot left_shift nextafter right_shift signbit",
    "engine.tensor.statistics": "diff max_and_argmax median cov bincount count_nonzero cumulative_sum "
    "cumulative_prod",
    "engine.gradient": "grad",
    "engine.gradient.jacobians": "jacobian hessian",
}

LATER = {name: module for module, names in _NAMES.items() for name in names.split()} | MODULES
"""The module of each name."""
