"""Sizes of draws and lengths of batches, as expressions: they are computed without drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.reference import evaluate
from engine.graph.traversal import applys_between, graph_inputs
from engine.graph.user_ops import needs_python
from engine.graph.variables import Constant, Variable
from engine.tensor.common_shape import broadcast_shape
from engine.tensor.conversion import as_tensor_variable, constant, number
from engine.tensor.known_lengths import known_length
from engine.tensor.none_type import NoneConst, NoneTypeT
from engine.tensor.rearranging import broadcast_to, shape_padleft
from engine.tensor.shape import MakeVector, lengths_of, shape_i
from engine.tensor.type import is_data


def normalize_size_param(size: Any) -> Variable:
    """Return `size` as a vector of int64 of known length, or as the constant None.

    It is None, a length, a sequence of lengths, or a vector. Refuses (TypeError) anything but integers.
    """
    if size is None:
        return NoneConst
    if isinstance(size, Variable) and isinstance(size.type, NoneTypeT):
        return size
    if not isinstance(size, int | np.integer | Sequence | Variable | np.ndarray) or isinstance(size, str):
        raise TypeError("Parameter size must be None, an integer, or a sequence with integers.")
    if isinstance(size, Variable) and size.type.ndim == 1 and size.type.dtype == "int64":
        lengths_of(size)  # which refuses a vector of unknown length
        return size
    return as_vector(lengths_of(size))


def as_vector(lengths: Sequence[Any]) -> Any:
    """Return 0-d int64s as a vector."""
    if all(isinstance(length, Constant) for length in lengths):
        return constant(np.array([int(length.data) for length in lengths], "int64"))
    return MakeVector("int64").make_node(*lengths).outputs[0]


def static_length(length: Variable) -> int | None:
    """Return the number that a 0-d integer is known to be, without functions of users; None if it is not."""
    known = known_length(length)
    if known is not None:
        return known
    if not all(isinstance(v, Constant) and not is_data(v) for v in graph_inputs([length])):
        return None
    if any(needs_python(node.op) for node in applys_between((), [length])):
        return None
    return int(evaluate([], [length], [])[0])


def batch_lengths(
    params: Sequence[Any], ndims: Sequence[int], shapes: Sequence[Any] | None = None
) -> list[Any]:
    """Return the lengths, 0-d int64s, of the batch that `params` make together.

    The last `ndims` axes of each are those of one draw. Only axes of static length 1 broadcast. `shapes` has
    the lengths of each, if they are known better than the types know them. Raises ValueError for static
    lengths that differ.
    """
    found: list[list[Any]] = []
    for position, (param, ndim) in enumerate(zip(params, ndims, strict=False)):
        batch = param.type.ndim - ndim
        lengths = [shape_i(param, axis) for axis in range(batch)] if shapes is None else shapes[position]
        found.append(
            [
                number(1, "int64") if is_one else lengths[axis]
                for axis, is_one in enumerate(param.type.broadcastable[:batch])
            ]
        )
    rank = max(map(len, found), default=0)
    axes = [[each[axis - rank] for each in found if len(each) >= rank - axis] for axis in range(rank)]
    return [_common_length(lengths) for lengths in axes]


def _common_length(lengths: Sequence[Any]) -> Any:
    many = [v for v in dict.fromkeys(lengths) if known_length(v) != 1]
    known = {length: v for v in many if (length := known_length(v)) is not None}
    if len(known) > 1:
        raise ValueError(f"Drawing: lengths {sorted(known)} of parameters cannot be broadcast to one")
    if len(many) < 2 or known:
        return [*known.values(), *many, *lengths][0]
    return broadcast_shape(*[(length,) for length in many], arrays_are_shapes=True)[0]


def explicit_expand_dims(
    params: Sequence[Any], ndim_params: Sequence[int], size_length: int | None = None
) -> list[Any]:
    """Return `params` with axes of length 1 prepended, so that all batches have `size_length` axes (by
    default as many as the largest)."""
    batches = [param.type.ndim - ndim for param, ndim in zip(params, ndim_params, strict=True)]
    rank = max(batches, default=0) if size_length is None else size_length
    return [
        shape_padleft(param, rank - batch) if rank > batch else param
        for param, batch in zip(params, batches, strict=True)
    ]


def broadcast_params(params: Sequence[Any], ndims_params: Sequence[int]) -> list[Any]:
    """Return `params`, arrays or tensors, with the batch that they make together; the last `ndims_params`
    axes of each stay as they are."""
    if not any(isinstance(param, Variable) for param in params):
        cores = [param.ndim - ndim for param, ndim in zip(params, ndims_params, strict=True)]
        batch = np.broadcast_shapes(*[param.shape[:core] for param, core in zip(params, cores, strict=True)])
        return [
            np.broadcast_to(param, (*batch, *param.shape[core:]))
            for param, core in zip(params, cores, strict=True)
        ]
    tensors = [as_tensor_variable(param) for param in params]
    lengths = batch_lengths(tensors, ndims_params)
    return [
        broadcast_to(tensor, [*lengths, *(shape_i(tensor, axis - ndim) for axis in range(ndim))])
        for tensor, ndim in zip(tensors, ndims_params, strict=True)
    ]


def supp_shape_from_ref_param_shape(
    *,
    ndim_supp: int,
    dist_params: Sequence[Any],
    param_shapes: Sequence[Any] | None = None,
    ref_param_idx: int,
) -> tuple[Any, ...]:
    """Return the lengths of one draw: the last `ndim_supp` of the parameter number `ref_param_idx`.

    Raises ValueError if it has fewer axes, or if `ndim_supp` is not positive.
    """
    if ndim_supp <= 0:
        raise ValueError("ndim_supp must be greater than 0")
    if param_shapes is not None:
        return tuple(param_shapes[ref_param_idx][-ndim_supp:])
    param = dist_params[ref_param_idx]
    if param.ndim < ndim_supp:
        raise ValueError(
            f"Reference parameter does not match the expected dimensions; {param} has less than {ndim_supp}"
        )
    if not isinstance(param, Variable):
        return tuple(param.shape[-ndim_supp:])
    return tuple(shape_i(param, axis - ndim_supp) for axis in range(ndim_supp))
