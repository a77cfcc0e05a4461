"""Interpolation between given points of a function of one variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.tensor.conversion import as_tensor_variable
from engine.tensor.joining import concatenate
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, clip, gt, le, lt, mod, mul, sub, switch, true_div
from engine.tensor.ordering import argsort
from engine.tensor.searching import searchsorted
from engine.tensor.shape import shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

valid_methods = ("linear", "nearest", "first", "last", "mean")


def interpolate1d(
    x: Any,
    y: Any,
    method: str = "linear",
    left_pad: Any = None,
    right_pad: Any = None,
    extrapolate: bool = True,
) -> Callable[[Any], Any]:
    """Return a function that interpolates between points with the coordinates `x` and `y`, two vectors.

    Between two points it is on the line between them ("linear"), or that of the nearest one ("nearest"), the
    "first", the "last", or the "mean" of both, by `method`. Beyond all points it goes on so; or, if not
    `extrapolate`, it is `left_pad` (default: the first y) and `right_pad` (the last).
    """
    if method not in valid_methods:
        raise NotImplementedError(
            f"Interpolating: Unknown interpolation method: {method}; there are {', '.join(valid_methods)}"
        )
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if x.type.ndim != 1 or y.type.ndim != 1:
        raise ValueError(f"Interpolating between {x.type} and {y.type}: both must be vectors")
    order = argsort(x)
    x, y = x[order], y[order]
    left = y[0] if left_pad is None else left_pad
    right = y[-1] if right_pad is None else right_pad

    def interpolated(x_hat: Any) -> Any:
        x_hat = as_tensor_variable(x_hat)
        found = _between(x, y, x_hat, method)
        if extrapolate:
            return found
        return switch(lt(x_hat, x[0]), left, switch(gt(x_hat, x[-1]), right, found))

    return interpolated


def _between(x: Any, y: Any, x_hat: Any, method: str) -> Any:
    at = searchsorted(x, x_hat)
    last = sub(shape_i(x, 0), 1)
    if method == "first":
        return y[clip(sub(at, 1), 0, last)]
    if method == "last":
        return y[clip(at, 0, last)]
    after = clip(at, 1, last)
    before = sub(after, 1)
    if method == "mean":
        return true_div(add(y[before], y[after]), 2)
    distance = sub(x_hat, x[before])
    if method == "nearest":
        return switch(le(distance, sub(x[after], x_hat)), y[before], y[after])
    share = true_div(distance, sub(x[after], x[before]))
    return add(y[before], mul(share, sub(y[after], y[before])))


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> TensorVariable:
    """Return numpy's `interp`: the values at `x` of the lines between points (`xp`, `fp`).

    Beyond all points it is `left` (default: the first `fp`) and `right` (the last). With a `period` the
    points repeat, and there is no beyond.
    """
    if period is None:
        return interpolate1d(xp, fp, "linear", left, right, extrapolate=False)(x)
    xp, fp, period = as_tensor_variable(xp), as_tensor_variable(fp), absolute(period)
    order = argsort(mod(xp, period))
    xp, fp = mod(xp, period)[order], fp[order]
    xp = concatenate([sub(xp[-1:], period), xp, add(xp[:1], period)])
    fp = concatenate([fp[-1:], fp, fp[:1]])
    return interpolate1d(xp, fp)(mod(x, period))
