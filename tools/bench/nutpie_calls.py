"""Microseconds of a call of the density that nutpie samples: by the engine, and by numba with the adapter.

Run as `python tools/bench/nutpie_calls.py [MODEL ...]` in an environment with PyMC and nutpie. The models
are those of tools/bench/nutpie_start.py and of tests/engine/pytensor/models/. Each way has a process of its
own, in which a loop compiled by numba calls nutpie's C function of density and gradient at one point, so that
no Python is measured. Processes take turns; the least of all rounds counts.

Prints a table, or JSON. `--check` fails (exit code 1) if the engine takes longer than numba for a model.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
WAYS = ("engine", "numba")
DEFAULT = ("hierarchical", "eight-schools", "mixture", "count_regression", "item_response", "neighbours")
DENSITY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
BLOCKS, CALLS = 30, 1000


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=DEFAULT, help=f"default: {' '.join(DEFAULT)}")
    parser.add_argument("--rounds", type=int, default=2, help="processes each way (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="fail where the engine is slower")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(seconds_of(arguments.child, *arguments.models))
        return 0
    missing = [name for name in ("pymc", "nutpie") if find_spec(name) is None]
    if missing:
        print(f"{sys.executable} has no {' and no '.join(missing)}", file=sys.stderr)
        return 2
    rows = {name: measured(name, arguments.rounds) for name in arguments.models}
    print_rows(rows, arguments.json)
    slow = [name for name, row in rows.items() if row["engine"] > row["numba"]]
    for name in slow:
        print(f"{name}: a call by the engine takes longer than by numba", file=sys.stderr)
    return 1 if arguments.check and slow else 0


def measured(name: str, rounds: int) -> dict[str, float]:
    """Return the seconds of a call of a model, for each way."""
    found = [{way: run(way, name) for way in WAYS} for _ in range(rounds)]
    return {way: min(row[way] for row in found) for way in WAYS}


def run(way: str, name: str) -> float:
    """Return what a call takes in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, __file__, "--child", way, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def seconds_of(way: str, name: str) -> float:
    """Return the seconds of a call, the least of many blocks of calls."""
    import cachegraph.pytensor

    cachegraph.pytensor.install(backend=way)
    import numba
    import nutpie

    compiled = nutpie.compile_pymc_model(model(name))
    density = DENSITY(compiled.compiled_logp_func.address)

    def calls(count: int, dim: int, point: int, gradient: int, value: int, user: int) -> int:
        failures = 0
        for _ in range(count):
            failures += density(dim, point, gradient, value, user) != 0
        return failures

    point = 0.1 * np.random.default_rng(0).normal(size=compiled.n_dim)
    arrays = [point, np.zeros(compiled.n_dim), np.zeros(1)]
    arguments = (compiled.n_dim, *(array.ctypes.data for array in arrays), compiled.user_data.ctypes.data)
    loop = numba.njit(calls)
    if loop(1, *arguments):
        raise SystemExit(f"the density of {name} fails at the point")
    return min(block(loop, arguments) for _ in range(BLOCKS))


def block(loop: Any, arguments: tuple[int, ...]) -> float:
    """Return the seconds of one of CALLS calls."""
    begin = time.perf_counter()
    loop(CALLS, *arguments)
    return (time.perf_counter() - begin) / CALLS


def model(name: str) -> Any:
    """Return the model of that name."""
    from tests.engine.pytensor.models import MODELS
    from tools.bench.nutpie_start import MODELS as STARTED

    return {**MODELS, **STARTED}[name]()


def print_rows(rows: dict[str, dict[str, float]], is_json: bool) -> None:
    """Print the seconds of each model and way."""
    if is_json:
        print(json.dumps(rows, indent=2))
        return
    found = Table("model", *(f"{way}, us" for way in WAYS), "engine / numba")
    for name, row in rows.items():
        figures = (f"{row[way] * 1e6:.2f}" for way in WAYS)
        found.add_row(name, *figures, f"{row['engine'] / row['numba']:.2f}")
    Console().print(found)


if __name__ == "__main__":
    sys.exit(main())
