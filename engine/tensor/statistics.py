"""Medians, covariances, differences, counts, and sums and products up to each element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.scalar.promotion import INEXACT, INTEGERS
from engine.tensor.axes import axis_of, normalize_axis
from engine.tensor.checks import Assert
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import alloc, ones_like, zeros
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.elemwise import conjugate as conj
from engine.tensor.joining import concatenate
from engine.tensor.math import add, eq, floor_div, ge, maximum, mod, neq, sub, switch, true_div
from engine.tensor.ordering import argmax, sort
from engine.tensor.products import matrix_product
from engine.tensor.quantifiers import all as all_over
from engine.tensor.rearranging import broadcast_to
from engine.tensor.reduction import cumprod, cumsum, mean
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import prod as product
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import lengths_along, reshape, shape_i, size_over, squeeze
from engine.tensor.slicing import as_position

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> TensorVariable:
    """Return the differences of elements that are next to each other along `axis`, taken `n` times.

    Before that, `prepend` and `append` are put before and after the elements along `axis`: tensors, or
    numbers for one element each.
    """
    x = as_tensor_variable(x)
    if n < 0:
        raise ValueError(f"Taking differences {n} times: it must be 0 or more")
    number = axis_of(f"Taking differences of {x}", axis, x.type.ndim)
    x = _with_edges(x, number, prepend, append)
    subtract = neq if x.type.dtype == "bool" else sub
    before = (slice(None),) * number
    for _ in range(n):
        x = subtract(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x


def _with_edges(x: Any, axis: int, before: Any, after: Any) -> Any:
    if before is None and after is None:
        return x
    edges = [None if edge is None else as_tensor_variable(edge) for edge in (before, after)]
    shape = lengths_along(x)
    shape[axis] = 1
    first, last = [
        [edge if edge.type.ndim else broadcast_to(edge, shape)] if edge is not None else [] for edge in edges
    ]
    return concatenate([*first, x, *last], axis)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the number of elements over `axis` that are not 0, an int64."""
    return sum_over(neq(x, 0), axis, dtype="int64", keepdims=keepdims)


def cumulative_sum(
    x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> TensorVariable:
    """Return the sums of the elements up to each one along `axis`, computed in `dtype`: by default that of
    `sum`.

    With `include_initial` a 0 comes first. Raises ValueError for several axes and none given.
    """
    return _cumulative(cumsum, sum_over, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> TensorVariable:
    """Return the products of the elements up to each one along `axis`, computed in `dtype`: by default that
    of `prod`.

    With `include_initial` a 1 comes first. Raises ValueError for several axes and none given.
    """
    return _cumulative(cumprod, product, x, axis, dtype, include_initial)


def _cumulative(
    running: Any, reduced: Any, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Any:
    x = as_tensor_variable(x)
    doing = f"Accumulating {x}"
    if axis is None and x.type.ndim != 1:
        raise ValueError(f"{doing} of {x.type.ndim} dimensions: say along which axis")
    place = axis_of(doing, 0 if axis is None else axis, x.type.ndim)
    found = running(cast(x, dtype or reduced(x, place).type.dtype), place)
    if not include_initial:
        return found
    shape = lengths_along(x)
    shape[place] = 1
    return concatenate([alloc(cast(0 if running is cumsum else 1, found.type.dtype), *shape), found], place)


def max_and_argmax(a: Any, axis: Any = None, keepdims: bool = False) -> list[Any]:
    """Return the largest element over `axis` and the position of the first such element."""
    return [largest(a, axis, keepdims), argmax(a, axis, keepdims)]


def median(x: Any, axis: Any = None) -> TensorVariable:
    """Return the median over `axis`, one or several, or all (None); NaN where an element is NaN."""
    x = as_tensor_variable(x)
    axes = normalize_axis("Taking a median", axis, x.type.ndim)
    rest = [a for a in range(x.type.ndim) if a not in axes]
    moved = dimshuffle(x, [*rest, *axes])
    ordered = sort(reshape(moved, [*[shape_i(x, a) for a in rest], size_over(x, axes)]))
    count = size_over(x, axes)
    middle = floor_div(count, 2)
    upper, lower = ordered[..., middle], ordered[..., maximum(sub(middle, 1), 0)]
    between = true_div(add(upper, lower), 2.0)
    found = switch(eq(mod(count, 2), 0), between, cast(upper, between.type.dtype))
    # NaNs are sorted to the end.
    last = cast(ordered[..., sub(count, 1)], between.type.dtype)
    return switch(neq(last, last), last, found)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> TensorVariable:
    """Return the covariances of the rows of `m`, or of its columns if not `rowvar`; `y` has further ones.

    Sums of products are divided by the number of observations minus `ddof`: by default 0 with `bias`, 1
    without. Raises NotImplementedError for weights.
    """
    if fweights is not None or aweights is not None:
        raise NotImplementedError("Taking covariances: fweights and aweights are not there")
    parts = [_as_rows(part, rowvar) for part in (m, y) if part is not None]
    rows = concatenate(parts, 0) if len(parts) > 1 else parts[0]
    centred = sub(rows, mean(rows, 1, keepdims=True))
    turned = conj(dimshuffle(centred, (1, 0)))
    lost = (0 if bias else 1) if ddof is None else ddof
    count = cast(sub(shape_i(rows, 1), lost), "float64")
    return squeeze(true_div(matrix_product(centred, turned), count))


def _as_rows(part: Any, rowvar: bool) -> Any:
    part = as_tensor_variable(part)
    part = part if part.type.dtype in INEXACT else cast(part, "float64")
    if part.type.ndim > 2:
        raise ValueError(f"Taking covariances of {part} of type {part.type}: it has more than 2 dimensions")
    if part.type.ndim < 2:
        return part.dimshuffle(*["x"] * (2 - part.type.ndim), *range(part.type.ndim))
    return part if rowvar or part.type.shape[0] == 1 else dimshuffle(part, (1, 0))


def bincount(
    x: Any, weights: Any = None, minlength: Any = None, assert_nonneg: bool = False
) -> TensorVariable:
    """Return how often each of 0, 1, ... up to the largest element is in the vector `x`, or the sums of their
    `weights`.

    The result has at least `minlength` elements. Negative elements raise IndexError; AssertionError with
    `assert_nonneg`.
    """
    x = as_tensor_variable(x)
    if x.type.ndim != 1 or x.type.dtype not in INTEGERS:
        raise TypeError(f"Counting {x} of type {x.type}: it must be a vector of integers")
    counted = as_position(x)
    if assert_nonneg:
        counted = Assert("Counting elements: one is negative")(counted, all_over(ge(counted, 0)))
    # With an element of -1 in front there is a largest element of an empty vector, too.
    length = add(largest(concatenate([as_tensor_variable([-1]), counted])), 1)
    if minlength is not None:
        length = maximum(length, minlength)
    places = switch(ge(counted, 0), counted, length)
    added = ones_like(counted) if weights is None else as_tensor_variable(weights)
    return zeros((length,), added.type.dtype)[places].inc(added)
