"""One process of the comparison: makes one model ready, by PyTensor alone, with the adapter or by the engine.

Run as `python subject.py MODEL pytensor|cachegraph|engine`. Prints a line of JSON: the seconds of each
step by the clock and of the processor, what was found, the microseconds of a call (the least of many,
arguments trusted, as samplers call), and the bits of the results. Imports of
PyTensor, PyMC and nutpie and the building of the graph come before; installing the adapter counts, and what
PyTensor imports while it compiles (`dispatch`, its numba implementations) is a step of its own.
"""

from __future__ import annotations

import json
import resource
import sys
from time import perf_counter
from typing import Any

import models
import numpy as np

DISPATCH = "pytensor.link.numba.dispatch"
CALLS = 50


class Steps:
    """A stopwatch of steps: name -> [seconds by the clock, CPU seconds]."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}
        self.clock, self.processor = perf_counter(), processor_seconds()

    def done(self, name: str) -> None:
        clock, processor = perf_counter(), processor_seconds()
        self.taken[name] = [clock - self.clock, processor - self.processor]
        self.clock, self.processor = perf_counter(), processor_seconds()


def main() -> None:
    """Compile the model in that way, and print what each step took."""
    name, way = sys.argv[1:]
    subject = models.MODELS[name]()
    steps = Steps()
    if way == "pytensor" and DISPATCH not in sys.modules:
        __import__(DISPATCH)
    elif way != "pytensor":
        import cachegraph.pytensor

        cachegraph.pytensor.install(backend="engine" if way == "engine" else None)
    steps.done("dispatch" if way == "pytensor" else "install")
    f = subject.compile("ENGINE" if way == "engine" else "NUMBA")
    steps.done("function")
    results = f(*subject.point)
    steps.done("call")
    report: dict[str, Any] = {
        "nodes": subject.nodes,
        "steps": steps.taken,
        "imported": DISPATCH in sys.modules,
    }
    if way != "pytensor":
        report["found"] = cachegraph.counters()._asdict()
    if hasattr(f, "trust_input"):
        report["call_us"] = call_microseconds(f, subject.point)
    bits = [np.asarray(result).tobytes().hex() for result in results]
    print(json.dumps(report | {"results": bits}))


def call_microseconds(f: Any, point: list[Any]) -> float:
    """Return the least time of a call by the clock, over a hundred batches of some milliseconds together."""
    f.trust_input = True
    batches = []
    for _ in range(100):
        begin = perf_counter()
        for _ in range(CALLS):
            f(*point)
        batches.append((perf_counter() - begin) / CALLS)
    return 1e6 * min(batches)


def processor_seconds() -> float:
    """Return the seconds of the processor that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
