"""Lengths, indices and steps at every power of two and beside it, negative ones too, through
everything that takes one.

A round makes one function, in the mode NUMPY as well, and calls it with random lengths, each call
in a child process with little memory. A fault: a child that a signal ends, but for one that takes
too long; and where all numbers are small, another result than that of the mode NUMPY, or an error
where that has none.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rounds import ROOT, run

sys.path.insert(0, str(ROOT))

import numpy as np

import engine
import engine.tensor as pt

CALLS = 40
MEMORY = 2**31
SECONDS = 3
SMALL = 70

v, x = pt.dscalar("v"), pt.dvector("x")
n, m, k = pt.lscalar("n"), pt.lscalar("m"), pt.lscalar("k")
INPUTS = [v, x, n, m, k]
VALUES = (1.5, np.arange(6.0))


def halved(steps: Any) -> Any:
    """Return all halves of a vector until it is small, or the given number of times."""
    return engine.scan(
        lambda a: (a * 0.5, engine.until(a < 1e-3)), outputs_info=v, n_steps=steps, return_updates=False
    )


def repeated(steps: Any, row: Any) -> Any:
    """Return all rows that the given number of steps makes of a vector."""
    return engine.scan(lambda a: a * 0.5 + 1.0, outputs_info=row, n_steps=steps, return_updates=False)


def mapped(rows: Any) -> Any:
    """Return a longer row for each element."""
    return engine.scan(lambda row: pt.concatenate([row, row]) * 2.0, sequences=rows, return_updates=False)


GRAPHS: dict[str, Callable[[], Any]] = {
    "sort": lambda: pt.sort(pt.alloc(v, n, m), axis=-1).sum(),
    "argsort": lambda: pt.argsort(pt.alloc(v, n))[k],
    "cumsum": lambda: pt.cumsum(pt.alloc(v, n, m, k), axis=1).sum(axis=0),
    "sum": lambda: (pt.alloc(v, n, m) + pt.alloc(v, m)).sum(axis=0),
    "outer": lambda: pt.exp(pt.alloc(v, n).dimshuffle(0, "x") + pt.alloc(v, m).dimshuffle("x", 0)),
    "reshape": lambda: x.reshape((n, m)),
    "reshape three": lambda: pt.exp(x).reshape((n, m, k)).sum(axis=1),
    "reshape rest": lambda: x.reshape((n, -1, m)),
    "reshape filled": lambda: pt.exp(pt.alloc(v, n, m)).reshape((k, -1)).sum(axis=1),
    "slice": lambda: x[n:m:k],
    "slice of two": lambda: pt.exp(pt.alloc(v, n, 5))[m:k, ::-1].sum(axis=0),
    "index": lambda: x[n] + pt.exp(pt.alloc(x, 3, 6))[m, k],
    "set": lambda: pt.set_subtensor(pt.zeros(n)[m:k], v),
    "add": lambda: pt.inc_subtensor(pt.alloc(v, n, 3)[m:, k], v).sum(axis=1),
    "gather": lambda: pt.exp(pt.alloc(v, n, m))[pt.stack([k, n])],
    "scatter": lambda: pt.inc_subtensor(pt.zeros((n, m))[pt.stack([k, k])], v).sum(axis=1),
    "concatenate": lambda: pt.concatenate([pt.alloc(v, n, k), pt.alloc(v, m, k)] * 8, axis=0).sum(axis=1),
    "concatenate columns": lambda: pt.concatenate([pt.alloc(v, k, n), pt.alloc(v, k, m)], axis=1),
    "dot": lambda: pt.dot(pt.exp(pt.alloc(v, n, m)), pt.alloc(v, m, k)),
    "range": lambda: pt.arange(n, m, k),
    "largest": lambda: pt.argmax(pt.exp(pt.alloc(v, n, m)), axis=0) + pt.max(pt.alloc(v, n, m), axis=0),
    "mask": lambda: pt.alloc(x, n, 6)[pt.alloc(x, n, 6) > v],
    "while": lambda: halved(n),
    "while, last": lambda: halved(n)[-1],
    "loop": lambda: repeated(n, pt.alloc(v, m)),
    "loop over rows": lambda: mapped(pt.exp(pt.alloc(v, n, m))),
    "solve": lambda: engine.tensor.linalg.solve(pt.alloc(v, n, n) + pt.eye(n), pt.alloc(v, n, m)),
}


@cache
def functions(name: str) -> tuple[Any, Any]:
    """Return the compiled graph, and the same in mode NUMPY."""
    graph = GRAPHS[name]()
    make = [engine.function(INPUTS, graph, mode=mode, on_unused_input="ignore") for mode in (None, "NUMPY")]
    return make[0], make[1]


def attack(draw: random.Random, directory: Path) -> str | None:
    """Call one function with lengths of all kinds; return the fault of the worst call."""
    os.environ["CACHEGRAPH_DIR"] = str(directory)
    name = draw.choice(sorted(GRAPHS))
    compiled, reference = functions(name)
    for _ in range(CALLS):
        lengths = [_length(draw) for _ in range(3)]
        fault = _in_child(lambda given=lengths: _compared(compiled, reference, given))
        if fault is not None:
            return f"{name} with {lengths}: {fault}"
    return None


def _length(draw: random.Random) -> int:
    if draw.random() < 0.5:
        return draw.randrange(-3, 8)
    number = draw.choice((-1, 1)) * 2 ** draw.choice((draw.randrange(64), draw.randrange(28, 64)))
    number = (number + draw.randrange(-2, 18)) // draw.choice((1, 1, 3, 6, 8))
    return min(max(number, -(2**63)), 2**63 - 1)


def _in_child(check: Callable[[], str | None]) -> str | None:
    """Return the result of `check` in a child process, or the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        try:
            fault = check()
        except BaseException as error:
            fault = f"{type(error).__name__}: {error}"
        os.write(writing, (fault or "").encode()[:2000])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        fault = answer.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (0, -signal.SIGALRM):
        return fault or None
    return f"ended with {signal.Signals(-code).name if code < 0 else code}"


def _compared(compiled: Any, reference: Any, lengths: list[int]) -> str | None:
    found = _outcome(compiled, lengths)
    if any(abs(length) > SMALL for length in lengths):
        return None
    due = _outcome(reference, lengths)
    if isinstance(due, Exception) or isinstance(found, Exception):
        return (
            None if isinstance(due, Exception) and isinstance(found, Exception) else f"{found!r}, not {due!r}"
        )
    return (
        None
        if np.array_equal(np.shape(found), np.shape(due)) and np.allclose(found, due, equal_nan=True)
        else f"{found}, not {due}"
    )


def _outcome(f: Any, lengths: list[int]) -> Any:
    try:
        return f(*VALUES, *lengths)
    except (ValueError, MemoryError, IndexError, OverflowError, ArithmeticError) as error:
        return error
    except np.linalg.LinAlgError as error:
        return error


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
