"""Seconds until nutpie's first draw, in fresh processes: PyTensor alone, the adapter, and the engine.

Run as `python tools/bench/nutpie_start.py` in an environment with PyMC and nutpie. In each way a process
builds a model, compiles it by `nutpie.compile_pymc_model` and samples one draw a chain. Counted are
seconds of the processor from after the imports of PyMC and nutpie to the last of these draws. The first
process of a way starts with empty caches (cold); the later ones take turns (warm), and the least counts.

Prints a table, or JSON. `--check` fails (exit code 1) if the adapter with numba, or the engine, takes,
warm, more than a quarter of what PyTensor takes warm.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
WAYS = {"pytensor": None, "adapter": "numba", "engine": "engine"}
"""The backend that is installed, None for no adapter."""
RATIO = 1 / 4


def eight_schools() -> Any:
    """Return the model of the eight schools, not centred."""
    import pymc as pm

    effects, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model() as model:
        mean, spread, school = (
            pm.Normal("mean", 0, 5),
            pm.HalfCauchy("spread", 5),
            pm.Normal("school", shape=8),
        )
        pm.Normal("y", pm.Deterministic("effect", mean + spread * school), errors, observed=effects)
    return model


def hierarchical() -> Any:
    """Return a regression of 919 observations with intercepts and slopes of 85 groups."""
    import pymc as pm

    rng = np.random.default_rng(1)
    group, floor = rng.integers(0, 85, 919), rng.integers(0, 2, 919).astype(float)
    with pm.Model() as model:
        means, spreads = pm.Normal("means", shape=2), pm.HalfNormal("spreads", shape=2)
        intercept = pm.Deterministic("intercept", means[0] + spreads[0] * pm.Normal("raw_0", shape=85))
        slope = pm.Deterministic("slope", means[1] + spreads[1] * pm.Normal("raw_1", shape=85))
        value = intercept[group] + slope[group] * floor
        pm.Normal("y", value, pm.HalfNormal("noise"), observed=rng.normal(size=919))
    return model


MODELS = {"eight-schools": eight_schools, "hierarchical": hierarchical}


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = parsed()
    if arguments.child:
        return subject(*arguments.child)
    missing = [name for name in ("pymc", "nutpie") if find_spec(name) is None]
    if missing:
        print(f"{sys.executable} has no {' and no '.join(missing)}", file=sys.stderr)
        return 2
    rows = {name: measured(name, arguments.rounds) for name in MODELS}
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        Console().print(table(rows))
    late = [
        (name, way)
        for name, row in rows.items()
        for way, backend in WAYS.items()
        if backend is not None and row[way]["warm"] > RATIO * row["pytensor"]["warm"]
    ]
    for name, way in late:
        print(f"{name}: {way} takes more than {RATIO} of PyTensor's seconds", file=sys.stderr)
    return 1 if arguments.check and late else 0


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="warm processes each way (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="fail where the budget is missed")
    parser.add_argument("--child", nargs=2, metavar=("WAY", "MODEL"), help=argparse.SUPPRESS)
    return parser.parse_args()


def measured(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds of a model, cold and warm, for each way."""
    with tempfile.TemporaryDirectory() as directory:
        cold = {way: run(way, name, Path(directory) / way) for way in WAYS}
        warm = [{way: run(way, name, Path(directory) / way) for way in WAYS} for _ in range(rounds)]
    return {way: {"cold": cold[way], "warm": min(row[way] for row in warm)} for way in WAYS}


def run(way: str, name: str, caches: Path) -> float:
    """Return what a fresh process takes that uses these caches."""
    flags = {
        "CACHEGRAPH_DIR": str(caches / "own"),
        "PYTENSOR_FLAGS": f"base_compiledir={caches / 'pytensor'}",
    }
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **flags, "PYTHONPATH": paths}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, "--child", way, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def subject(way: str, name: str) -> int:
    """Compile the model and sample; print the seconds of the processor that it took."""
    import nutpie
    import pymc  # noqa: F401

    begin = time.process_time()
    backend = WAYS[way]
    if backend is not None:
        import cachegraph.pytensor

        cachegraph.pytensor.install(backend=backend)
    compiled = nutpie.compile_pymc_model(MODELS[name]())
    nutpie.sample(compiled, draws=1, tune=1, chains=2, cores=2, seed=1, progress_bar=False)
    print(time.process_time() - begin)
    return 0


def table(rows: dict[str, dict[str, dict[str, float]]]) -> Table:
    """The report as a table."""
    found = Table("model", *(f"{way}, {kind}" for way in WAYS for kind in ("cold", "warm")))
    for name, row in rows.items():
        found.add_row(name, *(f"{row[way][kind]:.2f}" for way in WAYS for kind in ("cold", "warm")))
    return found


if __name__ == "__main__":
    sys.exit(main())
