"""A fresh process that makes functions, sends them pickled to a worker of another process, and prints
as JSON what the worker reports.

    python tests/flow/pickled_process.py METHOD [NAME=VALUE ...]

METHOD is a start method of multiprocessing, "loky" (joblib), "pickle" or "cloudpickle" (a pickle in
a file, loaded by a process that knows no more). The variables are those of the worker's
environment, set when the functions are made.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.tensor.optimize import minimize
from tests.flow.model_process import COMPILING, MODELS, ROOT

Functions = tuple[engine.Function, engine.Function, engine.Function]
LOAD = """
import json, pickle, sys
from tests.flow.pickled_process import answer
with open(sys.argv[1], "rb") as file:
    print(json.dumps(answer(*pickle.load(file))))
"""


def functions() -> tuple[Functions, list[Any]]:
    """The regression, which counts its calls, a function that looks at that count, one with a search for a
    minimum in it, and values for the first.
    """
    inputs, outputs, updates, values = MODELS["regression"](0)
    (count,) = updates
    fit = engine.function(inputs, outputs, updates=updates, name="regression")
    x, shift = pt.vector("x", shape=(2,)), pt.scalar("shift")
    solution, _ = minimize(pt.sum(pt.sqr(x - shift) + x**4), x)
    search = engine.function([x, shift], [solution, engine.grad(pt.sum(solution), shift)], name="search")
    return (fit, engine.function([], count * 10, name="count"), search), values


def answer(made: Functions, values: list[Any]) -> dict[str, Any]:
    """What a worker finds: the results of two calls, the count that both functions share, how they came
    about.
    """
    fit, count, search = made
    results = [[np.asarray(r).tolist() for r in fit(*values)] for _ in range(2)][-1]
    counted = int(count())
    imported = [name for name in COMPILING if name in sys.modules]
    infos = [f.cache_info for f in made]
    return {
        "process": os.getpid(),
        "results": results,
        "counted": counted,
        "found": [result.tolist() for result in search(np.ones(2), 0.5)],
        "imported": imported,
        "outcomes": [info.outcome for info in infos],
        "reasons": [info.reason for info in infos],
        "kernels": infos[0].found["kernel"],
        "rewrites": sum(info.rewrites for info in infos),
        "compilations": sum(info.compilations for info in infos),
        "graph": engine.dprint(fit, file="str"),
    }


def in_worker(method: str, made: Functions, values: list[Any]) -> list[dict[str, Any]]:
    """What the worker reports, or each of two workers."""
    if method == "loky":
        from joblib import Parallel, delayed

        return list(Parallel(n_jobs=2, backend="loky")(delayed(answer)(made, values) for _ in range(2)))
    if method in ("pickle", "cloudpickle"):
        return [in_fresh_process(method, made, values)]
    with multiprocessing.get_context(method).Pool(1) as pool:
        return [pool.apply(answer, (made, values))]


def in_fresh_process(method: str, made: Functions, values: list[Any]) -> dict[str, Any]:
    """What a process reports that loads a file."""
    import cloudpickle

    dump = pickle.dumps if method == "pickle" else cloudpickle.dumps
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "functions"
        path.write_bytes(dump((made, values)))
        done = subprocess.run(
            [sys.executable, "-c", LOAD, str(path)], stdout=subprocess.PIPE, check=True, cwd=ROOT
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Do what the module says."""
    method, *variables = sys.argv[1:]
    made, values = functions()
    outcomes = [f.cache_info.outcome for f in made]
    due = [np.asarray(r).tolist() for r in made[0](*values)]
    graph = engine.dprint(made[0], file="str")
    os.environ |= dict(variable.split("=", 1) for variable in variables)
    workers = in_worker(method, made, values)
    here = {
        "process": os.getpid(),
        "made": outcomes,
        "results": due,
        "graph": graph,
        "counted": int(made[1]()),
        "found": [result.tolist() for result in made[2](np.ones(2), 0.5)],
    }
    print(json.dumps({"here": here, "workers": workers}))


if __name__ == "__main__":
    main()
