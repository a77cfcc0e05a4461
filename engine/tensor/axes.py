"""Axes as calls give them: one or several, numbers, arrays or constants, counted from the end too; made plain numbers.

What is `doing` begins what is said of an axis that there is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from engine.graph.variables import Constant


def axes_of(doing: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis`, one or several of `ndim`, as numbers from 0 in the order given; None is all.

    Refuses (AxisError, a ValueError) an axis that there is not, (ValueError) one named twice, (TypeError) what is no
    whole number.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = tuple([_within(doing, number, ndim) for number in numbers_of(doing, axis)])
    if len(set(axes)) != len(axes):
        raise ValueError(f"{doing}: axis {axis!r} names one twice; name each once")
    return axes


def normalize_axis(doing: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that `axes_of` gives, sorted."""
    return tuple(sorted(axes_of(doing, axis, ndim)))


def axis_of(doing: str, axis: Any, ndim: int) -> int:
    """`axis`, one of `ndim`, as a number from 0; refuses what `axes_of` does, and (TypeError) several."""
    number = _whole(axis)
    if number is None:
        raise TypeError(f"{doing}: found {axis!r}; give one whole number, an axis")
    return _within(doing, number, ndim)


def numbers_of(doing: str, axis: Any) -> list[int]:
    """The whole numbers that `axis`, one or several, is; refuses (TypeError) everything else."""
    number = _whole(axis)
    if number is not None:
        return [number]
    values = axis.data if isinstance(axis, Constant) else axis
    if isinstance(values, list | tuple | range) or (isinstance(values, np.ndarray) and values.ndim == 1):
        numbers = [_whole(value) for value in values]
        if None not in numbers:
            return [n for n in numbers if n is not None]
    raise TypeError(f"{doing}: found {axis!r}; give a whole number, or a tuple of them")


def axes_given(doing: str, axis: Any) -> tuple[int, ...] | None:
    """The numbers of `axis`, one or several, sorted, from the end or not; None, which is all, as it is.

    Refuses (ValueError) one that is named twice, and (TypeError) what is no whole number.
    """
    if axis is None:
        return None
    numbers = tuple(sorted(numbers_of(doing, axis)))
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{doing}: axis {axis!r} names one twice; name each once")
    return numbers


def with_axis(op: Any, axis: Any) -> Any:
    """`op` with another `axis`, its other properties the same."""
    return type(op)(**{**op.props_dict(), "axis": axis})


def _whole(value: Any) -> int | None:
    """The whole number that `value` is: a number, an array of no dimensions or a constant; None if it is none. No bool is."""
    if isinstance(value, Constant):
        value = value.data
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if is_whole else None


def _within(doing: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise AxisError(f"{doing}: axis {axis} is out of bounds for a tensor of {ndim} dimensions")
    return axis % ndim
