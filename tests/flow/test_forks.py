"""Children forked while another thread rewrites, compiles and links functions make functions of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import os, random, sys, threading, time
import numpy as np
import engine, engine.tensor as pt

def make(number):
    x = pt.vector("x")
    y = pt.sum(pt.tanh(x * float(number)))
    return engine.function([x], [y, engine.grad(y, x)])

def compile_for_ever():
    number = 1000
    while not done:
        make(number)
        number += 1

done = False
thread = threading.Thread(target=compile_for_ever)
thread.start()
codes = []
for number in range(int(sys.argv[1])):
    time.sleep(random.uniform(0.0, 0.4))  # the first are forked while numba is imported
    child = os.fork()
    if child == 0:
        threading.Thread(target=lambda: (time.sleep(90), os._exit(2)), daemon=True).start()
        value, slope = make(number)(np.ones(3))
        os._exit(0 if np.isclose(value, 3 * np.tanh(number)) else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done = True
thread.join()
print(codes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_children_forked_while_a_thread_compiles_compile_too(cache_directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, "4"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "[0, 0, 0, 0]", done.stderr
