"""Programs on several processes compile each function once in all: PyMC's samplers, joblib, and processes
that start at once.

A `sitecustomize` writes a line for every miss and every hit of every process, workers included. A miss is
a build: as many misses as there are entries means that each was built once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

pytest.importorskip("pymc", reason="PyMC is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.stress]

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("pytensor_workers_process.py")
OBSERVED = np.linspace(-1.0, 2.0, 12)
EVERY_PROCESS = """
import os
from cachegraph.caching.counters import Tally

def noting(name, function):
    def noted(self, first, *rest):
        with open(os.environ["NOTES"], "a") as file:
            file.write(f"{os.getpid()} {name} {first.replace(' ', '-')} {rest}\\n")
        return function(self, first, *rest)
    return noted

for name in ("hit", "miss", "bypass", "store_failure"):
    setattr(Tally, name, noting(name, getattr(Tally, name)))
"""


@dataclass
class Workplace:
    """A store, where processes note what they do, and what a program needs to run there."""

    directory: Path

    def __post_init__(self) -> None:
        (self.directory / "sitecustomize.py").write_text(EVERY_PROCESS)
        (self.directory / "temporary").mkdir()

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """A process of the program."""
        variables = os.environ | {
            "PYTHONPATH": os.pathsep.join((str(self.directory), str(ROOT))),
            "CACHEGRAPH_DIR": str(self.directory / "cache"),
            "PYTENSOR_FLAGS": f"cxx=,base_compiledir={self.directory / 'compiled'}",
            "TMPDIR": str(self.directory / "temporary"),
            "NOTES": str(self.directory / "notes"),
            "START": str(self.directory / "start"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-W", "ignore", str(PROGRAM), *arguments]
        return subprocess.Popen(command, env=variables, text=True, stdout=-1, stderr=-1)

    def result(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """What a process prints."""
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, out + err
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found

    def run(self, *arguments: str) -> dict[str, Any]:
        """What the program prints."""
        return self.result(self.started(*arguments))

    def noted(self) -> list[tuple[int, str, str]]:
        """What all processes did since this was asked last: process, what, and level or reason."""
        notes = self.directory / "notes"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return [(int(pid), what, of) for pid, what, of, *_ in map(str.split, lines)]

    def entries(self) -> dict[str, int]:
        """How many entries the store has on each level."""
        command = [
            sys.executable,
            "-m",
            "cachegraph",
            "stats",
            "--json",
            "--dir",
            str(self.directory / "cache"),
        ]
        variables = os.environ | {"PYTHONPATH": str(ROOT)}
        levels = json.loads(subprocess.run(command, env=variables, stdout=-1, check=True).stdout)["levels"]
        return {level: row["entries"] for level, row in levels.items() if row["entries"]}


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def assert_built_once(workplace: Workplace, found: list[tuple[int, str, str]]) -> None:
    """Each entry was built by one process, once, and nothing that numba compiles was built without a key."""
    built = Counter(level for _, what, level in found if what == "miss")
    assert built == workplace.entries()
    assert built["function"] >= 1
    # PyMC makes some functions for itself that numba does not compile.
    assert {(what, of) for _, what, of in found if what in ("bypass", "store_failure")} <= {
        ("bypass", "linker")
    }


def assert_like_the_posterior(mean: Any) -> None:
    """Draws of `mean` are where its posterior is."""
    assert abs(np.mean(mean) - OBSERVED.mean()) < 0.6
    assert 0.05 < np.std(mean) < 1.0


@pytest.mark.parametrize("start_method", ["spawn", "fork"])
def test_chains_in_four_processes_compile_nothing_of_their_own(
    workplace: Workplace, start_method: str
) -> None:
    if start_method == "fork" and not hasattr(os, "fork"):
        pytest.skip("this platform has no fork")
    cold = workplace.run("sample", start_method)
    assert_like_the_posterior(cold["mean"])
    found = workplace.noted()
    assert_built_once(workplace, found)
    assert len({pid for pid, what, _ in found if what == "miss"}) == 1
    assert workplace.run("sample", start_method) == cold
    warm = {(what, of) for _, what, of in workplace.noted()}
    found_again = {("hit", level) for level in ("function", "numba", "op")}
    assert {("hit", "function")} <= warm <= {*found_again, ("bypass", "linker")}


def test_chains_of_sequential_monte_carlo_share_what_each_of_them_needs(workplace: Workplace) -> None:
    cold = workplace.run("smc")
    assert_like_the_posterior(cold["mean"])
    assert_built_once(workplace, workplace.noted())


def test_twenty_fits_in_a_pool_compile_once(workplace: Workplace) -> None:
    fits = np.array(workplace.run("joblib")["fits"])
    found = workplace.noted()
    assert_built_once(workplace, found)
    np.testing.assert_allclose(
        fits, [mode_of(OBSERVED + number) for number in range(20)], rtol=1e-3, atol=1e-3
    )


def mode_of(observed: np.ndarray) -> np.ndarray:
    """Mean and noise of greatest density, by SciPy."""

    def minus_density(at: np.ndarray) -> float:
        mean, noise = at[0], np.exp(at[1])
        misfit = np.sum(np.square(observed - mean)) / (2.0 * noise**2) + observed.size * at[1]
        return float(mean**2 / 8.0 + noise**2 / 2.0 + misfit)

    mean, log_noise = minimize(minus_density, [observed.mean(), 0.0], tol=1e-10).x
    return np.array([mean, np.exp(log_noise)])


def test_eight_processes_that_start_at_once_compile_once(workplace: Workplace) -> None:
    processes = [workplace.started("compile") for _ in range(8)]
    while len(list(workplace.directory.glob("start-*"))) < len(processes):
        assert all(process.poll() is None for process in processes), processes
        time.sleep(0.02)
    (workplace.directory / "start").touch()
    results = [workplace.result(process) for process in processes]
    assert all(result == results[0] for result in results)
    found = workplace.noted()
    assert_built_once(workplace, found)
    assert len([each for each in found if each[1:] == ("hit", "function")]) == 7
