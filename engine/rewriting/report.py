"""`RewriteReport`: what rewriting a graph did, exactly counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class RewriteReport:
    """How often each rewrite was applied, by name, and how long each pass took, in seconds."""

    applied: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of rewrites applied."""
        return sum(self.applied.values())

    def count(self, name: str, times: int = 1) -> None:
        """Add `times` applications of the rewrite `name`."""
        if times:
            self.applied[name] = self.applied.get(name, 0) + times

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that the block takes to the pass `name`."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start
