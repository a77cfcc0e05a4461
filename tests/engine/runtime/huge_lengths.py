"""A process of its own: functions called with lengths whose sizes an int64 does not hold. Prints what became of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import engine
import engine.tensor as pt

v, n, m = pt.dscalar("v"), pt.lscalar("n"), pt.lscalar("m")
x = pt.dvector("x")


def halved(n_steps: Any) -> Any:
    """The sum of what halving gives until it is small."""
    h = engine.scan(
        lambda a: (a * 0.5, engine.until(a < 1e-3)), outputs_info=v, n_steps=n_steps, return_updates=False
    )
    return h.sum()


def concatenated(rows: int) -> Any:
    """Sums of rows of many matrices without columns, below each other. A slice of them would need no more than its rows."""
    columnless, chosen = pt.dmatrix("columnless"), pt.lvector("chosen")
    sums = pt.concatenate([columnless] * 16, axis=0).sum(axis=1)
    return engine.function([columnless, chosen], sums[chosen])(np.empty((rows, 0)), np.arange(3))


CALLS: dict[str, Callable[[], Any]] = {
    "sort": lambda: engine.function([v, n], pt.sort(pt.alloc(v, n)).sum())(1.0, 2**61),
    "sort constant": lambda: engine.function([v], pt.sort(pt.alloc(v, 2**61)).sum())(1.0),
    "scan": lambda: engine.function([v, n], halved(n))(1.0, 2**61 + 16),
    "set": lambda: engine.function([v, n], pt.set_subtensor(pt.zeros(n)[3:5], v)[2:6])(1.0, 2**61),
    "concatenate": lambda: concatenated(2**59),
    "reshape": lambda: engine.function([x, n, m], x.reshape((n, m)))(np.ones(1), 274177, 67280421310721),
    "too much": lambda: engine.function([v, n], pt.sort(pt.alloc(v, n)).sum())(1.0, 2**58),
}

for name, call in CALLS.items():
    try:
        print(f"{name}: {call()}")
    except (ValueError, MemoryError) as error:
        print(f"{name}: {type(error).__name__}: {error}")
