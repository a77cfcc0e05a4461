"""Fork while other threads import, rewrite, compile, link, read and write, and have each child make a
function of its own.

A round is one fresh process with an empty cache. Its threads make functions without end; at random
times, from the first import on, it forks. A fault: a child that does not end within two minutes, or
computes something else.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from rounds import ROOT, run

PROGRAM = """
import os, random, sys, threading, time
draw = random.Random(int(sys.argv[1]))
threads, children, longest = draw.choice((1, 1, 2, 4)), 5, draw.choice((0.02, 0.2, 0.8))

def make(number):
    import numpy as np, engine, engine.tensor as pt
    x = pt.vector("x")
    f = engine.function([x], pt.sum(pt.tanh(x * float(number))))
    return bool(np.isclose(f(np.ones(3)), 3 * np.tanh(number)))

def make_for_ever(number):
    while not done:
        make(number)
        number += threads

import numpy, engine
done = False
others = [threading.Thread(target=make_for_ever, args=(1000 + n,)) for n in range(threads)]
for other in others:
    other.start()
codes = []
for number in range(children):
    time.sleep(draw.uniform(0.0, longest))
    child = os.fork()
    if child == 0:
        threading.Thread(target=lambda: (time.sleep(120), os._exit(2)), daemon=True).start()
        os._exit(0 if make(draw.randrange(1100)) else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done = True
for other in others:
    other.join()
sys.exit(f"children ended with {codes}" if any(codes) else 0)
"""


def attack(draw: random.Random, directory: Path) -> str | None:
    """Run one process that forks; return the fault of its children, if any."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(draw.getrandbits(32))],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": tempfile.mkdtemp(dir=directory)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    return None if done.returncode == 0 else done.stderr


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
