"""Draws of elements: choices with and without replacement, and permutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.random.discrete import categorical, integers
from engine.random.op import RandomVariable
from engine.random.size import normalize_size_param
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.math import maximum
from engine.tensor.shape import flatten, lengths_of, reshape, shape_i


class ChoiceWithoutReplacement(RandomVariable):
    """Elements of the first axis of `a`, none of them twice, with the probabilities `p` if those are given.

    The last parameter has the lengths of one choice.
    """

    name = "choice_without_replacement"

    @property
    def has_p_param(self) -> bool:
        """True if there are probabilities."""
        return len(self.inputs_sig) == 3

    def _supp_shape_from_params(self, dist_params: Sequence[Any], param_shapes: Any = None) -> Sequence[Any]:
        a, lengths = dist_params[0], dist_params[-1]
        first = a.type.ndim - self.ndims_params[0]
        rest = [
            shape_i(a, axis) if param_shapes is None else param_shapes[0][axis]
            for axis in range(first + 1, a.type.ndim)
        ]
        return [*lengths_of(lengths[(0,) * (lengths.type.ndim - 1)]), *rest]

    def rng_fn(self, *args: Any) -> Any:
        rng, a, *given, lengths, size = args
        p = given[0] if given else None
        chosen = tuple(lengths[(0,) * (lengths.ndim - 1)].tolist())
        batch = a.ndim - self.ndims_params[0]
        if batch == 0:
            return rng.choice(a, p=p, size=chosen or None, replace=False)
        if size is None:
            size = np.broadcast_shapes(a.shape[:batch], () if p is None else p.shape[:batch])
        a = np.broadcast_to(a, (*size, *a.shape[batch:]))
        p = None if p is None else np.broadcast_to(p, (*size, *p.shape[batch:]))
        draws = np.empty((*size, *chosen, *a.shape[len(size) + 1 :]), a.dtype)
        for at in np.ndindex(size):
            draws[at] = rng.choice(a[at], p=None if p is None else p[at], size=chosen, replace=False)
        return draws


def choice(
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    rng: Any = None,
    return_next_rng: bool = False,
) -> Any:
    """Return elements of the first axis of `a`, or of the integers from 0 to before it, of the shape `size`.

    They are equally likely, or have the probabilities `p`. Unless `replace`, none comes twice.
    """
    a = as_tensor_variable(a)
    count = a if a.type.ndim == 0 else shape_i(a, 0)
    p = None if p is None else _of_length(as_tensor_variable(p), count)
    if not replace and size is not None:
        return _without_replacement(a, size, p, rng, return_next_rng)
    if p is None:
        next_rng, positions = integers(0, count, size=size, rng=rng, return_next_rng=True)
    else:
        next_rng, positions = categorical(p, size=size, rng=rng, return_next_rng=True)
    draws = positions if a.type.ndim == 0 else a[positions]
    return (next_rng, draws) if return_next_rng else draws


def _of_length(p: Any, count: Any) -> Any:
    """Return the vector `p`, which must have `count` elements when it is drawn from (ValueError)."""
    if p.type.ndim != 1:
        raise ValueError(f"Choosing with probabilities {p} of type {p.type}: they must be a vector")
    return reshape(p, [maximum(count, 0)])


def _without_replacement(a: Any, size: Any, p: Any, rng: Any, return_next_rng: bool) -> Any:
    lengths: Any = normalize_size_param(size)
    n_chosen, axes = lengths.type.shape[0], [f"a{axis}" for axis in range(a.type.ndim)]
    chosen = [f"s{axis}" for axis in range(n_chosen)]
    params = [",".join(axes), *([] if p is None else [axes[0] if axes else "a"]), str(n_chosen)]
    signature = f"{','.join(f'({each})' for each in params)}->({','.join([*chosen, *axes[1:]])})"
    op = ChoiceWithoutReplacement(signature=signature, dtype=a.type.dtype)
    given = (a, lengths) if p is None else (a, p, lengths)
    return op(*given, rng=rng, return_next_rng=return_next_rng)


class PermutationRV(RandomVariable):
    """The parameter with its first axis in another order, or, if it is a number, the integers up to it."""

    name = "permutation"

    def _supp_shape_from_params(self, dist_params: Sequence[Any], param_shapes: Any = None) -> Sequence[Any]:
        (x,) = dist_params
        if self.ndims_params[0] == 0:
            return [flatten(x)[0]]
        first = x.type.ndim - self.ndims_params[0]
        return [
            shape_i(x, axis) if param_shapes is None else param_shapes[0][axis]
            for axis in range(first, x.type.ndim)
        ]

    def rng_fn(self, rng: Any, x: Any, size: Any) -> Any:
        batch = x.ndim - self.ndims_params[0]
        if batch == 0:
            return rng.permutation(x.item() if x.ndim == 0 else x)
        size = x.shape[:batch] if size is None else size
        if self.ndims_params[0] == 0:
            return self._of_counts(rng, np.broadcast_to(x, size), x.flat[0].item() if x.size else 0)
        x = np.broadcast_to(x, (*size, *x.shape[batch:]))
        draws = np.empty(x.shape, x.dtype)
        for at in np.ndindex(size):
            draws[at] = rng.permutation(x[at])
        return draws

    def _of_counts(self, rng: np.random.Generator, counts: Any, first: int) -> Any:
        """Return a permutation for each of `counts`, which must all be `first`: a draw has one length."""
        if not (counts == first).all():
            raise ValueError(
                f"Drawing permutations of {counts.ravel()[:6]} integers: the numbers must be equal"
            )
        return np.array([rng.permutation(first) for _ in range(counts.size)], counts.dtype).reshape(
            (*counts.shape, first)
        )


def permutation(x: Any, size: Any = None, rng: Any = None, return_next_rng: bool = False) -> Any:
    """Return `x` with its first axis in another order, or, if it is a number, the integers from 0 to before
    it."""
    x = as_tensor_variable(x)
    axes = f"({','.join(f'x{axis}' for axis in range(x.type.ndim))})"
    signature = f"{axes}->{axes if x.type.ndim else '(x)'}"
    op = PermutationRV(signature=signature, dtype=x.type.dtype)
    return op(x, size=size, rng=rng, return_next_rng=return_next_rng)
