"""The arrays of a graph in hand, to which stored graphs refer instead of holding their numbers.

    reference := (held arrays, name) | (held arrays, name, offset in bytes, dtype, shape, strides)

An array's name is the strong digest of its content when the graph was described. The second form is a view
of part of its memory. PyTensor's constants are the memory of whoever made them: if that is overwritten
before numba freezes the constant (or, for constants too large to freeze, at any time), PyTensor computes
with the new numbers. A graph that is read must therefore have that memory, not a copy of its former
content.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import strong_digest

_KINDS = "biufc"
"""The kinds of numbers whose views can be made of an address."""


class HeldArrays:
    """Arrays with their names; of those with equal content, references mean the first."""

    def __init__(self, named: Iterable[tuple[bytes, Any]] = ()) -> None:
        self._named = {id(array): (name, array) for name, array in named}
        self._first: dict[bytes, Any] = {}
        self._by_owner: dict[int, list[tuple[bytes, Any]]] = {}
        for name, array in self._named.values():
            self._first.setdefault(name, array)
            self._by_owner.setdefault(id(_owner(array)), []).append((name, array))

    def __reduce__(self) -> Any:
        return HeldArrays, (list(self._named.values()),)

    def have_changed(self) -> bool:
        """Return True if an array no longer has the content that its name is a digest of."""
        return any(name_of_array(array) != name for name, array in self._named.values())

    def reference(self, data: Any) -> tuple[Any, ...] | None:
        """Return how a stored graph refers to `data`; None if its memory belongs to none of these arrays."""
        found = self._named.get(id(data))
        if found is not None:
            return self, found[0]
        if data.size == 0 or data.dtype.kind not in _KINDS:
            return None
        low, high = np.lib.array_utils.byte_bounds(data)
        for name, array in self._by_owner.get(id(_owner(data)), ()):
            start, end = np.lib.array_utils.byte_bounds(array)
            if start <= low and high <= end:
                return self, name, _address(data) - _address(array), data.dtype.str, data.shape, data.strides
        return None

    def array(self, name: bytes, *view: Any) -> Any:
        """Return the array, or the view, that a reference means; raises LookupError or ValueError."""
        whole = self._first[name]
        return _view(whole, *view) if view else whole


def name_of_array(array: Any) -> bytes:
    """Return the strong digest of an array's content and layout; raises Unfingerprintable."""
    return strong_digest(layout(array) + encode(array))


def layout(data: Any) -> bytes:
    """Return an array's memory layout as numba sees it: 'C' | 'F' | 'A' value(strides)."""
    if data.flags.c_contiguous:
        return b"C"
    if data.flags.f_contiguous:
        return b"F"
    return b"A" + encode(data.strides)


class _ArrayMemory:
    """An address in numpy's array interface, and the object that keeps the memory alive."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def _view(whole: Any, offset: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    kind = np.dtype(dtype)
    if kind.kind not in _KINDS or len(shape) != len(strides) or min(shape, default=1) < 1:
        raise ValueError(
            f"reading a constant: found a view {shape} of {dtype}, where views of numbers are read"
        )
    spans = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
    first = _address(whole) + offset
    low, high = first + sum(s for s in spans if s < 0), first + sum(s for s in spans if s > 0) + kind.itemsize
    start, end = np.lib.array_utils.byte_bounds(whole)
    if low < start or high > end:
        raise ValueError("reading a constant: found a view that reaches beyond its array")
    interface = {
        "data": (first, not whole.flags.writeable),
        "shape": shape,
        "strides": strides,
        "typestr": kind.str,
        "version": 3,
    }
    return np.asarray(_ArrayMemory(interface, whole))


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _owner(array: Any) -> Any:
    """Return the array whose memory `array` is a view of, or `array` itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
