"""A process of its own: calls with inputs of growing lengths, while a timer's signals raise at any moment.

Results are compared, right after an interrupt as well. Prints how many calls there were, and how many were interrupted.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np

import engine
import engine.tensor as pt

CALLS = 200


class Interrupted(Exception):
    """Raised by the handler."""


armed = False


def interrupt(number: int, frame: Any) -> None:
    global armed
    if armed:
        armed = False
        raise Interrupted


def expected(x: np.ndarray[Any, Any]) -> float:
    e = np.exp(x - x.max())
    return float(e.sum() + e @ x)


def called(f: Any, x: np.ndarray[Any, Any], seconds: float) -> float | None:
    """The result, or None if a signal came before it."""
    global armed
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        result = float(f(x))
        armed = False
    except Interrupted:
        return None
    return result


def main() -> int:
    vector = pt.vector("x")
    e = pt.exp(vector - pt.max(vector))
    f = engine.function([vector], pt.sum(e) + pt.dot(e, vector))
    random = np.random.default_rng(7)
    interrupted = 0
    signal.signal(signal.SIGALRM, interrupt)
    small = random.normal(size=20_000)
    f(small)
    for number in range(CALLS):
        # What was enough before must not be taken for granted after growing was interrupted.
        large = random.normal(size=small.size + 50)
        found = called(f, large, random.uniform(1e-6, 4e-5))
        interrupted += found is None
        for x, result in ((large, found), (small, f(small)), (large, f(large))):
            if result is not None and not np.isclose(result, expected(x), rtol=1e-9):
                print(f"call {number}: {result} instead of {expected(x)}")
                return 1
        small = large
    print(f"{CALLS} calls, {interrupted} interrupted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
