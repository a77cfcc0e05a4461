"""Data that repeat other data of their graph: the same numbers, perhaps with more axes of length 1.

PyTensor merges equal constants, and computes their views while it compiles: PyMC folds `observed[:, None]` in
a gradient, and not in the density beside it. Data are inputs, and no rewrite knows that two of them are
equal. So what repeats other data becomes a view of these, before anything is rewritten. The key says which
data repeat which, by position, and has none of their numbers (docs/decisions/0200).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cachegraph.fingerprint.primitives import digest
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.describe.tags import variable_tags

_ITEMSIZES = frozenset((1, 2, 4, 8))
Order = tuple[int | str, ...]


class RepeatedData(NamedTuple):
    """A constant with the numbers of another: `dimshuffle(*order)` of the data numbered `first` gives it."""

    constant: Any
    first: int
    order: Order


class Data(NamedTuple):
    """The data of a graph: those that become inputs, and those that repeat one of them.

    `pattern` has a row (position, number of the input, order) for each repeat, among all data of the graph.
    """

    inputs: tuple[Any, ...]
    repeats: tuple[RepeatedData, ...]
    pattern: tuple[tuple[int, int, Order], ...]


def without_repeats(data: Sequence[Any]) -> Data:
    """Return `data`, constants of plain arrays, with those apart that repeat one of as few axes."""
    found = dict(_repeated(data))
    numbers: dict[int, int] = {}
    for position in range(len(data)):
        if position not in found:
            numbers[position] = len(numbers)
    pattern = tuple((position, numbers[first], order) for position, (first, order) in sorted(found.items()))
    repeats = tuple(RepeatedData(data[position], first, order) for position, first, order in pattern)
    return Data(tuple(data[position] for position in numbers), repeats, pattern)


def _repeated(data: Sequence[Any]) -> Iterator[tuple[int, tuple[int, Order]]]:
    """Yield the position of each repeat, the position of what it repeats, and the order of the axes."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for position in sorted(range(len(data)), key=lambda position: data[position].data.ndim):
        constant = data[position]
        if not _is_compared(constant):
            continue
        bits = _bits(constant.data)
        # The digest finds candidates, of which there may be thousands; equal arrays alone are a repeat.
        firsts = alike.setdefault((constant.data.dtype, digest(bits.data)), [])
        for first in firsts:
            order = _order(data[first], constant)
            if order is not None and np.array_equal(_bits(data[first].data), bits):
                yield position, (first, order)
                break
        else:
            firsts.append(position)


def _is_compared(constant: Any) -> bool:
    """Return True if another constant can stand for this one: it has no tags that a rewrite reads."""
    array = constant.data
    return array.flags.c_contiguous and array.itemsize in _ITEMSIZES and variable_tags(constant) is None


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the numbers of an array as they are in memory: zeros have signs, and NaNs are equal."""
    return array.reshape(-1).view(f"u{array.itemsize}")


def _order(first: Any, constant: Any) -> Order | None:
    """Return the order by which `dimshuffle` gives the type of `constant`; None if more than axes is new."""
    extents = list(first.data.shape)
    order: list[int | str] = []
    for extent in constant.data.shape:
        position = len(order) - order.count("x")
        if position < len(extents) and extents[position] == extent:
            order.append(position)
        elif extent == 1:
            order.append("x")
        else:
            return None
    if len(order) - order.count("x") != len(extents):
        return None
    static = [1 if axis == "x" else first.type.shape[axis] for axis in order]
    return tuple(order) if first.type.clone(shape=tuple(static)) == constant.type else None
