"""`Compiled`: a function ready to run. And the numpy backend, which compiles nothing: each Op runs by
its `perform`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cachegraph.caching.outcome import CacheInfo as CacheInfo
from cachegraph.named_tuples import NamedTuple
from engine.compiling.interface import Interface
from engine.runtime.fast_call import Arrangement

if TYPE_CHECKING:
    from typing import Protocol

    from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph

    class Runner(Protocol):
        """Runs a function. Of the results of `run`, `outputs` are returned, and `updates` replace inputs."""

        outputs: tuple[int, ...]
        updates: tuple[tuple[int, int], ...]

        def run(self, items: tuple[Any, ...]) -> list[Any]:
            """Return the results, given one value per input."""

        def fast_call(
            self, arrangement: Arrangement, general: Callable[..., Any], returned: Callable[[list[Any]], Any]
        ) -> Callable[..., Any] | None:
            """Return what calls the function without entering Python, or None (execution.py)."""

    class PickledFunction(Protocol):
        """A function in a form that can be pickled: all of it but the values of its shared variables."""

        def load(self) -> Compiled:
            """Return the function, ready to run in this process."""


class FunctionReference(NamedTuple):
    """A function in the cache, without updates and user Ops: the digest and the confirmation of its key, the
    name, dtype and static shape of each input, how many results it returns, and the `data` that it binds."""

    digest: bytes
    confirmation: bytes
    inputs: tuple[tuple[str | None, str, tuple[int | None, ...]], ...]
    n_outputs: int
    data: tuple[np.ndarray[Any, Any], ...]


def _no_reference() -> None:
    """Return None: the function has no key."""


class Compiled(NamedTuple):
    """A function ready to run, and how it was made. `optimized` and `pickled` make its rewritten graph
    and its form for a pickle when somebody asks for them, `reference` what finds it in the cache: None
    without a key."""

    runner: Runner
    info: CacheInfo
    optimized: Callable[[], FunctionGraph]
    pickled: Callable[[], PickledFunction]
    reference: Callable[[], FunctionReference | None] = _no_reference


class PickledGraph(NamedTuple):
    """A function of the numpy backend: its rewritten graph, and the `reason` why it was not compiled."""

    graph: FrozenFunctionGraph
    interface: Interface
    reason: str

    def load(self) -> Compiled:
        """Return the function, on a copy of the graph."""
        fgraph = self.graph.unfreeze()
        info = CacheInfo(outcome="carried", reason=self.reason)
        return Compiled(Interpreted(fgraph, self.interface), info, fgraph.clone, lambda: self)


class Interpreted:
    """Runs a graph by the reference implementation of each Op."""

    def __init__(self, fgraph: FunctionGraph, interface: Interface) -> None:
        self.fgraph = fgraph
        self.outputs = tuple(range(interface.n_outputs))
        self.updates = tuple((at, interface.n_outputs + n) for n, at in enumerate(interface.updated))
        self._convert = interface.convert

    def run(self, items: tuple[Any, ...]) -> list[Any]:
        """Return the results, each in memory of its own."""
        from engine.graph.reference import evaluate
        from engine.graph.represented import array_of, value_of

        arrays = [self._convert(position, value) for position, value in enumerate(items)]
        fgraph = self.fgraph
        values = [value_of(v, array) for v, array in zip(fgraph.inputs, arrays, strict=True)]
        results: Sequence[Any] = evaluate(fgraph.inputs, fgraph.outputs, values, fgraph.toposort())
        return [array_of(v, result).copy() for v, result in zip(fgraph.outputs, results, strict=True)]

    def fast_call(self, arrangement: Arrangement, general: object, returned: object) -> None:
        """Return None: every call is Python's."""
        return None
