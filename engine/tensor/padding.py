"""Tensors with further elements around them, by the modes of numpy's `pad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.scalar.promotion import FLOATS
from engine.tensor.creation import alloc, arange
from engine.tensor.elemwise import cast
from engine.tensor.grids import linspace
from engine.tensor.joining import join
from engine.tensor.math import (
    clip,
    eq,
    floor,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    round_half_to_even,
    sub,
    switch,
)
from engine.tensor.rearranging import flip, slice_at_axis
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import mean
from engine.tensor.reduction import min as smallest
from engine.tensor.shape import lengths_along, shape_i

_STATISTICS: dict[str, Any] = {"maximum": largest, "minimum": smallest, "mean": mean}
Pairs = Sequence[tuple[Any, Any]]
"""A pair for each axis: for the elements before it and after it."""

OPTIONS = {
    "constant": {"constant_values"},
    "edge": set(),
    "linear_ramp": {"end_values"},
    **{mode: {"stat_length"} for mode in _STATISTICS},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}
"""The options of each mode."""


def padded(x: Any, mode: str, widths: Pairs, values: Pairs) -> Any:
    """Return `x` with elements before and after along each axis.

    `values` are constants, the ends of ramps, or lengths of the parts that statistics are of, or None.
    """
    for axis, (before, after) in enumerate(widths):
        if mode == "constant":
            x = _between(x, axis, before, after, *values[axis])
        elif mode == "linear_ramp":
            x = _between_ramps(x, axis, (before, after), values[axis])
        elif mode in _STATISTICS:
            x = _between(x, axis, before, after, *_statistics(x, axis, mode, *values[axis]))
        else:
            length = lengths_along(x)[axis]
            wanted = sub(arange(before + length + after), before)
            x = x[(*(slice(None),) * axis, _POSITIONS[mode](wanted, length))]
    return x


def _between(x: Any, axis: int, before: Any, after: Any, first: Any, last: Any) -> Any:
    """Return `x` between two blocks that are filled with a value each."""
    lengths = lengths_along(x)
    blocks = [
        alloc(cast(value, x.type.dtype), *lengths[:axis], width, *lengths[axis + 1 :])
        for width, value in ((before, first), (after, last))
    ]
    return join(axis, blocks[0], x, blocks[1])


def _between_ramps(x: Any, axis: int, widths: tuple[Any, Any], ends: tuple[Any, Any]) -> Any:
    """Return `x` between numbers that go evenly from its edges to `ends`."""

    def ramp(end: Any, width: Any, edge: int) -> Any:
        at_edge = x[(*(slice(None),) * axis, edge)]
        found = linspace(cast(end, "float64"), at_edge, width, endpoint=False, axis=axis)
        return cast(found if x.type.dtype in FLOATS else floor(found), x.type.dtype)

    before, after = (ramp(*each) for each in zip(ends, widths, (0, -1), strict=True))
    return join(axis, before, x, flip(after, axis))


def _statistics(x: Any, axis: int, mode: str, first: Any, last: Any) -> list[Any]:
    """Return a statistic of the first elements along `axis` and of the last ones, or twice that of all."""

    def statistic(part: Any) -> Any:
        found = _STATISTICS[mode](x if part is None else x[slice_at_axis(part, axis)], axis, keepdims=True)
        return found if x.type.dtype in FLOATS or mode != "mean" else round_half_to_even(found)

    if first is None:
        return [statistic(None)] * 2
    length = shape_i(x, axis)
    return [
        statistic(slice(None, minimum(first, length))),
        statistic(slice(sub(length, minimum(last, length)), None)),
    ]


def _mirrored(wanted: Any, length: Any) -> Any:
    along = mod(wanted, mul(length, 2))
    return switch(lt(along, length), along, sub(sub(mul(length, 2), 1), along))


def _reflected(wanted: Any, length: Any) -> Any:
    period = maximum(sub(mul(length, 2), 2), 1)
    along = mod(wanted, period)
    return switch(eq(length, 1), 0, minimum(along, sub(period, along)))


_POSITIONS: dict[str, Any] = {
    "edge": lambda wanted, length: clip(wanted, 0, sub(length, 1)),
    "wrap": mod,
    "symmetric": _mirrored,
    "reflect": _reflected,
}
"""From wanted positions, negative before the first element, to those of elements, by mode."""
