"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine.tensor as pt
from engine.tensor.axes import normalize_axis
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.reduction import mean
from engine.tensor.shape import size_over


def var(x: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """The squared distance from the mean over `axis`, added up and divided by the number of elements less `ddof`."""
    x = as_tensor_variable(x)
    axes = normalize_axis("Reducing a tensor", axis, x.type.ndim)
    squares = pt.sqr(pt.sub(x, mean(x, axes, keepdims=True)))
    less = ddof.item() if isinstance(ddof, np.generic | np.ndarray) and np.ndim(ddof) == 0 else ddof
    if not isinstance(less, int | float) and getattr(getattr(less, "type", None), "ndim", None) != 0:
        raise TypeError(f"Taking a variance: ddof is {ddof!r}; it must be a number")
    if isinstance(less, int | float) and less == 0:
        return mean(squares, axes, keepdims=keepdims)
    count = cast(pt.sub(size_over(x, axes), less), squares.type.dtype)
    return pt.true_div(pt.sum(squares, axes, keepdims=keepdims), count)


def std(x: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """The square root of `var`."""
    return pt.sqrt(var(x, axis, ddof, keepdims))
