"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

import engine.tensor as pt
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.reduction import mean, normalize_axis
from engine.tensor.shape import size_over


def var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The squared distance from the mean over `axis`, added up and divided by the number of elements less `ddof`."""
    x = as_tensor_variable(x)
    axes = normalize_axis(axis, x.type.ndim)
    squares = pt.sqr(pt.sub(x, mean(x, axes, keepdims=True)))
    if ddof == 0:
        return mean(squares, axes, keepdims=keepdims)
    count = cast(pt.sub(size_over(x, axes), ddof), squares.type.dtype)
    return pt.true_div(pt.sum(squares, axes, keepdims=keepdims), count)


def std(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The square root of `var`."""
    return pt.sqrt(var(x, axis, ddof, keepdims))
