"""Warm starts of the demo's model, and the import of the engine beside numpy and SciPy, in fresh processes.

Prints JSON: the milliseconds of the processor that each step took (least, median and most of all
rounds), in a first, cold process, and in warm ones. `--check` fails (exit code 1) where the least is over a
budget, times the machine's pace (pace.py):

    function() + first call, warm      20 ms
    import engine beside SciPy         40 ms
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pace import ONE_THREAD, pace_of_imports

SUBJECT = Path(__file__).parent / "warm_subject.py"
READY = "function() + first call"
BUDGETS = {READY: 20.0, "import engine beside SciPy": 40.0}
Run = dict[str, float]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="of two processes (default: 9)")
    parser.add_argument("--check", action="store_true", help="fail where a budget is missed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        measured(directory, "function", "miss")  # not counted: it leaves the bytecode of a miss behind
        with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as other:
            cold = measured(other, "function", "miss")
        measured(directory, "function", "hit")  # nor is the first hit
        warm = [round_of_processes(directory) for _ in range(arguments.rounds)]
    result = summary(cold, warm)
    print(json.dumps(result, indent=2))
    return 1 if arguments.check and result["over the budget"] else 0


def round_of_processes(directory: str) -> Run:
    """Return the milliseconds of each step in two fresh processes: a warm start, and an import."""
    return measured(directory, "function", "hit") | measured(directory, "import", "imported")


def measured(directory: str, subject: str, expected: str) -> Run:
    """Return the milliseconds of each step in a fresh process. Raises RuntimeError if its outcome is not
    `expected`.
    """
    # Bytecode is kept, as users' interpreters do: this is not about the compiler of Python.
    dropped = ("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [sys.executable, str(SUBJECT), subject],
        env=environment | ONE_THREAD | {"CACHEGRAPH_DIR": directory},
        stdout=subprocess.PIPE,
        check=True,
    )
    report = json.loads(done.stdout)
    if report["outcome"] != expected:
        raise RuntimeError(f"expected a {expected}, got a {report['outcome']}")
    found: Run = report["milliseconds"]
    return found | ({READY: found["function()"] + found["first call"]} if subject == "function" else {})


def summary(cold: Run, warm: list[Run]) -> dict[str, Any]:
    """Return the least, median and most of each step, and the budgets that are missed."""
    steps = {step: spread([run[step] for run in warm]) for step in warm[0]}
    pace = pace_of_imports(steps["import numpy"]["least"])
    return {
        "rounds": len(warm),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("numpy", "scipy", "llvmlite")},
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "cold": {step: round(value, 2) for step, value in cold.items()},
        "warm": steps,
        "pace": round(pace, 2),
        "budgets": {step: round(most * pace, 2) for step, most in BUDGETS.items()},
        "over the budget": [step for step, most in BUDGETS.items() if steps[step]["least"] > most * pace],
    }


def spread(values: list[float]) -> dict[str, float]:
    """Return median, least and most."""
    return {
        "median": round(statistics.median(values), 2),
        "least": round(min(values), 2),
        "most": round(max(values), 2),
    }


if __name__ == "__main__":
    sys.exit(main())
