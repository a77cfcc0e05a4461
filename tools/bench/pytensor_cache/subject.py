"""One process of the comparison: makes one model ready, with the adapter or without.

Run as `python subject.py MODEL pytensor|cachegraph`. Prints a line of JSON: the seconds of each
step by the clock and of the processor, what was found, and the bits of the results. Imports of
PyTensor and PyMC and the building of the graph come before; installing the adapter counts, and what
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
    """Compile the model, with the adapter or without, and print what each step took."""
    name, way = sys.argv[1:]
    subject = models.MODELS[name]()
    steps = Steps()
    if way == "cachegraph":
        import cachegraph.pytensor

        cachegraph.pytensor.install()
    elif DISPATCH not in sys.modules:
        __import__(DISPATCH)
    steps.done("install" if way == "cachegraph" else "dispatch")
    f = subject.compile()
    steps.done("function")
    results = f(*subject.point)
    steps.done("call")
    report: dict[str, Any] = {
        "nodes": subject.nodes,
        "steps": steps.taken,
        "imported": DISPATCH in sys.modules,
    }
    if way == "cachegraph":
        report["found"] = cachegraph.counters()._asdict()
    bits = [np.asarray(result).tobytes().hex() for result in results]
    print(json.dumps(report | {"results": bits}))


def processor_seconds() -> float:
    """Return the seconds of the processor that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
