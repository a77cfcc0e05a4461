"""`NamedOp`: an Op that says what was asked for, and is replaced by its graph before any other rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.inner.from_graph import SymbolicOp


class NamedOp(SymbolicOp):
    """Base class of Ops whose name and properties tell users and rewrites what a graph computes.

    A function has the same program with the Op as with its graph (decision 0125). A subclass lists its own
    properties in `__props__`, after those of this class.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_inline = True

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        return self.vectorized_graph(inputs)

    def __str__(self) -> str:
        own = (self.__props__ or ())[len(NamedOp.__props__ or ()) :]
        listed = ", ".join(f"{name}={getattr(self, name)}" for name in own)
        return f"{type(self).__name__}{{{listed}}}" if listed else type(self).__name__

    __repr__ = __str__
