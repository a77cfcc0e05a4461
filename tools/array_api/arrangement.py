"""The functions of the standard that rearrange, choose, sort and reduce elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import engine.tensor as pt


class UniqueAll(NamedTuple):
    """The distinct elements, where each is first, where each element is among them, and their numbers."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The distinct elements, and how many of each there are."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The distinct elements, and where each element is among them."""

    values: Any
    inverse_indices: Any


def concat(arrays: Any, *, axis: int | None = 0) -> Any:
    """Return `arrays` one after the other along `axis`; all elements, as a vector, if that is None."""
    if axis is None:
        return pt.concatenate([pt.flatten(each) for each in arrays])
    return pt.concatenate(arrays, axis)


def nonzero(x: Any) -> Any:
    """Return the indices of the elements that are not 0, a vector for each axis: ValueError without any."""
    if x.ndim == 0:
        raise ValueError("Finding what is not 0: the array must have an axis")
    return tuple(pt.nonzero(x))


def sort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return `x` sorted along `axis`."""
    found = pt.sort(x, axis, stable=stable)
    return pt.flip(found, axis) if descending else found


def argsort(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort `x` along `axis`. Equal elements keep their order."""
    if not descending:
        return pt.argsort(x, axis, stable=stable)
    backwards = pt.flip(pt.argsort(pt.flip(x, axis), axis, stable=stable), axis)
    return x.shape[axis] - 1 - backwards


def std(x: Any, *, axis: Any = None, correction: Any = 0.0, keepdims: bool = False) -> Any:
    """Return the standard deviation over `axis`; `correction` is subtracted from the number of elements."""
    return pt.std(x, axis, correction, keepdims)


def var(x: Any, *, axis: Any = None, correction: Any = 0.0, keepdims: bool = False) -> Any:
    """Return the variance over `axis`; `correction` is subtracted from the number of elements."""
    return pt.var(x, axis, correction, keepdims)


def searchsorted(x1: Any, x2: Any, *, side: str = "left", sorter: Any = None) -> Any:
    """Return the places of `x2` in the sorted vector `x1`."""
    return pt.searchsorted(x1, x2, side=side, sorter=sorter)


def take(x: Any, indices: Any, *, axis: int | None = None) -> Any:
    """Return the slices of `x` along `axis` at `indices`."""
    return pt.take(x, indices, axis)


def unique_all(x: Any) -> UniqueAll:
    """Return the distinct elements of `x` in ascending order, and what is known of each."""
    values, first, inverse, counts = pt.unique(x, True, True, True, equal_nan=False)
    return UniqueAll(values, first, pt.reshape(inverse, x.shape, ndim=x.ndim), counts)


def unique_counts(x: Any) -> UniqueCounts:
    """Return the distinct elements of `x` in ascending order, and how many there are."""
    return UniqueCounts(*pt.unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    """Return the distinct elements of `x` in ascending order, and where each element is among them."""
    values, inverse = pt.unique(x, return_inverse=True, equal_nan=False)
    return UniqueInverse(values, pt.reshape(inverse, x.shape, ndim=x.ndim))


def unique_values(x: Any) -> Any:
    """Return the distinct elements of `x` in ascending order."""
    return pt.unique(x, equal_nan=False)


FUNCTIONS = {
    **{
        name: getattr(pt, name)
        for name in (
            "all any argmax argmin broadcast_to count_nonzero cumulative_prod cumulative_sum diff "
            "expand_dims flip isin max mean min moveaxis prod repeat roll squeeze stack sum "
            "take_along_axis tile "
            "where"
        ).split()
    },
    "broadcast_arrays": lambda *arrays: tuple(pt.broadcast_arrays(*arrays)),
    "permute_dims": lambda x, axes: pt.transpose(x, axes),
    "reshape": lambda x, shape, *, copy=None: pt.reshape(x, shape),
    "unstack": lambda x, *, axis=0: pt.unstack(x, axis),
    **{
        function.__name__: function
        for function in (
            argsort,
            concat,
            nonzero,
            searchsorted,
            sort,
            std,
            take,
            unique_all,
            unique_counts,
            unique_inverse,
            unique_values,
            var,
        )
    },
}
"""The functions by their names."""
