"""Axes as users give them, converted to plain numbers.

An axis is an int, a numpy integer, a 0-d array or a constant, and may be negative. The argument
`doing` is the beginning of the error message: what the caller was doing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from engine.graph.variables import Constant


def axes_of(doing: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return `axis`, one or several of `ndim`, as non-negative ints in the order given; None means all axes.

    Raises AxisError (a ValueError) for an axis out of bounds, ValueError for a repeated one, and
    TypeError for anything but integers.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = tuple([_within(doing, number, ndim) for number in numbers_of(doing, axis)])
    if len(set(axes)) != len(axes):
        raise ValueError(f"{doing}: axis {axis!r} has a repeated axis; name each once")
    return axes


def normalize_axis(doing: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the result of `axes_of`, sorted."""
    return tuple(sorted(axes_of(doing, axis, ndim)))


def axis_of(doing: str, axis: Any, ndim: int) -> int:
    """Return `axis`, one of `ndim`, as a non-negative int.

    Raises as `axes_of` does, and TypeError for several axes.
    """
    number = _whole(axis)
    if number is None:
        raise TypeError(f"{doing}: found {axis!r}; give one constant integer, an axis")
    return _within(doing, number, ndim)


def numbers_of(doing: str, axis: Any) -> list[int]:
    """Return `axis`, one integer or several, as a list of ints. Raises TypeError for anything else."""
    number = _whole(axis)
    if number is not None:
        return [number]
    values = axis.data if isinstance(axis, Constant) else axis
    if isinstance(values, list | tuple | range) or (isinstance(values, np.ndarray) and values.ndim == 1):
        numbers = [_whole(value) for value in values]
        if None not in numbers:
            return [n for n in numbers if n is not None]
    raise TypeError(f"{doing}: found {axis!r}; give a whole number, no symbolic one, or a tuple of them")


def axes_given(doing: str, axis: Any) -> tuple[int, ...] | None:
    """Return `axis`, one integer or several, as a sorted tuple; negative axes stay negative, and None
    stays None.

    Raises ValueError for a repeated axis and TypeError for anything but integers.
    """
    if axis is None:
        return None
    numbers = tuple(sorted(numbers_of(doing, axis)))
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{doing}: axis {axis!r} has a repeated axis; name each once")
    return numbers


def with_axis(op: Any, axis: Any) -> Any:
    """Return a copy of `op` with another `axis`."""
    return type(op)(**{**op.props_dict(), "axis": axis})


def _whole(value: Any) -> int | None:
    """Return `value` as an int if it is an integer, a 0-d integer array or such a constant; otherwise None.

    Bools give None.
    """
    if isinstance(value, Constant):
        value = value.data
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if is_whole else None


def _within(doing: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise AxisError(f"{doing}: axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim
