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
from importlib import import_module
from time import perf_counter, process_time
from typing import Any

from operations import OPERATIONS
from values import sample, values

BLOCK_SECONDS = 2e-3
"""Of calls between two looks at the processor's clock."""


def main() -> None:
    """Answer each line."""
    # Pools of threads, which no setting switches off everywhere, then have one thread.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    module = import_module(f"in_{sys.argv[1]}")
    call: Callable[[], Any] = bool
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, float):
            answer(best_of_blocks(call, question))
            continue
        call = bool  # the arrays of the last one are freed before there are new ones
        gc.collect()
        call, report = made_ready(module, *question)
        answer(report)


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
    start = perf_counter()
    call()
    count = max(1, int(BLOCK_SECONDS / (perf_counter() - start)))
    end, best = perf_counter() + seconds, float("inf")
    gc.disable()
    while perf_counter() < end or best == float("inf"):
        used = process_time()
        for _ in range(count):
            call()
        best = min(best, (process_time() - used) / count)
    gc.enable()
    return best


def answer(value: Any) -> None:
    """Print one line."""
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
