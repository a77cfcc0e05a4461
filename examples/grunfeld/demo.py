"""Compile a model once, start warm in the next process: the Grunfeld regression in fresh processes on one cache.

Exits with 1 if the second process did not get everything from the cache, or if a number differs from numpy's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import reference
from panel import Panel, read_panel

HERE = Path(__file__).parent
STEPS = (
    "import numpy",
    "import engine",
    "build the graph",
    "function()",
    "first call",
    "import scipy.optimize",
    "fit",
)
SHOWN = (
    "intercept",
    "slope on value",
    "slope on capital",
    "log spread of intercepts",
    "log spread of value slopes",
    "log spread of capital slopes",
    "log noise",
)
Report = dict[str, Any]


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(description="Compile a model once, start warm in the next process.")
    parser.add_argument("--dir", type=Path, help="an empty or absent cache directory to use and keep")
    directory = parser.parse_args().dir
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="cachegraph-demo-") as temporary:
            return run(Path(temporary))
    if directory.is_dir() and any(directory.iterdir()):
        parser.error(f"{directory} is not empty: the first process has to start cold")
    return run(directory)


def run(directory: Path) -> int:
    """Run three processes on the cache in `directory`, print what they did, return the exit code."""
    panel = read_panel()
    print(
        f"Grunfeld investment data: {len(panel.firms)} firms, {panel.invest.size} rows; cache in {directory}"
    )
    print("Running the same program in two fresh processes, then a related model in a third ...\n")
    cold = process(directory, "normal")
    warm = process(directory, "normal", CACHEGRAPH_ON_MISS="error")
    related = process(directory, "robust", "--no-fit")
    density, estimate = reference.maximum("normal", panel)

    print_steps(cold, warm)
    print_cache({"first process": cold, "second process": warm, "related model": related})
    print_estimates(cold, warm, density, estimate)
    problems = [
        *warm_problems(warm),
        *sharing_problems(related),
        *number_problems(panel, cold, warm, related, density, estimate),
    ]
    print("cachegraph stats")
    command([sys.executable, "-m", "cachegraph", "stats"], directory)
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


def process(directory: Path, *arguments: str, **environment: str) -> Report:
    """Return what a fresh process of fit.py reports."""
    return json.loads(
        command([sys.executable, str(HERE / "fit.py"), *arguments], directory, environment, show=False)
    )


def command(
    words: list[str], directory: Path, environment: dict[str, str] | None = None, show: bool = True
) -> str:
    """Run a command on the cache in `directory`; return what it printed, if that is not shown. Exits if it fails."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE"))
    }
    # With 40 unknowns the threads of BLAS would only wait for each other.
    changed = {"CACHEGRAPH_DIR": str(directory), "OPENBLAS_NUM_THREADS": "1", **(environment or {})}
    sys.stdout.flush()
    done = subprocess.run(
        words, env=kept | changed, stdout=None if show else subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"PROBLEM: {' '.join(words[1:])} with {changed} ended with {done.returncode}")
    return done.stdout or ""


def print_steps(cold: Report, warm: Report) -> None:
    """Print what each step took in the two processes, in milliseconds."""
    print(f"{'milliseconds':24}{'first':>12}{'second':>12}{'ratio':>8}")
    for step in STEPS:
        print_step(step, cold["seconds"][step], warm["seconds"][step])
    print_step("function() + first call", ready(cold), ready(warm))
    print()


def print_step(name: str, cold: float, warm: float) -> None:
    """Print one row of the table of steps."""
    print(f"{name:24}{1000 * cold:12.1f}{1000 * warm:12.1f}{cold / warm:8.1f}")


def ready(report: Report) -> float:
    """Return the seconds from the built graph to the first answer."""
    return report["seconds"]["function()"] + report["seconds"]["first call"]


def print_cache(reports: dict[str, Report]) -> None:
    """Print what each process found in the cache, and what it did because it did not find it."""
    levels = sorted({level for report in reports.values() for level in report["found"]})
    print(f"{'found / not found':24}" + "".join(f"{name:>18}" for name in reports))
    rows = {"outcome": [report["outcome"] for report in reports.values()]}
    for level in levels:
        counts = (report["found"].get(level, (0, 0)) for report in reports.values())
        rows[f"{level} level"] = [f"{hits} / {misses}" for hits, misses in counts]
    for count in ("rewrites", "compilations"):
        rows[count] = [str(report[count]) for report in reports.values()]
    for name, cells in rows.items():
        print(f"{name:24}" + "".join(f"{cell:>18}" for cell in cells))
    print("(the second process ran with CACHEGRAPH_ON_MISS=error)\n")


def print_estimates(cold: Report, warm: Report, density: float, estimate: np.ndarray) -> None:
    """Print the estimates of the two processes beside numpy's."""
    print(f"{'estimate':30}{'first':>14}{'second':>14}{'numpy':>14}")
    columns = (cold["fit"]["estimate"], warm["fit"]["estimate"], estimate)
    for name, *values in zip(SHOWN, *columns, strict=False):
        print(f"{name:30}" + "".join(f"{value:14.6f}" for value in values))
    densities = (cold["fit"]["log_density"], warm["fit"]["log_density"], density)
    print(f"{'log density':30}" + "".join(f"{value:14.6f}" for value in densities))
    print(f"{'calls of the function':30}{cold['fit']['calls']:14}{warm['fit']['calls']:14}\n")


def warm_problems(warm: Report) -> Iterator[str]:
    """Yield what the second process did that a warm start does not."""
    if warm["outcome"] != "hit":
        yield f"the second process was a {warm['outcome']}: {warm['reason']}"
    for count in ("rewrites", "compilations"):
        if warm[count]:
            yield f"the second process made {warm[count]} {count}"
    if warm["imported"]:
        yield f"the second process imported {', '.join(warm['imported'])} before its first answer"


def sharing_problems(related: Report) -> Iterator[str]:
    """Yield why the related model did not reuse kernels of the first."""
    if related["outcome"] != "miss" or not related["found"].get("kernel", (0, 0))[0]:
        yield f"the related model reused no kernel: {related['outcome']}, found {related['found']}"


def number_problems(
    panel: Panel, cold: Report, warm: Report, related: Report, density: float, estimate: np.ndarray
) -> Iterator[str]:
    """Yield every number that differs from what numpy computes."""
    for name, report in (("normal", cold), ("normal", warm), ("robust", related)):
        first = report["first"]
        value, gradient = reference.log_density(name, np.array(first["point"]), panel)
        if not np.allclose(
            [first["log_density"], *first["gradient"]], [value, *gradient], rtol=1e-9, atol=1e-9
        ):
            yield f"the first call of the {name} model differs from numpy"
    for report in (cold, warm):
        if not np.allclose(report["fit"]["estimate"], estimate, rtol=0.0, atol=1e-3):
            yield "an estimate differs from numpy's"
        if abs(report["fit"]["log_density"] - density) > 1e-6:
            yield f"a maximum is {report['fit']['log_density']!r}; numpy's is {density!r}"


if __name__ == "__main__":
    sys.exit(main())
