"""Cold compiles of chains of equal OpFromGraph layers with their gradients, each in a process of its own.

    tools/bench/layers.py [LENGTH ...]

Prints, of the cheapest of several processes, the processor's and the clock's seconds of
`function()` and first call, and what was rewritten and compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 3
CODE = """
import json, os, sys, time
import engine
from tests.flow.test_inner_graphs import chain, values
length = int(sys.argv[1])
inputs, outputs = chain(length)
begin = time.perf_counter(), sum(os.times()[:4])
f = engine.function(inputs, outputs)
f(*values(length))
seconds = sum(os.times()[:4]) - begin[1], time.perf_counter() - begin[0]
found = f.cache_info.found
print(json.dumps([*seconds, found["op"][1], f.cache_info.compilations]))
"""


def measure(length: int) -> tuple[float, float, int, int]:
    """Return CPU and clock seconds, graphs rewritten and kernels compiled, of one cold process."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(length)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": directory},
            capture_output=True,
            text=True,
            check=True,
        )
    cpu, clock, rewritten, compiled = json.loads(done.stdout)
    return cpu, clock, rewritten, compiled


if __name__ == "__main__":
    for length in map(int, sys.argv[1:] or (50, 100, 200, 400)):
        cpu, clock, rewritten, compiled = min(measure(length) for _ in range(PROCESSES))
        print(
            f"{length:4} layers: processor {cpu:.2f} s, clock {clock:.2f} s, "
            f"{rewritten} inner graphs rewritten, {compiled} kernels compiled"
        )
