"""Nodes per second of each operation on graphs, of this engine and of PyTensor on the same graphs.

Both run in one environment, made for this with PyTensor in it (Python 3.12 or newer), by turns in
fresh processes; the best of all rounds counts. Prints JSON: for each graph and operation the nodes
a second of both and their ratio, above 1 where this engine is ahead; null for what PyTensor has not
or, its recursion being too deep, cannot. `--check` fails (exit code 1) if a ratio is not above 1,
or a fingerprint takes more than 15 us a node.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = Path(__file__).with_name("graph_subject.py")
REQUIREMENTS = ("pytensor>=3.3,<4", "xxhash>=3.5")
BUDGET_US = 15.0
Times = dict[str, dict[str, float | None]]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--environment", type=Path, default=ROOT / ".venv-pytensor", help="made if it is not there"
    )
    parser.add_argument("--python", help="of the environment; default: what tools/find-python finds")
    parser.add_argument("--size", type=int, default=2000, help="nodes of each graph, about (default: 2000)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each engine (default: 3)")
    parser.add_argument("--repeats", type=int, default=5, help="of each operation in a process (default: 5)")
    parser.add_argument("--check", action="store_true", help="fail where this engine is not ahead")
    arguments = parser.parse_args()
    python = environment(arguments.environment, arguments.python)
    runs: dict[str, list[Times]] = {"engine": [], "pytensor": []}
    for _ in range(arguments.rounds):
        for name, times in runs.items():
            times.append(measured(python, name, arguments.size, arguments.repeats))
    result = summary(least(runs["engine"]), least(runs["pytensor"]))
    print(json.dumps({"versions": versions(python), **result}, indent=2))
    return 1 if arguments.check and not result["ahead"] else 0


def environment(directory: Path, python: str | None) -> str:
    """Return the interpreter of the environment in `directory`, which is made if it is missing."""
    interpreter = directory / "bin" / "python"
    if not interpreter.exists():
        base = python or output([str(ROOT / "tools" / "find-python")]).strip()
        subprocess.run([base, "-m", "venv", str(directory)], check=True)
    if (
        subprocess.run([str(interpreter), "-c", "import pytensor, xxhash"], capture_output=True).returncode
        != 0
    ):
        subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return str(interpreter)


def measured(python: str, name: str, size: int, repeats: int) -> Times:
    """Return the times that one process of that engine measured."""
    found: Times = json.loads(output([python, str(SUBJECT), name, str(size), str(repeats)]))
    return found


def versions(python: str) -> dict[str, str]:
    """Return the releases of Python and PyTensor that were measured."""
    program = (
        "import pytensor, platform, json; "
        "print(json.dumps([platform.python_version(), pytensor.__version__]))"
    )
    return dict(zip(("python", "pytensor"), json.loads(output([python, "-c", program])), strict=True))


def output(command: list[str]) -> str:
    """Return the standard output of `command`."""
    # cxx= keeps PyTensor from looking for a C++ compiler, which nothing here needs.
    variables = os.environ | {"PYTHONPATH": str(ROOT), "PYTENSOR_FLAGS": "cxx="}
    return subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout


def least(runs: list[Times]) -> Times:
    """Return the shortest time per graph and operation; None where no run has one."""
    return {
        graph: {
            operation: min((t for run in runs if (t := run[graph][operation]) is not None), default=None)
            for operation in operations
        }
        for graph, operations in runs[0].items()
    }


def summary(ours: Times, theirs: Times) -> dict[str, Any]:
    """Return nodes per second of both engines, and whether this one is ahead wherever PyTensor can
    compete.
    """
    graphs: dict[str, Any] = {}
    for graph, operations in ours.items():
        graphs[graph] = {
            operation: compared(seconds, theirs[graph].get(operation))
            for operation, seconds in operations.items()
        }
    rows = [row for operations in graphs.values() for row in operations.values()]
    fingerprints = [ours[graph]["fingerprint"] or float("inf") for graph in ours]
    keeps = all(row["engine"] and (row["ratio"] is None or row["ratio"] > 1) for row in rows)
    most = 1e6 * max(fingerprints)
    return {
        "nodes_a_second": graphs,
        "fingerprint_us_a_node": round(most, 2),
        "ahead": keeps and most <= BUDGET_US,
    }


def compared(ours: float | None, theirs: float | None) -> dict[str, float | None]:
    """Return nodes per second of both, and the ratio."""
    return {
        "engine": ours and round(1 / ours),
        "pytensor": theirs and round(1 / theirs),
        "ratio": round(theirs / ours, 2) if ours and theirs else None,
    }


if __name__ == "__main__":
    sys.exit(main())
