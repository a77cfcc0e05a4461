"""A program that a PyMC user runs on several processes, with the adapter; see test_pytensor_workers.py.

    python tests/flow/pytensor_workers_process.py sample spawn | sample fork | smc | joblib | compile

Prints a line of JSON with what it found. `compile` waits until the file START exists, so that many start
at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

OBSERVED = np.linspace(-1.0, 2.0, 12)


def model(observed: Any) -> Any:
    """A small model, whose observations are data that can be set."""
    import pymc as pm

    with pm.Model() as made:
        data = pm.Data("data", observed)
        mean = pm.Normal("mean", 0.0, 2.0)
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("observed", mean, noise, observed=data)
    return made


def sample(start_method: str) -> Any:
    """Four chains in four processes."""
    import pymc as pm

    with model(OBSERVED):
        found = pm.sample(
            draws=20,
            tune=20,
            chains=4,
            cores=4,
            mp_ctx=start_method,
            nuts_sampler="pymc",  # nutpie's chains are threads
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return {"mean": found.posterior["mean"].values.tolist()}


def smc() -> Any:
    """Two chains of sequential Monte Carlo in two processes, each of which compiles what it needs."""
    import pymc as pm

    with model(OBSERVED):
        found = pm.sample_smc(
            draws=60, chains=2, cores=2, random_seed=1, progressbar=False, compute_convergence_checks=False
        )
    return {"mean": found.posterior["mean"].values.tolist()}


def fit(number: int) -> list[float]:
    """The mode of the model for the data set of that number, found in a worker."""
    import pymc as pm

    import cachegraph.pytensor

    cachegraph.pytensor.install()
    with model(OBSERVED + number):
        found = pm.find_MAP(progressbar=False)
    return [float(found["mean"]), float(found["noise"])]


def joblib() -> Any:
    """Twenty fits of one model in two worker processes."""
    from joblib import Parallel, delayed

    return {"fits": Parallel(n_jobs=2)(delayed(fit)(number) for number in range(20))}


def compile() -> Any:
    """The density and its gradient, as soon as it is time."""
    import pymc as pm

    made = model(OBSERVED)
    outputs = [made.logp(), made.dlogp()]
    Path(f"{os.environ['START']}-{os.getpid()}").touch()
    while not Path(os.environ["START"]).exists():
        time.sleep(0.005)
    f = pm.pytensorf.compile(made.value_vars, outputs, mode="NUMBA")
    results = f(*(np.asarray(made.initial_point()[each.name]) for each in made.value_vars))
    return {"bits": [np.asarray(result).tobytes().hex() for result in results]}


if __name__ == "__main__":
    import cachegraph.pytensor

    cachegraph.pytensor.install()
    case, *rest = sys.argv[1:]
    print(json.dumps(globals()[case](*rest)))
