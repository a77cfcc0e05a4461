"""Interrupt builds at random, by signals and at chosen points of cachegraph's code, and look for what
they leave behind.

A round is one process. It builds in a cache on its node and in a shared one, and is interrupted,
once or again and again: at points drawn from all those at which CPython runs handlers (Python 3.12
and newer), or by signals at random times. A fault: an interrupt that comes through as another
error, a thread, process or host that would be made to wait, a temporary file, a wrong payload.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from rounds import ROOT, run

sys.path.insert(0, str(ROOT))
BUILDS = 40
LONGEST_PAUSE = 0.004


def attack(draw: random.Random, directory: Path) -> str | None:
    """Run one process that is interrupted; return the fault it reports."""
    kind = draw.choice(("points", "signals") if sys.version_info >= (3, 12) else ("signals",))
    command = [sys.executable, __file__, "--builds", kind, str(draw.getrandbits(32)), str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return None if done.returncode == 0 else f"{kind}: {done.stdout}{done.stderr}"


def interrupted_at_points(draw: random.Random, directory: Path) -> str | None:
    """Interrupt each of some builds at one point."""
    from tests.cachegraph.interrupted import Caches, count_points, interrupt

    caches = Caches(directory)
    caches.build("warm")
    points = count_points(lambda: caches.build("counted"))
    for number in range(BUILDS):
        point = draw.randrange(1, points)
        interrupt(lambda name=f"{number}": caches.build(name), point)  # type: ignore[misc]
        fault = caches.fault_after(f"{number}")
        if fault is not None:
            return f"at point {point} of {points}: {fault}"
    return None


def interrupted_by_signals(draw: random.Random, directory: Path) -> str | None:
    """Interrupt each of some builds by a timer's signal, the handler of which raises KeyboardInterrupt."""
    from tests.cachegraph.interrupted import Caches

    caches = Caches(directory)
    caches.build("warm")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for number in range(BUILDS):
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, LONGEST_PAUSE))
            caches.build(f"{number}")
            time.sleep(LONGEST_PAUSE)
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        fault = caches.fault_after(f"{number}")
        if fault is not None:
            return f"build {number}: {fault}"
    return None


def builds(kind: str, seed: str, directory: str) -> int:
    """Run the process of one round; return its exit code."""
    interrupted = {"points": interrupted_at_points, "signals": interrupted_by_signals}[kind]
    fault = interrupted(random.Random(int(seed)), Path(directory))
    if fault is not None:
        print(fault)
    return fault is not None


if __name__ == "__main__":
    sys.exit(builds(*sys.argv[2:]) if "--builds" in sys.argv else run(__doc__, attack))
