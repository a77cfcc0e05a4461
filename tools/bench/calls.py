"""The cost of a call: microseconds of the processor, the least of many blocks of calls.

Run as `python tools/bench/calls.py`. Prints JSON: the figures, and the budgets that some of them have.

    scalar        a function of one number, given an array of rank 0
    number        how much more it costs to give a Python float
    by name       the same function with its argument by name, which Python arranges
    output        one of a thousand outputs, each a kernel and an array of rank 0
    regression    value and gradients of the model of tools/bench/peers: 10 arguments, 11 outputs

`--check` fails (exit code 1) over a budget.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import engine
import engine.tensor as pt

BUDGETS = {"scalar": 1.0, "number": 0.1, "output": 0.1, "regression": 5.0}
OUTPUTS = 1000
BLOCKS, BLOCK_SECONDS = 40, 0.02


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outputs", type=int, default=OUTPUTS, help=f"default: {OUTPUTS}")
    parser.add_argument("--check", action="store_true", help="fail over a budget")
    arguments = parser.parse_args()
    found = measured(arguments.outputs)
    over = missed(found)
    print(json.dumps({"microseconds": found, "budgets": BUDGETS, "over": over}, indent=2))
    return 1 if arguments.check and over else 0


def measured(n_outputs: int) -> dict[str, float]:
    """Return the microseconds of each case."""
    x = pt.scalar("x")
    scalar = engine.function([x], x * 2.0 + 1.0)
    many = engine.function([x], [x * (number + 0.5) for number in range(n_outputs)])
    value = np.array(1.5)
    array = microseconds(scalar, value)
    return {
        "scalar": array,
        "number": microseconds(scalar, 1.5) - array,
        "by name": microseconds(scalar, x=1.5),
        "output": microseconds(many, value) / n_outputs,
        "regression": microseconds(*regression()),
    }


def missed(found: Mapping[str, float]) -> list[str]:
    """Return the names of the cases that cost more than their budgets."""
    return [name for name, budget in BUDGETS.items() if found[name] > budget]


def regression() -> tuple[Any, ...]:
    """Return the function of the model, and its arguments."""
    sys.path.insert(0, str(Path(__file__).with_name("peers")))
    import in_engine
    import values

    return in_engine.build("regression")(), *values.ARGUMENTS["regression"]()


def microseconds(f: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """Return the processor's microseconds of a call."""
    count = 1
    while (taken := seconds(f, count, args, kwargs)) < BLOCK_SECONDS:
        count = max(2 * count, int(count * BLOCK_SECONDS / max(taken, 1e-9)))
    gc.collect()
    gc.disable()
    least = min(seconds(f, count, args, kwargs) for _ in range(BLOCKS))
    gc.enable()
    return 1e6 * least / count


def seconds(f: Callable[..., Any], count: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Return the processor's seconds of so many calls."""
    calls = range(count)
    begin = process_time()
    if kwargs:
        for _ in calls:
            f(*args, **kwargs)
    else:
        for _ in calls:
            f(*args)
    return process_time() - begin


if __name__ == "__main__":
    sys.exit(main())
