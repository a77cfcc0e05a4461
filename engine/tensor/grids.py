"""Evenly spaced numbers, grids of them, and the positions in triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.scalar.promotion import COMPLEX, INEXACT, INTEGERS
from engine.tensor.axes import axis_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import arange
from engine.tensor.diagonals import tri
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.masks import nonzero
from engine.tensor.math import abs as absolute
from engine.tensor.math import (
    add,
    and_,
    eq,
    ge,
    gt,
    invert,
    le,
    log,
    maximum,
    mul,
    pow,
    sign,
    sub,
    switch,
    true_div,
)
from engine.tensor.rearranging import broadcast_arrays, moveaxis
from engine.tensor.shape import expand_dims, flatten, shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`, which is the last of them if `endpoint`.

    The bounds may be tensors; the numbers then lie along the new axis `axis`. With `retstep` the result is
    a pair with the distance of the numbers.
    """
    first, last = (_as_float(bound) for bound in (start, stop))
    parts = sub(num, 1) if endpoint else as_tensor_variable(num)
    width = sub(last, first)
    step = true_div(width, cast(maximum(parts, 1), width.type.dtype))
    at = arange(num)
    positions = cast(at, width.type.dtype)
    column = dimshuffle(positions, (0, *["x"] * width.type.ndim))
    found = add(mul(column, expand_dims(step, 0)), expand_dims(first, 0))
    if endpoint:
        is_last = dimshuffle(and_(ge(at, parts), gt(num, 1)), (0, *["x"] * width.type.ndim))
        found = switch(is_last, expand_dims(last, 0), found)
    found = moveaxis(found, 0, axis_of("Spacing numbers", axis, found.type.ndim))
    found = cast(found, dtype or ("complex128" if found.type.dtype in COMPLEX else "float64"))
    return (found, step) if retstep else found


def _as_float(bound: Any) -> Any:
    bound = as_tensor_variable(bound)
    return bound if bound.type.dtype in INEXACT else cast(bound, "float64")


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    base: Any = 10.0,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> TensorVariable:
    """Return `base` to the power of `num` evenly spaced numbers from `start` to `stop`."""
    return cast(pow(base, linspace(start, stop, num, endpoint, axis=axis)), dtype or "float64")


def geomspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    base: Any = 10.0,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> TensorVariable:
    """Return `num` numbers from `start` to `stop`, each the same multiple of the one before.

    The bounds have the same sign; logarithms are taken to the `base`.
    """
    first, last = broadcast_arrays(*(_as_float(bound) for bound in (start, stop)))
    direction = sign(first)
    low, high = (true_div(log(absolute(bound)), log(base)) for bound in (first, last))
    powers = mul(pow(base, linspace(low, high, num, endpoint)), expand_dims(direction, 0))
    at = dimshuffle(arange(num), (0, *["x"] * first.type.ndim))
    found = switch(eq(at, 0), expand_dims(first, 0), powers)
    if endpoint:
        is_last = and_(eq(at, sub(num, 1)), gt(at, 0))
        found = switch(is_last, expand_dims(last, 0), found)
    found = moveaxis(found, 0, axis_of("Spacing numbers", axis, found.type.ndim))
    return cast(found, dtype or "float64")


class _Grid:
    """`grid[a:b, c:d:e]` is a tensor of positions for each slice, `grid[a:b]` one tensor.

    Those of a `dense` grid repeat along all axes.
    """

    def __init__(self, dense: bool) -> None:
        self.dense = dense

    def __getitem__(self, index: Any) -> Any:
        slices = index if isinstance(index, tuple) else (index,)
        rows = [self._row(each) for each in slices]
        if not isinstance(index, tuple):
            return rows[0]
        open_rows = [
            dimshuffle(row, [0 if axis == place else "x" for axis in range(len(rows))])
            for place, row in enumerate(rows)
        ]
        return broadcast_arrays(*open_rows) if self.dense else tuple(open_rows)

    @staticmethod
    def _row(part: Any) -> Any:
        if not isinstance(part, slice) or part.stop is None or isinstance(part.step, complex):
            raise NotImplementedError(
                f"Making a grid: found {part!r}; give slices with an end and a real step"
            )
        return arange(
            0 if part.start is None else part.start, part.stop, 1 if part.step is None else part.step
        )


mgrid, ogrid = _Grid(dense=True), _Grid(dense=False)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, ...]:
    """Return the rows and columns of the elements on and below the diagonal `k` of an `n` by `m` matrix."""
    return nonzero(tri(n, m, k, "bool"))


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Any, ...]:
    """Return the rows and columns of the elements on and above the diagonal `k` of an `n` by `m` matrix."""
    return nonzero(invert(tri(n, m, k - 1, "bool")))


def tril_indices_from(a: Any, k: Any = 0) -> tuple[Any, ...]:
    """Return the rows and columns of the elements of a matrix on and below its diagonal `k`."""
    return tril_indices(*_matrix_lengths(a, k))


def triu_indices_from(a: Any, k: Any = 0) -> tuple[Any, ...]:
    """Return the rows and columns of the elements of a matrix on and above its diagonal `k`."""
    return triu_indices(*_matrix_lengths(a, k))


def _matrix_lengths(a: Any, k: Any) -> tuple[Any, Any, Any]:
    a = as_tensor_variable(a)
    if a.type.ndim != 2:
        raise ValueError(f"Taking a triangle of {a} of type {a.type}: it must be two dimensional")
    return shape_i(a, 0), k, shape_i(a, 1)


def bartlett(M: Any) -> TensorVariable:
    """Return the window of `M` points that rises from 0 to 1 and falls to 0 on straight lines."""
    count = as_tensor_variable(M)
    if count.type.ndim != 0 or count.type.dtype not in INTEGERS:
        raise TypeError(f"Making a window of {count} of type {count.type} points: give an integer")
    at = cast(arange(count), "float64")
    length = cast(maximum(sub(count, 1), 1), "float64")
    rising = true_div(mul(2.0, at), length)
    found = switch(le(rising, 1.0), rising, sub(2.0, rising))
    return switch(eq(count, 1), 1.0, found)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Return the coordinates of the points of a grid, given those along each axis: a tensor for each axis.

    The first two axes are exchanged with `indexing` "xy", not with "ij" (else ValueError). With `sparse` the
    tensors have length 1 along all axes but their own. `copy` is numpy's and decides nothing here.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Making a grid: indexing is {indexing!r}; it must be 'xy' or 'ij'")
    vectors = [as_tensor_variable(x) for x in xi]
    vectors = [flatten(x) if x.type.ndim else dimshuffle(x, ("x",)) for x in vectors]
    count = len(vectors)
    order = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    open_grid = [
        dimshuffle(x, [0 if axis == place else "x" for axis in range(count)])
        for x, place in zip(vectors, order, strict=True)
    ]
    return open_grid if sparse else list(broadcast_arrays(*open_grid))
