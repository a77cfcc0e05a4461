"""Sizes, copies and streams, under PyTensor's path."""

from engine.random.size import (
    broadcast_params,
    explicit_expand_dims,
    normalize_size_param,
    supp_shape_from_ref_param_shape,
)
from engine.random.states import custom_rng_deepcopy
from engine.random.stream import RandomStream

__all__ = [
    "RandomStream",
    "broadcast_params",
    "custom_rng_deepcopy",
    "explicit_expand_dims",
    "normalize_size_param",
    "supp_shape_from_ref_param_shape",
]
