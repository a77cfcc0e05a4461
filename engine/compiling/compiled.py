"""What compiling a function gives: something that runs it, and how that came about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cachegraph.caching.outcome import CacheInfo as CacheInfo
from engine.graph.fgraph import FunctionGraph
from engine.runtime.execution import Convert


class Runner(Protocol):
    """What runs a function: `run` gives its results, of which `outputs` are returned and `updates` replace inputs."""

    outputs: tuple[int, ...]
    updates: tuple[tuple[int, int], ...]

    def run(self, items: tuple[Any, ...]) -> list[Any]:
        """The results for one value an input."""


class Carried(Protocol):
    """A function as a pickle carries it: all of it but the values of its shared variables. It can be pickled."""

    def load(self) -> Compiled:
        """The function, ready to run in this process."""


@dataclass
class Compiled:
    """A function ready to run, how it came about, its optimized graph when somebody asks for it, and what a pickle of it
    carries."""

    runner: Runner
    info: CacheInfo
    optimized: Callable[[], FunctionGraph]
    carried: Callable[[], Carried]


class Interpreted:
    """Runs a graph by each Op's reference implementation. The first `n_outputs` of its outputs are returned, the others
    replace the values of the inputs at the positions `updated`."""

    def __init__(
        self, fgraph: FunctionGraph, n_outputs: int, updated: Sequence[int], convert: Convert
    ) -> None:
        self.fgraph = fgraph
        self.outputs = tuple(range(n_outputs))
        self.updates = tuple((position, n_outputs + n) for n, position in enumerate(updated))
        self._convert = convert

    def run(self, items: tuple[Any, ...]) -> list[Any]:
        """The results, each an array of its own."""
        from engine.graph.reference import evaluate

        values = [self._convert(position, value) for position, value in enumerate(items)]
        fgraph = self.fgraph
        results: Sequence[Any] = evaluate(fgraph.inputs, fgraph.outputs, values, fgraph.toposort())
        return [result.copy() for result in results]
