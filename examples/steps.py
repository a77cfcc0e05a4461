"""What a process of an example reports: the seconds that its steps took, and how its functions came about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

HEAVY = ("numba", "scipy.linalg", "sqlalchemy")
"""What a warm start has no use for."""

seconds: dict[str, float] = {}
"""Name of a step -> what it took, in order."""


@contextmanager
def step(name: str) -> Iterator[None]:
    """Write down the seconds that the block took."""
    start = perf_counter()
    yield
    seconds[name] = perf_counter() - start


def imported() -> list[str]:
    """Return which of the heavy modules have been imported by now."""
    return [name for name in HEAVY if name in sys.modules]


def account(function: Any) -> dict[str, Any]:
    """Return how a compiled function came about, as plain values."""
    info = function.cache_info
    return {
        "outcome": info.outcome,
        "reason": info.reason,
        "key": info.key,
        "found": info.found,
        "rewrites": info.rewrites,
        "compilations": info.compilations,
        "seconds_saved": info.seconds_saved,
        "steps": info.seconds,
    }
