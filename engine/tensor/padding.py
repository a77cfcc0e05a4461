"""Tensors with further elements around them: numpy's `pad`."""

from __future__ import annotations

from typing import Any

from engine.graph.variables import Variable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import alloc, arange
from engine.tensor.elemwise import cast
from engine.tensor.joining import join
from engine.tensor.math import clip, eq, lt, maximum, minimum, mod, mul, sub, switch
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import mean
from engine.tensor.reduction import min as smallest
from engine.tensor.shape import lengths_known, shape_i

_STATISTICS: dict[str, Any] = {"maximum": largest, "minimum": smallest, "mean": mean}


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: str | None = None,
) -> Any:
    """Return `x` with elements before and after along each axis.

    `pad_width` is a number, a pair (before, after) for all axes, or a pair for each axis. The elements are
    `constant_values`, given like the widths; or, by `mode`, those at the edge ("edge"), of the other side
    ("wrap"), mirrored at the edge with it ("symmetric") or without it ("reflect"), or the "maximum",
    "minimum" or "mean" along the axis. Raises NotImplementedError for other modes, and ValueError for a
    negative width that is known.
    """
    if mode not in ("constant", *_POSITIONS, *_STATISTICS) or reflect_type not in (None, "even"):
        raise NotImplementedError(f"Padding: mode {mode!r} with reflect_type {reflect_type!r} is not there")
    x = as_tensor_variable(x)
    values = _pairs(constant_values, x.type.ndim)
    for axis, (before, after) in enumerate(_pairs(pad_width, x.type.ndim)):
        if any(isinstance(width, int) and width < 0 for width in (before, after)):
            raise ValueError(f"Padding axis {axis} by {before} and {after}: a width is negative")
        if mode == "constant":
            x = _between(x, axis, before, after, *values[axis])
        elif mode in _STATISTICS:
            found = cast(_STATISTICS[mode](x, axis, keepdims=True), x.type.dtype)
            x = _between(x, axis, before, after, found, found)
        else:
            length = lengths_known(x)[axis]
            wanted = sub(arange(before + length + after), before)
            x = x[(*(slice(None),) * axis, _POSITIONS[mode](wanted, length))]
    return x


def _pairs(given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Return a pair for each axis. A tensor's lengths must be known."""
    if isinstance(given, Variable):
        given = _as_list(given)
    if not hasattr(given, "__len__"):
        return [(given, given)] * ndim
    items = list(given)
    if items and hasattr(items[0], "__len__"):
        pairs = [(pair[0], pair[-1]) for pair in items]
        if len(pairs) not in (1, ndim):
            raise ValueError(f"Padding {ndim} axes: {len(pairs)} pairs were given")
        return pairs * ndim if len(pairs) == 1 else pairs
    if len(items) > 2:
        raise ValueError(f"Padding {ndim} axes by {given!r}: give a number, a pair, or a pair for each axis")
    return [(items[0], items[-1])] * ndim


def _as_list(given: Any) -> Any:
    return given if given.type.ndim == 0 else [_as_list(part) for part in given]


def _between(x: Any, axis: int, before: Any, after: Any, first: Any, last: Any) -> Any:
    """Return `x` between two blocks that are filled with a value each."""
    lengths = [shape_i(x, each) for each in range(x.type.ndim)]
    blocks = [
        alloc(cast(value, x.type.dtype), *lengths[:axis], width, *lengths[axis + 1 :])
        for width, value in ((before, first), (after, last))
    ]
    return join(axis, blocks[0], x, blocks[1])


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
