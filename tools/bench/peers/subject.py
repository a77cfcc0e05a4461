"""One process of the comparison: makes one model in one framework ready, then times calls for as long
as it is asked to.

Run as `python subject.py FRAMEWORK MODEL`. Prints a line of JSON with the seconds that `function()`
and the first call took (by the clock, and of the processor), and the results; or why there are
none. Then, for each line on standard input (a number of seconds), calls the function for about as
long and prints the microseconds of a call (the median).
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from values import ARGUMENTS

NEEDED = {"minimize": ("scipy.optimize",)}
"""Modules that a model needs beyond its framework: imported before the clock starts."""
BLOCK = 10
"""Calls between two looks at the clock."""


def main() -> None:
    """Make the model ready, print the report, then time calls as standard input asks."""
    framework, model = sys.argv[1:]
    arguments = ARGUMENTS[model]()
    start = perf_counter()
    for name in (f"in_{framework}", *NEEDED.get(model, ())):
        import_module(name)
    module = sys.modules[f"in_{framework}"]
    imported = perf_counter()
    try:
        report, f = made_ready(module, model, arguments)
    except Exception as error:  # whatever a framework cannot do is a row of the table
        answer({"failure": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
        return
    answer({"import": imported - start, **report})
    for line in sys.stdin:
        answer(timed(f, arguments, float(line)))


def made_ready(module: Any, model: str, arguments: list[Any]) -> tuple[dict[str, Any], Callable[..., Any]]:
    """Return the times of making the model ready, and the function."""
    start = perf_counter()
    compile_model = module.build(model)
    built, used = perf_counter(), processor_seconds()
    f = compile_model()
    compiled = perf_counter()
    results = f(*arguments)
    called = perf_counter()
    # Like the time that the frameworks take to import, building the graph is said, but not compared.
    report = {
        "build": built - start,
        "function": compiled - built,
        "call": called - compiled,
        "processor": processor_seconds() - used,
        "results": [np.asarray(result).ravel().tolist() for result in results],
    }
    if hasattr(f, "cache_info"):
        info = f.cache_info
        report |= {"outcome": info.outcome, "steps": info.seconds, "found": info.found}
    return report, f


def processor_seconds() -> float:
    """Return the seconds of the processor that this process and those it started have used."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def timed(f: Callable[..., Any], arguments: list[Any], seconds: float) -> float:
    """Return the microseconds of a call, the median of blocks of calls that take about so many seconds."""
    taken = []
    gc.collect()
    gc.disable()
    end = perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        for _ in range(BLOCK):
            f(*arguments)
        taken.append((perf_counter() - start) / BLOCK)
    gc.enable()
    return 1e6 * statistics.median(taken)


def answer(value: Any) -> None:
    """Print one line."""
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
