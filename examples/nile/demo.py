"""Compile a filter and the search for its maximum once, start warm in the next process: the Nile's
flow on one cache.

Exits with 1 if the second process did not get everything from the cache, or if a number differs
from numpy's or SciPy's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import reference
from river import read_flow

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what the parts of the demo share
import fresh_processes
from fresh_processes import Report

PROGRAM = Path(__file__).with_name("fit.py")
STEPS = (
    "import numpy",
    "import engine",
    "build the likelihood",
    "likelihood: function()",
    "likelihood: first call",
    "build the maximum",
    "maximum: function()",
    "import scipy.optimize",
    "maximum: first call",
)
TOTALS = {
    f"{name}: function() + call": (f"{name}: function()", f"{name}: first call")
    for name in ("likelihood", "maximum")
}
TOLERANCES = {
    "log likelihood": 1e-8,
    "gradient, by hand": 1e-8,
    "gradient, by differences": 1e-4,
    "highest log likelihood": 1e-7,
    "logarithms of the variances there": 1e-4,
}
"""How far from the engine's a number may be that was computed in another way."""


def run(directory: Path) -> Iterator[str]:
    """Run two processes on the cache in `directory`, print what they did, yield what was wrong."""
    flow = read_flow()
    print(f"Flow of the Nile at Aswan: {flow.size} years; cache in {directory}")
    print("Running the same program in two fresh processes ...\n")
    cold = fresh_processes.process(PROGRAM, directory)
    warm = fresh_processes.process(PROGRAM, directory, CACHEGRAPH_ON_MISS="error")

    fresh_processes.print_steps(STEPS, TOTALS, cold, warm)
    names = ("likelihood", "maximum")
    accounts = {
        f"{which}: {name}": report[name] for which, report in (("1st", cold), ("2nd", warm)) for name in names
    }
    fresh_processes.print_found(accounts)
    print("(the second process ran with CACHEGRAPH_ON_MISS=error)\n")
    print_estimate(warm)
    differences = {name: largest(cold, warm, due) for name, due in expected(warm, flow).items()}
    print_differences(differences)
    fresh_processes.print_stats(directory)
    for name in names:
        yield from fresh_processes.warm_problems(f"{name} in the second process", warm[name])
    yield from fresh_processes.import_problems(warm)
    yield from sharing_problems(cold)
    yield from number_problems(cold, warm, differences)


def print_estimate(warm: Report) -> None:
    """Print where the likelihood is highest, and how high."""
    noise, step = np.exp(warm["found"]["theta"])
    print(f"variance of the noise            {noise:12.1f}")
    print(f"variance of the level's steps    {step:12.1f}")
    print(f"highest log likelihood           {warm['found']['value']:12.4f}\n")


def expected(warm: Report, flow: np.ndarray) -> dict[str, tuple[str, str, np.ndarray]]:
    """Return the expected numbers: name -> which call, which of its numbers, their values."""
    theta = np.array(warm["first"]["theta"])
    value, gradient = reference.log_likelihood(theta, flow)
    highest, where = reference.maximum(flow, theta)
    rows = (
        ("first", "value", np.array(value)),
        ("first", "gradient", gradient),
        ("first", "gradient", reference.finite_differences(theta, flow)),
        ("found", "value", np.array(highest)),
        ("found", "theta", where),
    )
    return dict(zip(TOLERANCES, rows, strict=True))


def largest(cold: Report, warm: Report, due: tuple[str, str, np.ndarray]) -> float:
    """Return the largest difference of both processes' numbers from those that are due."""
    call, field, values = due
    return float(max(np.max(np.abs(np.array(report[call][field]) - values)) for report in (cold, warm)))


def print_differences(differences: dict[str, float]) -> None:
    """Print how far the numbers are from those of numpy and SciPy, and how far they may be."""
    print(f"{'|difference| to numpy, SciPy':36}{'found':>12}{'at most':>12}")
    for name, difference in differences.items():
        print(f"{name:36}{difference:12.1e}{TOLERANCES[name]:12.0e}")
    print()


def sharing_problems(cold: Report) -> Iterator[str]:
    """Yield what the maximum did not reuse of the likelihood: its optimized loop, its kernels."""
    for level in ("op", "kernel"):
        hits, _ = cold["maximum"]["found"].get(level, (0, 0))
        if not hits:
            yield f"the maximum found nothing of the likelihood at level {level}"


def number_problems(cold: Report, warm: Report, differences: dict[str, float]) -> Iterator[str]:
    """Yield every number that is wrong."""
    for name, difference in differences.items():
        if not difference <= TOLERANCES[name]:
            yield f"{name} differs by {difference}"
    for report in (cold, warm):
        if not report["found"]["success"]:
            yield "the search for the maximum reports that it failed"


if __name__ == "__main__":
    sys.exit(fresh_processes.main("Compile a filter once, start warm in the next process.", run))
