"""A connection of this process: a forked child must not use that of its parent, and makes its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from cachegraph.forking import momentary_lock

T = TypeVar("T")


class PerProcess(Generic[T]):
    """The result of `make`, called at the first use in each process."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = momentary_lock()
        self._made: tuple[int, T] | None = None

    def get(self) -> T:
        """Return the value of this process. Raises what `make` raises."""
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                self._made = os.getpid(), self._make()
            return self._made[1]

    def forget(self) -> T | None:
        """Return the value of this process, if it was made, and make another at the next use."""
        with self._lock:
            made, self._made = self._made, None
            return made[1] if made is not None and made[0] == os.getpid() else None
