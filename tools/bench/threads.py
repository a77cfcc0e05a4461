"""Calls on one thread and on several, in turns: seconds by the clock, which is what threads are for.

    tools/bench/threads.py [--threads N] [--check]

Prints, for each operation and number of elements, the milliseconds on one thread (the least of several
rounds) and how many times faster several threads are. Other programs that use the processors spoil it.
`--check` fails (exit code 1) if several threads do not win: for each number of elements from MANY
(engine/runtime/kernel_interface.py) on, the geometric mean has to be above 1.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.runtime.kernel_interface import MANY

SIZES = (MANY, 4 * MANY, 16 * MANY)
COLUMNS = 1024
ROUNDS = 9
VARIABLE = "CACHEGRAPH_NUM_THREADS"
Arrays = tuple[np.ndarray[Any, Any], ...]


def operations() -> dict[str, Callable[..., Any]]:
    """Return the functions to time, made for the number of threads that the environment says."""
    x, y, m, row, index = (
        pt.vector("x"),
        pt.vector("y"),
        pt.matrix("m"),
        pt.vector("row"),
        pt.lvector("index"),
    )
    return {
        "exp(x)": engine.function([x], pt.exp(x)),
        "x + y": engine.function([x, y], x + y),
        "log1p((x - y)**2)": engine.function([x, y], pt.log1p(pt.sqr(x - y))),
        "m + row": engine.function([m, row], m + row),
        "m.T": engine.function([m], m.T * 2.0),
        "sum(exp(m), axis=1)": engine.function([m], pt.exp(m).sum(axis=1)),
        "x[index]": engine.function([x, index], x[index]),
    }


def arguments(size: int) -> dict[str, Arrays]:
    """Return the arguments of each function, of `size` elements."""
    x, y = np.random.default_rng(1).random((2, size))
    m, index = x.reshape(-1, COLUMNS), np.random.default_rng(2).integers(0, size, size)
    return {
        "exp(x)": (x,),
        "x + y": (x, y),
        "log1p((x - y)**2)": (x, y),
        "m + row": (m, y[:COLUMNS].copy()),
        "m.T": (m,),
        "sum(exp(m), axis=1)": (m,),
        "x[index]": (x, index),
    }


def least_seconds(functions: dict[str, Callable[..., Any]], values: Arrays) -> dict[str, float]:
    """Return, for each number of threads, the shortest call of its function; they take turns."""
    found = {threads: float("inf") for threads in functions}
    for _ in range(ROUNDS):
        for threads, function in functions.items():
            os.environ[VARIABLE] = threads
            begin = perf_counter()
            function(*values)
            found[threads] = min(found[threads], perf_counter() - begin)
    return found


def gains(made: dict[str, dict[str, Callable[..., Any]]], size: int, threads: str) -> list[float]:
    """Print a row for each operation on `size` elements; return how many times faster `threads` are."""
    found = []
    for name, values in arguments(size).items():
        seconds = least_seconds({count: functions[name] for count, functions in made.items()}, values)
        found.append(seconds["1"] / seconds[threads])
        print(f"{size:>10}  {name:20} {1e3 * seconds['1']:9.3f} ms  {found[-1]:5.2f}")
    return found


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--check", action="store_true", help="fail if several threads do not win")
    options = parser.parse_args()
    threads, made = str(options.threads), {}
    for count in ("1", threads):
        os.environ[VARIABLE] = count
        made[count] = operations()
    means = {size: statistics.geometric_mean(gains(made, size, threads)) for size in SIZES}
    for size, mean in means.items():
        print(f"{size:>10}  geometric mean: {mean:.2f}")
    return 1 if options.check and min(means.values()) <= 1.0 else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        os.environ["CACHEGRAPH_DIR"] = directory
        sys.exit(main())
