"""One process of the comparison: computes operations in one framework, on one processor.

Run as `python subject.py FRAMEWORK`. Each line on standard input is JSON. A list (operation, dtype,
size) makes that operation ready; the answer is a sample of its result, or why there is none. A number
of seconds has the operation called for about as long; the answer is the seconds of the processor that
a call took in the best block of calls.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from math import inf
from time import perf_counter, process_time
from typing import Any

from operations import OPERATIONS
from values import sample, values

BLOCK_SECONDS = 2e-3
"""Of calls between two looks at the processor's clock."""
CLOCK_SECONDS = 1e-6
"""The shortest time that the clock shows."""


def main() -> None:
    """Answer each line."""
    # Pools of threads, which no setting switches off everywhere, then have one thread.
    everywhere = os.sched_getaffinity(0)
    one = {max(everywhere)}
    run_on(one)
    module = import_module(f"in_{sys.argv[1]}")
    call: Callable[[], Any] = bool
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, float):
            answer(best_of_blocks(call, question))
            continue
        call = bool  # the arrays of the last one are freed before there are new ones
        gc.collect()
        run_on(everywhere)  # all processes make themselves ready at the same time
        call, report = made_ready(module, *question)
        run_on(one)
        answer(report)


def run_on(processors: set[int]) -> None:
    """Run all threads of this process on these processors; new ones inherit that."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it has ended since
            os.sched_setaffinity(int(thread), processors)


def made_ready(module: Any, name: str, dtype: str, size: int) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Return a function that computes the operation, and the answer."""
    arrays = [values(argument, size, dtype) for argument in OPERATIONS[name].arguments]
    try:
        compute, arguments = module.build(name, arrays)
        return (lambda: compute(*arguments)), {"sample": sample(compute(*arguments))}
    except Exception as error:  # whatever a framework cannot do is a cell of the table
        return bool, {"failure": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def best_of_blocks(call: Callable[[], Any], seconds: float) -> float:
    """Return the processor's seconds per call in the best block of `seconds` of calls."""
    end, best, count = perf_counter() + seconds, inf, 1
    gc.disable()
    while perf_counter() < end or best == inf:
        used = process_time()
        for _ in range(count):
            call()
        taken = process_time() - used
        if taken < BLOCK_SECONDS / 2:  # too few calls for the clock
            count = 1 + int(count * BLOCK_SECONDS / max(taken, CLOCK_SECONDS))
        else:
            best = min(best, taken / count)
    gc.enable()
    return best


def answer(value: Any) -> None:
    """Print one line."""
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
