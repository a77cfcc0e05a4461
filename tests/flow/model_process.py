"""A fresh process that makes one function, calls it, and prints what happened as JSON.

    python tests/flow/model_process.py MODEL [--data SEED] [--without-call]

`report` does the same in the process that imports it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import engine
import engine.tensor as pt

ROOT = Path(__file__).resolve().parents[2]
COMPILING = (
    "numba",
    "llvmlite" if platform.machine() == "x86_64" else "llvmlite.binding",
    "cachegraph.caching.building",
    "cachegraph.pickling.import_path",
    "cachegraph.single_flight",
    "scipy.linalg",
    "msgspec",
    "sqlalchemy",
    "engine.rewriting",
    "engine.lowering",
    "engine.codegen",
)
"""What a warm start has no use for."""


def regression(data: int = 0) -> tuple[Any, ...]:
    """A penalised logistic regression in groups: cost and gradient, and a count of the calls."""
    random = np.random.default_rng(data)
    design, successes = random.normal(size=(60, 3)), (random.random(60) < 0.5).astype("f8")
    group = pt.constant(random.integers(0, 4, 60))
    slope, effect = pt.vector("slope"), pt.vector("effect")
    calls = engine.shared(0, "calls")
    predicted = pt.dot(pt.constant(design), slope) + effect[group]
    cost = pt.sum(pt.softplus(predicted) - pt.constant(successes) * predicted) + 0.5 * pt.sum(pt.sqr(effect))
    outputs = [cost, *engine.grad(cost, [slope, effect])]
    values = [np.array([0.5, -1.0, 0.25]), np.array([0.1, -0.2, 0.3, 0.0])]
    return [slope, effect], outputs, {calls: calls + 1}, values


def related(data: int = 0) -> tuple[Any, ...]:
    """Another model, which predicts as the regression does."""
    (slope, effect), (cost, *_), _, values = regression(data)
    distance = pt.sqrt(pt.sum(pt.sqr(slope)))
    return [slope, effect], [cost, pt.tanh(distance)], {}, values


def softened(data: int = 0) -> tuple[Any, ...]:
    """A single loop and a reduction: few kernels, for tests that compile often."""
    x = pt.vector("x")
    return [x], [pt.exp(x) * 2 + 1, pt.sum(pt.exp(x) * 2 + 1)], {}, [np.linspace(0, 1, 5)]


MODELS = {"regression": regression, "related": related, "softened": softened}


def report(model: str, data: int = 0, call: bool = True) -> dict[str, Any]:
    """Make the function and say how it came about, what it gives and what had been imported by then."""
    inputs, outputs, updates, values = MODELS[model](data)
    f = engine.function(inputs, outputs, updates=updates, name=model)
    results = [np.asarray(r).tolist() for r in f(*values)] if call else []
    info = f.cache_info
    return {
        "imported": [name for name in (*COMPILING, "cloudpickle") if name in sys.modules],
        "outcome": info.outcome,
        "reason": info.reason,
        "key": info.key,
        "found": info.found,
        "rewrites": info.rewrites,
        "compilations": info.compilations,
        "results": results,
        "counts": [int(v.get_value()) for v in updates],
    }


def expected(model: str, data: int = 0) -> list[Any]:
    """What the numpy backend gives."""
    inputs, outputs, _, values = MODELS[model](data)
    return [r.tolist() for r in engine.function(inputs, outputs, mode="NUMPY")(*values)]


def in_fresh_process(
    model: str, *arguments: str, cwd: Path | None = None, **environment: str
) -> dict[str, Any]:
    """Return what a fresh process reports; raises AssertionError if it fails."""
    done = subprocess.run(
        [sys.executable, __file__, model, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--data", type=int, default=0)
    parser.add_argument("--without-call", action="store_true")
    arguments = parser.parse_args()
    json.dump(report(arguments.model, arguments.data, not arguments.without_call), sys.stdout)


if __name__ == "__main__":
    _main()
