"""How fast this machine is now, beside the one that budgets in seconds are written for.

Machines differ, and one machine varies twofold with what else runs on it. A budget in seconds is one of a
machine whose pace is 1: there `import numpy` takes 90 ms of the processor, and `np.empty(())` 0.1 us. A
program measures one of them in the run that it judges, and multiplies its budgets by the pace. So every
budget is a ratio within a run.
"""

from __future__ import annotations

IMPORT_MILLISECONDS = 90.0
"""The processor's milliseconds for `import numpy` at pace 1, in a fresh process that has its bytecode."""
ARRAY_MICROSECONDS = 0.1
"""The microseconds of a call of `np.empty(())` at pace 1: an array is made and given up."""


def pace_of_imports(numpy_milliseconds: float) -> float:
    """Return how many times as long as at pace 1 a start takes, by what `import numpy` took."""
    return numpy_milliseconds / IMPORT_MILLISECONDS


def pace_of_calls(array_microseconds: float) -> float:
    """Return how many times as long as at pace 1 a call takes, by what `np.empty(())` took."""
    return array_microseconds / ARRAY_MICROSECONDS
