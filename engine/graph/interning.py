"""`InternTable`: at most one object a key, held weakly. What is interned is found again while anybody holds it.

Reading takes no lock and relies on none: a reader finds a live object or nothing. Adding takes the table's lock and
looks again, so that of several threads that add under one key all get the same object. An entry whose object is being
freed counts as missing: it is replaced, and the callback of the old one leaves the new one alone. When most entries are
gone the table is copied, since a dictionary does not shrink by itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Generic, TypeVar

from cachegraph.forking import momentary_lock

T = TypeVar("T")

SMALLEST_COPY = 4096
"""Tables that never had more entries than this are not copied to shrink them."""


class _WeakEntry(weakref.ref[T]):
    """A weak reference that knows its key."""

    __slots__ = ("key",)
    key: Hashable


class InternTable(Generic[T]):
    """Objects by key. A key must not hold its object alive, and must stay true as long as the object lives."""

    def __init__(self) -> None:
        # Reentrant: freeing an object may forget it at any moment, also while this thread adds another.
        self._lock = momentary_lock()
        self._entries: dict[Hashable, _WeakEntry[T]] = {}
        self._peak = 0
        self._smallest_copy = SMALLEST_COPY
        self._callback = self._forget

    def get(self, key: Hashable) -> T | None:
        """The object under `key`, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, new: T) -> T:
        """The object under `key`: one that is there already, or else `new`."""
        with self._lock:
            entry = self._entries.get(key)
            found = None if entry is None else entry()
            if found is not None:
                return found
            entry = _WeakEntry(new, self._callback)
            entry.key = key
            self._entries[key] = entry
            if len(self._entries) > self._peak:
                self._peak = len(self._entries)
            return new

    def _forget(self, entry: weakref.ref[T]) -> None:
        # Also called while the process ends, when this module may have no names any more.
        key = entry.key  # type: ignore[attr-defined]
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]
            if self._peak > self._smallest_copy and len(self._entries) * 8 < self._peak:
                self._entries = dict(self._entries)
                self._peak = len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class InternedValues(Generic[T]):
    """Of several hashable values that are equal, one: the first that is still alive."""

    def __init__(self) -> None:
        self._table: InternTable[T] = InternTable()

    def __call__(self, value: T) -> T:
        # A weak reference hashes and compares as what it refers to, and is itself once that is gone.
        key = weakref.ref(value)
        found = self._table.get(key)
        return self._table.add(key, value) if found is None else found
