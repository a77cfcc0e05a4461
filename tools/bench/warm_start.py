"""Cold and warm starts of the demo's model: pairs of fresh processes, the first on an empty cache.

Prints JSON: the milliseconds of each step (median, least, most) cold and warm, and the ratio cold /
warm of `function() + first call` within each pair. `--check` fails (exit code 1) over the budget.
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

PROGRAM = Path(__file__).parents[2] / "examples" / "grunfeld" / "fit.py"
READY = "function() + first call"
BUDGET_MS = 50.0
BUDGET_RATIO = 10.0
Run = dict[str, float]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes (default: 5)")
    parser.add_argument("--check", action="store_true", help="fail if the medians are over the budget")
    arguments = parser.parse_args()
    pair()  # not counted: it leaves the bytecode behind, and the files in the page cache
    result = summary([pair() for _ in range(arguments.pairs)])
    print(json.dumps(result, indent=2))
    return 1 if arguments.check and not result["within_budget"] else 0


def pair() -> tuple[Run, Run]:
    """Return the milliseconds of each step in a cold and in a warm process on one cache."""
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        return measured(directory, "miss"), measured(directory, "hit")


def measured(directory: str, expected: str) -> Run:
    """Return the milliseconds of each step in a fresh process. Raises RuntimeError if its outcome is not
    `expected`.
    """
    # Bytecode is kept, as users' interpreters do: this is not about the compiler of Python.
    dropped = ("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "normal", "--no-fit"],
        env=environment | {"CACHEGRAPH_DIR": directory},
        stdout=subprocess.PIPE,
        check=True,
    )
    report = json.loads(done.stdout)
    if report["outcome"] != expected:
        raise RuntimeError(f"expected a {expected}, got a {report['outcome']}: {report['reason']}")
    milliseconds = {name: 1000.0 * seconds for name, seconds in report["seconds"].items()}
    milliseconds["all but numpy"] = sum(milliseconds.values()) - milliseconds["import numpy"]
    milliseconds[READY] = milliseconds["function()"] + milliseconds["first call"]
    return milliseconds


def summary(pairs: list[tuple[Run, Run]]) -> dict[str, Any]:
    """Return the medians and extremes of the measured pairs, and whether they keep the budget."""
    cold, warm = ([pair[which] for pair in pairs] for which in (0, 1))
    ratio = spread([pair[0][READY] / pair[1][READY] for pair in pairs])
    by_step = {
        name: {step: spread([run[step] for run in runs]) for step in runs[0]}
        for name, runs in (("cold", cold), ("warm", warm))
    }
    keeps = by_step["warm"][READY]["median"] <= BUDGET_MS and ratio["median"] >= BUDGET_RATIO
    return {
        "pairs": len(pairs),
        "python": platform.python_version(),
        "numba": version("numba"),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "milliseconds": by_step,
        "ratio": ratio,
        "budget": {"warm_milliseconds": BUDGET_MS, "ratio": BUDGET_RATIO},
        "within_budget": keeps,
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
