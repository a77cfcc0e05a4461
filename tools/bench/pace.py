"""How fast this machine is now, beside the one that budgets in seconds are written for.

Machines differ, and one machine varies twofold with what else runs on it. A budget in seconds is one of a
machine whose pace is 1: there `import numpy` takes 45 ms of the processor, and `np.empty(())` 0.1 us. A
program measures one of them in the run that it judges, and multiplies its budgets by the pace. So every
budget is a ratio within a run.

OpenBLAS, which numpy imports, starts a thread for each processor that waits for work in a loop for some
10 ms: time of the processor that is neither numpy's nor the engine's. Processes whose imports are measured
start none (ONE_THREAD).
"""

from __future__ import annotations

IMPORT_MILLISECONDS = 45.0
"""The processor's milliseconds for `import numpy` at pace 1, in a fresh process that has its bytecode, on one
thread."""
ARRAY_MICROSECONDS = 0.1
"""The microseconds of a call of `np.empty(())` at pace 1: an array is made and given up."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Of the environment of a process in which an import, or what follows it, is measured."""


def pace_of_imports(numpy_milliseconds: float) -> float:
    """Return how many times as long as at pace 1 a start takes, by what `import numpy` took."""
    return numpy_milliseconds / IMPORT_MILLISECONDS


def pace_of_calls(array_microseconds: float) -> float:
    """Return how many times as long as at pace 1 a call takes, by what `np.empty(())` took."""
    return array_microseconds / ARRAY_MICROSECONDS
