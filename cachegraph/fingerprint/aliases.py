"""The aliases among mutable values: one list, dict, set or array reached twice, and arrays that overlap.

Equal values have one encoding, however they share objects. Code can tell: it may copy two of its
arguments together and change one copy, or change an argument for a while.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Alias: TypeAlias = tuple[int, int, int]
"""The positions of two values that share memory, and how many bytes after the first the second begins."""


def is_mutable(cls: type) -> bool:
    """Return True for the classes whose instances `aliases` compares."""
    return cls in (list, dict, set) or _is_array(cls)


def aliases(values: Sequence[object]) -> tuple[Alias, ...]:
    """Return the aliases among mutable `values`, sorted.

    Every value that shares memory is paired with one that comes before it in memory, so that all
    offsets follow. Equal lists of values with equal aliases cannot be told apart by their memory.
    """
    return tuple(sorted((*_repeated(values), *_overlapping(values))))


def _repeated(values: Sequence[object]) -> Iterator[Alias]:
    """Yield each container that occurs again, with its first occurrence."""
    first: dict[int, int] = {}
    for position, value in enumerate(values):
        if not _is_array(type(value)):
            earlier = first.setdefault(id(value), position)
            if earlier != position:
                yield earlier, position, 0


def _overlapping(values: Sequence[object]) -> Iterator[Alias]:
    """Yield each array that begins before the arrays below it end, with the lowest of these."""
    bounds = sorted(
        (*_bounds(value), position) for position, value in enumerate(values) if _has_memory(value)
    )
    lowest, begin, end = -1, 0, 0
    for low, high, position in bounds:
        if low < end:
            yield lowest, position, low - begin
        else:
            lowest, begin = position, low
        end = max(end, high)


def _bounds(array: Any) -> tuple[int, int]:
    """Return the addresses of an array's first byte, and of the one after its last."""
    begin = array.__array_interface__["data"][0]
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    low = begin + sum(step for step in reach if step < 0)
    return low, begin + sum(step for step in reach if step > 0) + array.itemsize


def _has_memory(value: Any) -> bool:
    return _is_array(type(value)) and bool(value.nbytes)


def _is_array(cls: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and cls is numpy.ndarray
