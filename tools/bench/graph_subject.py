"""One process of graph.py: the seconds that one of the two engines takes for each operation on each graph.

Run as `python graph_subject.py engine|pytensor SIZE REPEATS`; prints JSON, {graph: {operation:
seconds a node}}. null is an operation that the engine cannot do on that graph (the recursion gets
too deep); one that it has not is missing. Seconds are of the processor, since others may use the
machine too. Garbage is collected before each measurement and not during it, for both alike; the
least of REPEATS counts.
"""

from __future__ import annotations

import gc
import json
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

Graph = tuple[list[Any], list[Any]]
RECURSION_LIMIT = 5_000
"""Five times the usual: PyTensor pickles graphs recursively."""


def main() -> None:
    """Measure the engine that is named first on the command line, and print what it took."""
    name, size, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sys.setrecursionlimit(RECURSION_LIMIT)
    subject = Engine() if name == "engine" else PyTensor()
    found = {}
    for graph, build in GRAPHS.items():
        found[graph] = Measurement(subject, build, size, repeats).all()
    print(json.dumps(found))


class Engine:
    """This engine."""

    def __init__(self) -> None:
        import engine.tensor as pt
        from engine.compiling.key import encode_graph
        from engine.graph import FrozenFunctionGraph, FunctionGraph

        self.pt, self.mutable, self.freeze = pt, FunctionGraph, FrozenFunctionGraph.from_io
        self.fingerprint = encode_graph


class PyTensor:
    """PyTensor. Its frozen graphs have no fingerprint that holds beyond the process."""

    def __init__(self) -> None:
        import pytensor.tensor as pt
        from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph

        self.pt, self.mutable, self.freeze = pt, FunctionGraph, FrozenFunctionGraph.from_io
        self.fingerprint = None


def layers(pt: Any, size: int) -> Graph:
    """Return layers of forty elements, each made of two elements of the layer before by one of five
    operations.
    """
    width = 40
    inputs = [pt.dvector(f"x{i}") for i in range(width)]
    layer = list(inputs)
    for depth in range(size // width):
        pairs = [(layer[i], layer[(i + depth + 1) % width], (i + depth) % 5) for i in range(width)]
        layer = [_combined(pt, *pair) for pair in pairs]
    return inputs, layer


def _combined(pt: Any, a: Any, b: Any, which: int) -> Any:
    operations = (
        lambda: a + b,
        lambda: a * b,
        lambda: pt.exp(a),
        lambda: pt.maximum(a, b),
        lambda: pt.tanh(a - b),
    )
    return operations[which]()


def regression(pt: Any, size: int) -> Graph:
    """Return a sum of log densities of many small terms, with constants, casts of rank and reductions."""
    x, mu, sigma = pt.dmatrix("x"), pt.dvector("mu"), pt.dmatrix("sigma")
    total = pt.sum(pt.log(sigma))
    for number in range(size // 8):
        residual = (x - mu * float(number)) / sigma
        total = total + pt.sum(residual * residual) * (number + 0.5)
    return [x, mu, sigma], [total]


def chain(pt: Any, size: int) -> Graph:
    """Return a chain: each node has the one before as its input."""
    x = out = pt.dvector("x")
    for number in range(size):
        out = pt.sin(out) if number % 2 else pt.exp(out)
    return [x], [out]


GRAPHS: dict[str, Callable[[Any, int], Graph]] = {"layers": layers, "regression": regression, "chain": chain}


class Measurement:
    """The operations of one engine on one graph."""

    def __init__(self, subject: Any, build: Callable[[Any, int], Graph], size: int, repeats: int) -> None:
        self.subject = subject
        self.build = lambda: build(subject.pt, size)
        self.repeats = repeats

    def all(self) -> dict[str, float | None]:
        """Return the seconds per node of each operation."""
        subject, build = self.subject, self.build
        inputs, outputs = build()
        fgraph = subject.mutable(inputs, outputs)
        n_nodes = len(fgraph.apply_nodes)
        found = {
            "build": self.best(lambda _: build()),
            "freeze": self.best(lambda _: subject.freeze(inputs, outputs)),
            "clone": self.best(lambda _: fgraph.clone()),
            **self.pickling(fgraph, "{} mutable"),
        }
        if subject.fingerprint is not None:
            found["fingerprint"] = self.best(subject.fingerprint, lambda: subject.freeze(inputs, outputs))
        frozen = [subject.freeze(inputs, outputs)]
        found["re-freeze"] = self.best(lambda _: subject.freeze(inputs, outputs))
        found["thaw"] = self.best(lambda _: frozen[0].unfreeze())
        found |= self.pickling(frozen[0], "{} frozen, alive")
        content = self.dumped(frozen.pop())
        found["load frozen"] = content and self.best(lambda _: pickle.loads(content))
        return {operation: seconds and seconds / n_nodes for operation, seconds in found.items()}

    def pickling(self, item: Any, name: str) -> dict[str, float | None]:
        """Return the seconds of pickling `item` and of loading it, under names that end in `name`."""
        content = self.dumped(item)
        return {
            name.format("pickle"): content and self.best(lambda _: pickle.dumps(item)),
            name.format("load"): content and self.best(lambda _: pickle.loads(content)),
        }

    def dumped(self, item: Any) -> Any:
        """Return the pickle of `item`, or None if it cannot be pickled."""
        try:
            return pickle.dumps(item)
        except RecursionError:
            return None

    def best(self, run: Callable[[Any], Any], prepare: Callable[[], Any] = lambda: None) -> float | None:
        """Return the least seconds of `run` on what `prepare` makes; None if the recursion gets too deep."""
        least = float("inf")
        for _ in range(self.repeats):
            argument = prepare()
            gc.collect()
            gc.disable()
            start = time.process_time()
            try:
                result = run(argument)
            except RecursionError:
                return None
            finally:
                taken = time.process_time() - start
                gc.enable()
            least = min(least, taken)
            del result, argument
        return least


if __name__ == "__main__":
    main()
