"""`InternTable`: at most one live object per key, held weakly.

Reading takes no lock and needs none: a reader finds a live object or nothing. Adding takes the table's lock
and looks again, so that threads that add under one key all get the same object. An entry with an object
that is being freed counts as missing: it is replaced, and the old entry's callback leaves the new one
alone. When most entries are gone the table is copied, since a dictionary does not shrink by itself.
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
    """A weak reference with the key of its object."""

    __slots__ = ("key",)
    key: Hashable


class InternTable(Generic[T]):
    """Objects by key, held weakly. A key must not hold its object alive, and never change."""

    def __init__(self) -> None:
        # Reentrant: an object may be freed, and its entry removed, while this thread adds another.
        self._lock = momentary_lock()
        self._entries: dict[Hashable, _WeakEntry[T]] = {}
        self._peak = 0
        self._smallest_copy = SMALLEST_COPY
        self._callback = self._forget

    def get(self, key: Hashable) -> T | None:
        """Return the object under `key`, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, new: T) -> T:
        """Return the object under `key` if there is one; else add `new` and return it."""
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
        # Also called at interpreter exit, when the globals of this module may be gone.
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
    """A function that returns one representative for equal hashable values: the first that is still alive."""

    def __init__(self) -> None:
        self._table: InternTable[T] = InternTable()

    def __call__(self, value: T) -> T:
        # A weak reference hashes and compares like its object while that lives, and by identity after.
        key = weakref.ref(value)
        try:
            found = self._table.get(key)
        except TypeError:  # a user's type without a hash is equal to itself only
            return value
        return self._table.add(key, value) if found is None else found
