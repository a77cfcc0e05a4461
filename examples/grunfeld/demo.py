"""Compile a model once, start warm in the next process: the Grunfeld regression in fresh processes on
one cache.

Exits with 1 if the second process did not get everything from the cache, or if a number differs
from numpy's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import reference
from panel import Panel, read_panel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what the parts of the demo share
import fresh_processes
from fresh_processes import Report

PROGRAM = Path(__file__).with_name("fit.py")
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


def run(directory: Path) -> Iterator[str]:
    """Run three processes on the cache in `directory`, print what they did, yield what was wrong."""
    panel = read_panel()
    print(
        f"Grunfeld investment data: {len(panel.firms)} firms, {panel.invest.size} rows; cache in {directory}"
    )
    print("Running the same program in two fresh processes, then a related model in a third ...\n")
    cold = fresh_processes.process(PROGRAM, directory, "normal")
    warm = fresh_processes.process(PROGRAM, directory, "normal", CACHEGRAPH_ON_MISS="error")
    related = fresh_processes.process(PROGRAM, directory, "robust", "--no-fit")
    density, estimate = reference.maximum("normal", panel)

    ready = {"function() + first call": ("function()", "first call")}
    fresh_processes.print_steps(STEPS, ready, cold, warm)
    fresh_processes.print_found({"first process": cold, "second process": warm, "related model": related})
    print("(the second process ran with CACHEGRAPH_ON_MISS=error)\n")
    print_estimates(cold, warm, density, estimate)
    fresh_processes.print_stats(directory)
    yield from fresh_processes.warm_problems("the second process", warm)
    yield from fresh_processes.import_problems(warm)
    yield from sharing_problems(related)
    yield from number_problems(panel, cold, warm, related, density, estimate)


def print_estimates(cold: Report, warm: Report, density: float, estimate: np.ndarray) -> None:
    """Print the estimates of the two processes beside numpy's."""
    print(f"{'estimate':30}{'first':>14}{'second':>14}{'numpy':>14}")
    columns = (cold["fit"]["estimate"], warm["fit"]["estimate"], estimate)
    for name, *values in zip(SHOWN, *columns, strict=False):
        print(f"{name:30}" + "".join(f"{value:14.6f}" for value in values))
    densities = (cold["fit"]["log_density"], warm["fit"]["log_density"], density)
    print(f"{'log density':30}" + "".join(f"{value:14.6f}" for value in densities))
    print(f"{'calls of the function':30}{cold['fit']['calls']:14}{warm['fit']['calls']:14}\n")


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
    sys.exit(fresh_processes.main("Compile a model once, start warm in the next process.", run))
