"""Signals and threads against the updates of shared variables: of one call all are made, or none.

    python tools/stress/updates.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

Each round makes a function of up to 60 shared variables that counts in all of them, by rows of
random lengths that need scratch memory and results. It is called while an alarm raises from its
handler again and again, by one thread or by two, and now and then copied or pickled. After each
alarm all variables must have counted equally often, and the outputs of each call must be of one
time.
"""

from __future__ import annotations

import pickle
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from rounds import run

import engine
import engine.tensor as pt

SECONDS = 1.0


class _Alarm(Exception):
    """An interruption, raised by the signal's handler wherever the main thread is."""


def attack(rng: random.Random, directory: Path) -> str | None:
    """Run one function through a second of alarms, and return the fault."""
    variables = [engine.shared(np.zeros(rng.choice([1, 3, 1000]))) for _ in range(rng.randint(2, 60))]
    outputs = [variable[0] for variable in rng.sample(variables, 2)]
    mode = rng.choice(["FAST_RUN", "FAST_RUN", "NUMPY"])
    updates = {
        variable: pt.sort(variable) + 1 if rng.random() < 0.2 else variable + 1 for variable in variables
    }
    f = engine.function([], outputs, mode=mode, updates=updates)
    if rng.random() < 0.3:
        f, variables = pickle.loads(pickle.dumps((f.copy(), variables)))
    mixed: list[str] = []
    stop = threading.Event()
    threads = [threading.Thread(target=_call, args=(f, mixed, stop)) for _ in range(rng.choice([0, 0, 1]))]
    for thread in threads:
        thread.start()
    try:
        fault = _storm(f, variables, mixed, rng, bool(threads))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return fault or (_unequal(variables) if not threads else None) or (mixed[0] if mixed else None)


def _storm(
    f: Any, variables: list[Any], mixed: list[str], rng: random.Random, has_threads: bool
) -> str | None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _Alarm

    former, end = signal.signal(signal.SIGALRM, interrupt), time.monotonic() + SECONDS
    try:
        while time.monotonic() < end and not mixed:
            with suppress(_Alarm):
                _call_until_alarm(f, mixed, rng.uniform(1e-6, 2e-3), end)
            fault = None if has_threads else _unequal(variables)
            if fault:
                return fault
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _call_until_alarm(f: Any, mixed: list[str], seconds: float, end: float) -> None:
    """Call `f` until the alarm raises, in a frame of its own: a signal may arrive anywhere in it."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while time.monotonic() < end:  # an alarm within a callback of the interpreter is lost
        _check(f(), mixed)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _call(f: Any, mixed: list[str], stop: threading.Event) -> None:
    while not stop.is_set() and not mixed:
        _check(f(), mixed)


def _check(outputs: list[Any], mixed: list[str]) -> None:
    first, second = map(float, outputs)
    if first != second:
        mixed.append(f"a call read values of two times: {first} and {second}")


def _unequal(variables: list[Any]) -> str | None:
    counts = sorted({float(value) for variable in variables for value in variable.get_value(borrow=True)})
    return f"variables counted differently: {counts}" if len(counts) > 1 else None


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
