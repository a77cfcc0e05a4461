"""The cost of a call: microseconds of the processor, the least of many blocks of calls.

Run as `python tools/bench/calls.py`. Prints JSON: the figures, and the budgets that some of them have.

    scalar        a function of one number, given an array of rank 0
    number        how much more it costs to give a Python float
    by name       the same function with its argument by name, which Python arranges
    np.empty(())  an empty array of rank 0, by numpy itself: the machine's pace
    output        one of a thousand outputs, each a kernel and an array of rank 0
    regression    value and gradients of the model of tools/bench/peers: 10 arguments, 11 outputs

`--check` fails (exit code 1) over a budget, times the machine's pace (pace.py).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from pace import pace_of_calls

BUDGETS = {"scalar": 1.0, "number": 0.1, "output": 0.1, "regression": 5.0}
OUTPUTS = 1000
BLOCKS, BLOCK_SECONDS = 40, 0.02
Call = Callable[[], Any]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outputs", type=int, default=OUTPUTS, help=f"default: {OUTPUTS}")
    parser.add_argument("--check", action="store_true", help="fail over a budget")
    arguments = parser.parse_args()
    found = measured(arguments.outputs)
    pace = pace_of_calls(found["np.empty(())"])
    budgets = {name: most * pace for name, most in BUDGETS.items()}
    over = missed(found, budgets)
    print(json.dumps({"microseconds": found, "pace": pace, "budgets": budgets, "over": over}, indent=2))
    return 1 if arguments.check and over else 0


def measured(n_outputs: int) -> dict[str, float]:
    """Return the microseconds of each case."""
    x = pt.scalar("x")
    scalar = engine.function([x], x * 2.0 + 1.0)
    many = engine.function([x], [x * (number + 0.5) for number in range(n_outputs)])
    value = np.array(1.5)
    found = least(
        {
            "np.empty(())": empty_arrays,
            "scalar": partial(scalar, value),
            "number": partial(scalar, 1.5),
            "by name": partial(scalar, x=1.5),
            "output": partial(many, value),
            "regression": partial(*regression()),
        }
    )
    found["np.empty(())"] /= OUTPUTS
    found["output"] /= n_outputs
    found["number"] -= found["scalar"]
    return found


def empty_arrays() -> None:
    """Make a thousand arrays of rank 0 without any loop of Python's."""
    list(map(np.empty, [()] * OUTPUTS))


def missed(found: Mapping[str, float], budgets: Mapping[str, float]) -> list[str]:
    """Return the names of the cases that cost more than their budgets."""
    return [name for name, budget in budgets.items() if found[name] > budget]


def regression() -> tuple[Any, ...]:
    """Return the function of the model, and its arguments."""
    sys.path.insert(0, str(Path(__file__).with_name("peers")))
    import in_engine
    import values

    return in_engine.build("regression")(), *values.ARGUMENTS["regression"]()


def least(calls: Mapping[str, Call]) -> dict[str, float]:
    """Return the processor's microseconds of each call, the least of many blocks, which take turns."""
    counts = {name: repeats(call) for name, call in calls.items()}
    taken: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    for _ in range(BLOCKS):
        for name, call in calls.items():
            taken[name].append(seconds(call, counts[name]))
    gc.enable()
    return {name: 1e6 * min(blocks) / counts[name] for name, blocks in taken.items()}


def repeats(call: Call) -> int:
    """Return how many calls make a block."""
    count = 1
    while (taken := seconds(call, count)) < BLOCK_SECONDS:
        count = max(2 * count, int(count * BLOCK_SECONDS / max(taken, 1e-9)))
    return count


def seconds(call: Call, count: int) -> float:
    """Return the processor's seconds of so many calls."""
    calls = range(count)
    begin = process_time()
    for _ in calls:
        call()
    return process_time() - begin


if __name__ == "__main__":
    sys.exit(main())
